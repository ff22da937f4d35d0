"""Servers that replicate from others."""

from __future__ import annotations

from tests.support.binlog import gtids
from tests.support.mysql import ADMIN, ADMIN_PASSWORD, Flavor, MysqlServer
from tests.support.patience import within

WAIT_S = within(30.0)

SETTINGS: dict[Flavor, dict[str, str | None]] = {
    "mysql": {},
    # MySQL does so by itself.
    "mariadb": {"log_slave_updates": "ON"},
}


def replica_of(source: MysqlServer, replica: MysqlServer) -> None:
    """Let a server receive all transactions of another one, by their GTIDs."""
    host = f"MASTER_HOST='127.0.0.1', MASTER_PORT={source.port}, MASTER_USER='{ADMIN}', "
    host += f"MASTER_PASSWORD='{ADMIN_PASSWORD}', MASTER_CONNECT_RETRY=1"
    if source.flavor == "mariadb":
        replica.execute(f"CHANGE MASTER TO {host}, MASTER_USE_GTID=slave_pos", "START SLAVE")
        return
    host = host.replace("MASTER", "SOURCE")
    replica.execute(
        f"CHANGE REPLICATION SOURCE TO {host}, SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1", "START REPLICA"
    )


def wait_for_replica(source: MysqlServer, replica: MysqlServer) -> None:
    """Wait until a replica has all that its source has."""
    function = "MASTER_GTID_WAIT" if source.flavor == "mariadb" else "WAIT_FOR_EXECUTED_GTID_SET"
    with replica.connect() as session, session.cursor() as cursor:
        cursor.execute(f"SELECT {function}('{gtids(source)}', {WAIT_S:.0f})")
        found = cursor.fetchone()
    assert found is not None
    assert found[0] == 0


def stop_replica(replica: MysqlServer) -> None:
    """Let a server receive nothing more, as before it takes over."""
    replica.execute("STOP SLAVE" if replica.flavor == "mariadb" else "STOP REPLICA")
