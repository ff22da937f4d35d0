"""What the server of a target goes through: TLS, fail-over to another server, a disk that gets full."""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Thread

import pyarrow as pa
import pytest
import trustme

from floodmark.demo.embedded import EmbeddedPostgres, identity
from floodmark.errors import ConfigError, TargetBusyError, TargetChangedError, TargetError
from floodmark.sinks.relational.options import JdbcOptions
from tests.support.address import Address
from tests.support.batch import wait_for
from tests.support.clusters import promote, standby_of, wait_for_standby
from tests.support.jdbc import Event, MysqlTarget, PostgresTarget, Query, Target, block, target_on
from tests.support.mysql import Flavor, MysqlServer
from tests.support.replication import SETTINGS, replica_of, stop_replica, wait_for_replica
from tests.support.small_disk import SmallDisk
from tests.support.tls_proxy import TlsProxy

COLUMNS = pa.schema([("id", pa.int32()), ("v", pa.string())])
PAGES_LEFT = 200
"""Of a disk that is as good as full."""


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with the certificates of a server, of its authority and of another one."""
    directory = tmp_path_factory.mktemp("stores")
    authority = trustme.CA()
    made = authority.issue_cert("127.0.0.1")
    authority.cert_pem.write_to_path(directory / "ca.pem")
    made.private_key_and_cert_chain_pem.write_to_path(directory / "server.pem")
    trustme.CA().cert_pem.write_to_path(directory / "other.pem")
    return directory


def rows(first: int, last: int, value: str = "v") -> dict[str, list[pa.Table]]:
    events: list[Event] = [
        {"op": "c", "position": f"{number:016X}-00", "after": {"id": number, "v": value}}
        for number in range(first, last + 1)
    ]
    return {"public.t": [block(COLUMNS, ["id"], events)]}


def numbers(target: Target) -> list[int]:
    return [number for (number,) in target.rows("SELECT id FROM public_t ORDER BY id")]


def test_tls_of_postgres(pg18: EmbeddedPostgres, stores: Path, tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(stores / "server.pem")
    proxy = TlsProxy(context, pg18.port)
    with target_on(pg18) as target:
        plain = target.options["connection.url"]
        secured = plain.replace(str(pg18.port), str(proxy.port))
        trusted = f"{secured}?sslmode=verify-full&sslrootcert={stores}/ca.pem"
        Query(target, tmp_path, {"connection_url": trusted}).write(0, rows(1, 3))
        assert numbers(target) == [1, 2, 3]
        for url, told in (
            (f"{secured}?sslmode=verify-full&sslrootcert={stores}/other.pem", "certificate verify failed"),
            (f"{secured}?sslmode=verify-full&sslrootcert={stores}/none.pem", "root certificate file … does not exist"),
            (f"{plain}?sslmode=require", "does not support SSL"),
        ):
            with pytest.raises(TargetError, match=told) as caught:
                Query(target, tmp_path / "other", {"connection_url": url})
            # Trying again wouldn't help.
            assert not isinstance(caught.value, TargetBusyError)
    proxy.close()


@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_tls_of_mysql(flavor: Flavor, stores: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    server = MysqlServer(flavor)
    for name, file in (("ssl_ca", "ca.pem"), ("ssl_cert", "server.pem"), ("ssl_key", "server.pem")):
        copy = server.directory / f"{name}.pem"
        server.settings[name] = str(shutil.copy(stores / file, copy))
    with server, target_on(server) as target:
        server.execute("SET GLOBAL require_secure_transport = ON")
        url = target.options["connection.url"]
        accepted = ("verify_ca", "verify_identity", "VERIFY_IDENTITY", "verify-full")
        for number, mode in enumerate(accepted):
            chosen = {"connection_url": f"{url}?sslMode={mode}&serverSslCert={stores}/ca.pem"}
            Query(target, tmp_path / mode, {**chosen, "existing_tables": "empty"}).write(0, rows(number, number))
            assert numbers(target) == [number]
        for parameters, told in (
            (f"sslMode=verify_ca&serverSslCert={stores}/other.pem", "certificate verify failed"),
            ("sslMode=disabled", "Cannot connect"),
        ):
            with pytest.raises(TargetError, match=told) as caught:
                Query(target, tmp_path / "other", {"connection_url": f"{url}?{parameters}"})
            assert not isinstance(caught.value, TargetBusyError)
        with pytest.raises(ConfigError, match=r"none\.pem.*can't be read"):
            Query(target, tmp_path / "other", {"connection_url": f"{url}?serverSslCert={stores}/none.pem"})
    plain: MysqlServer = request.getfixturevalue(flavor)
    if flavor == "mariadb":
        with target_on(plain) as target, pytest.raises(TargetError, match=r"(?i)ssl"):
            Query(
                target, tmp_path / "plain", {"connection_url": f"{target.options['connection.url']}?sslMode=required"}
            )


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("jdbc:postgresql://h/d?sslmode=requires", "sslmode.*'requires'.*Did you mean 'require'"),
        ("jdbc:postgresql://h/d?targetServerType=secondary", "targetServerType.*'secondary'.*any, primary"),
        ("jdbc:mysql://h/d?sslMode=on", "sslMode.*'on'.*disabled, disable, preferred"),
    ],
)
def test_values_of_parameters(url: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        JdbcOptions.parse({"connection.url": url})


@pytest.mark.slow
@pytest.mark.parametrize("is_behind", [False, True], ids=["in step", "behind"])
def test_fail_over_of_postgres(is_behind: bool, tmp_path: Path) -> None:
    with ExitStack() as stack:
        primary = stack.enter_context(EmbeddedPostgres(18))
        standby = standby_of(primary, "standby", "postgres", {})
        stack.callback(standby.close)
        standby.start()
        target = PostgresTarget(primary, "postgres")
        hosts = f"127.0.0.1:{primary.port},127.0.0.1:{standby.port}"
        url = f"jdbc:postgresql://{hosts}/postgres?targetServerType=primary"
        query = Query(target, tmp_path, {"connection_url": url, "flush_max_retries": "30"})
        query.write(0, rows(1, 3))
        wait_for_standby(primary, standby)
        if is_behind:
            standby.stop()
        query.write(1, rows(4, 6))
        if not is_behind:
            wait_for_standby(primary, standby)
        primary.stop("immediate")
        if is_behind:
            standby.start()
        other = PostgresTarget(standby, "postgres")
        # The query finds a server that only reads, until it is promoted.
        promoting = Thread(target=lambda: promote(standby))
        promoting.start()
        if is_behind:
            with pytest.raises(TargetChangedError, match=r"lacks micro-batches.*fail-over"):
                query.write(2, rows(7, 9))
            assert numbers(other) == [1, 2, 3]
        else:
            query.write(2, rows(7, 9))
            assert numbers(other) == list(range(1, 10))
        promoting.join()


@pytest.mark.slow
@pytest.mark.parametrize("is_behind", [False, True], ids=["in step", "behind"])
@pytest.mark.parametrize("flavor", ["mysql", "mariadb"])
def test_fail_over_of_mysql(flavor: Flavor, is_behind: bool, tmp_path: Path) -> None:
    with (
        MysqlServer(flavor) as source,
        MysqlServer(flavor, **SETTINGS[flavor]) as replica,
        Address(source.port) as address,
    ):
        source.execute("CREATE DATABASE copies")
        replica_of(source, replica)
        target, other = MysqlTarget(source, "copies"), MysqlTarget(replica, "copies")
        url = f"jdbc:{flavor}://127.0.0.1:{address.port}/copies"
        query = Query(target, tmp_path, {"connection_url": url, "flush_max_retries": "30"})
        query.write(0, rows(1, 3))
        wait_for_replica(source, replica)
        if is_behind:
            stop_replica(replica)
        query.write(1, rows(4, 6))
        if not is_behind:
            wait_for_replica(source, replica)
            stop_replica(replica)
        address.cut()
        source.stop(kill=True)
        replica.execute("SET GLOBAL read_only = ON")
        address.lead_to(replica.port)
        if is_behind:
            replica.execute("SET GLOBAL read_only = OFF")
            with pytest.raises(TargetChangedError, match=r"lacks micro-batches.*fail-over"):
                query.write(2, rows(7, 9))
            assert numbers(other) == [1, 2, 3]
        else:
            replica.execute("SET GLOBAL read_only = OFF")
            query.write(2, rows(7, 9))
            assert numbers(other) == list(range(1, 10))


@pytest.fixture
def disk() -> Iterator[Path]:
    """Return a small filesystem of the user whom the server runs as."""
    place = Path(tempfile.mkdtemp(prefix="floodmark-disk-"))
    owner = identity()
    if owner:
        shutil.chown(place, owner["user"], owner["group"])
    made = SmallDisk(place / "disk", "64m", owner)
    yield made.seen
    made.close()
    shutil.rmtree(place)


@pytest.mark.slow
def test_the_disk_of_postgres_gets_full(disk: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def by_owner(*command: str | Path) -> None:
        subprocess.run(command, check=True, **identity())

    with EmbeddedPostgres(18) as server:
        by_owner("mkdir", disk / "space")
        PostgresTarget(server, "postgres").execute(
            f"CREATE TABLESPACE small LOCATION '{disk / 'space'}'", "CREATE DATABASE copies TABLESPACE small"
        )
        target = PostgresTarget(server, "copies")
        query = Query(target, tmp_path, {"flush_max_retries": "100", "flush_retry_delay_ms": "50"})
        query.write(0, rows(1, 3))
        found = os.statvfs(disk)
        by_owner("fallocate", "--length", str((found.f_bavail - PAGES_LEFT) * found.f_frsize), disk / "ballast")
        writing = Thread(target=lambda: query.write(1, rows(4, 20_003, "x" * 1000)))
        writing.start()
        wait_for(lambda: "disk is full" in capsys.readouterr().err, "the disk is full")
        assert numbers(target) == [1, 2, 3]
        by_owner("rm", disk / "ballast")
        writing.join()
        assert numbers(target) == list(range(1, 20_004))
