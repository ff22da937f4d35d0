"""The options that say how the database is reached, and its standby and further instances."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, SecretStr, model_validator

from floodmark.config.common import CommonOptions
from floodmark.config.hosts import Host
from floodmark.config.model import OWN, Words, option, statements

_URL = re.compile(r"jdbc:oracle:(?P<driver>thin|oci):@(?://)?(?P<address>.+)", re.IGNORECASE | re.DOTALL)
"""A JDBC URL of Oracle's drivers; what follows is what python-oracledb calls a DSN."""
_HAS_PORT = re.compile(r":\d+$")
NAME = r"^[A-Za-z][A-Za-z0-9_$#]{0,127}$"
"""A name that SQL takes without quotes."""


def lower(value: object) -> object:
    """Return a text in lower case: Debezium's values ignore case."""
    return value.lower() if isinstance(value, str) else value


Adapter = Annotated[Literal["logminer", "logminer_unbuffered", "olr", "xstream"], BeforeValidator(lower)]
"""Debezium's documentation writes ``LogMiner``."""


class ConnectionOptions(CommonOptions):
    """Options of connections."""

    hostname: Host | None = option(
        "database.hostname", None, "Host name or address of the server; required unless `database.url` is given."
    )
    port: int = option("database.port", 1528, "Port of the listener; Oracle's own default is 1521.", ge=1, le=65535)
    user: str = option("database.user", ..., "Account to log in as; with containers a common one, such as C##CDC.")
    password: SecretStr | None = option("database.password", None, "The account's password.")
    dbname: str = option(
        "database.dbname", ..., "Service name of the database; with containers that of the container database."
    )
    url: str | None = option(
        "database.url",
        None,
        "Address instead of `database.hostname` and `database.port`: `jdbc:oracle:thin:@…`, with what Oracle's drivers "
        "take as a connect string behind the `@`; with the adapter `xstream` also `jdbc:oracle:oci:@…`.",
        secret=True,
    )
    pluggable: str = option(
        "database.pdb.name", "", "Name of the pluggable database; to be left out if there are no containers."
    )
    tls: bool = option(
        "database.ssl", False, "Whether the connection is encrypted with TLS; a `database.url` says it itself.", OWN
    )
    tls_wallet: str | None = option(
        "database.ssl.wallet", None, "Directory with `ewallet.pem`: the accepted authorities and the client's key.", OWN
    )
    tls_wallet_password: SecretStr | None = option(
        "database.ssl.wallet.password", None, "Password of the key in it.", OWN
    )
    connect_timeout_ms: int = option(
        "connect.timeout.ms",
        30_000,
        "How long to wait for a connection.",
        "connect.timeout.ms (MySQL)",
        ge=1000,
    )
    query_timeout_ms: int = option(
        "database.query.timeout.ms", 600_000, "How long the server may take for an answer; 0: without end.", ge=0
    )
    initial_statements: str = option(
        "database.initial.statements",
        "",
        "Statements to run at the beginning of each session, separated by `;` (`;;` is a semicolon).",
        "database.initial.statements (PostgreSQL)",
        secret=True,
    )
    adapter: Adapter = option(
        "database.connection.adapter",
        "logminer",
        "How the log is read: with LogMiner, which shows changes before it is known whether they are committed, or "
        "(`logminer_unbuffered`) only committed transactions, which it then puts together in the server's memory; or "
        "from an OpenLogReplicator server (`olr`), or from an XStream outbound server of the database (`xstream`).",
        "same, with more values",
    )
    capture_mode: Literal["primary", "physical_standby"] = option(
        "capture.mode",
        "primary",
        "Where the log is mined: in the database whose tables are captured, or in a physical standby (`secondary.*`).",
    )
    secondary_hostname: Host | None = option(
        "secondary.hostname", None, "Host name or address of the standby; with the same account as the primary."
    )
    secondary_port: int | None = option(
        "secondary.port",
        None,
        "Port of its listener; `database.port` if left out.",
        "same; its default is 1528",
        ge=1,
        le=65535,
    )
    secondary_url: str | None = option(
        "secondary.url", None, "Its address instead of these, as in `database.url`.", secret=True
    )
    secondary_dbname: str | None = option("secondary.dbname", None, "Its service name; `database.dbname` if left out.")
    rac_nodes: Words = option(
        "rac.nodes",
        (),
        "Hosts of a cluster's instances, each with `:port` if it isn't `database.port`: all of them must write their "
        "log, or changes wait for those that have nothing to write.",
    )

    @model_validator(mode="after")
    def _check_address(self) -> Self:
        if self.url is None and self.hostname is None:
            raise ValueError("Option 'database.hostname' is required, unless 'database.url' is given.")
        is_oci = self.url is not None and driver_of(self.url) == "oci"
        if self.url is not None and not (driver_of(self.url) == "thin" or (is_oci and self.receives_lcrs)):
            raise ValueError(
                "Option 'database.url' has a value that is not allowed: it must begin with 'jdbc:oracle:thin:@'; "
                "Oracle's other drivers need libraries that Floodmark doesn't use."
            )
        return self

    @model_validator(mode="after")
    def _check_pluggable(self) -> Self:
        if self.pluggable and not re.fullmatch(NAME, self.pluggable):
            raise ValueError(
                f"Option 'database.pdb.name' has the value '{self.pluggable}', which is not allowed: it must be a name "
                "of letters, digits, '_', '$' and '#'."
            )
        return self

    def _given(self) -> set[str]:
        """Return the names of the options that aren't left out."""
        return {type(self).model_fields[name].alias or name for name in self.model_fields_set}

    @property
    def replicates(self) -> bool:
        """Whether the log comes from an OpenLogReplicator server."""
        return self.adapter == "olr"

    @property
    def receives_lcrs(self) -> bool:
        """Whether the log comes from an XStream outbound server."""
        return self.adapter == "xstream"

    @property
    def mines(self) -> bool:
        """Whether the log comes from LogMiner."""
        return not (self.replicates or self.receives_lcrs)

    @property
    def address(self) -> str:
        """What python-oracledb connects to, without account and password."""
        return self._address_of(self.url, self.hostname, self.port, self.dbname)

    @property
    def mines_standby(self) -> bool:
        """Whether the log is mined in a standby."""
        return self.capture_mode == "physical_standby"

    @property
    def mining_address(self) -> str:
        """The address of the database that mines the log."""
        if not self.mines_standby:
            return self.address
        port, dbname = self.secondary_port or self.port, self.secondary_dbname or self.dbname
        return self._address_of(self.secondary_url, self.secondary_hostname, port, dbname)

    def _address_of(self, url: str | None, host: str | None, port: int, dbname: str) -> str:
        found = None if url is None else _URL.fullmatch(url)
        if found is not None:
            return found["address"]
        protocol = "tcps://" if self.tls else ""
        shown = f"[{host}]" if ":" in str(host) else host
        return f"{protocol}{shown}:{port}/{dbname}"

    def node_addresses(self) -> list[str]:
        """Return what python-oracledb connects to for each of ``rac.nodes``."""
        protocol = "tcps://" if self.tls else ""
        return [
            f"{protocol}{node if _HAS_PORT.search(node) else f'{node}:{self.port}'}/{self.dbname}"
            for node in self.rac_nodes
        ]

    @property
    def place(self) -> str:
        """The address as errors show it: no part that may hold a password."""
        return "database.url" if self.url is not None else self.address

    @property
    def database(self) -> str:
        """What events name as the database: the pluggable one, if there is one."""
        return (self.pluggable or self.dbname).upper()

    def session_statements(self) -> list[str]:
        """Return ``database.initial.statements``, one by one."""
        return statements(self.initial_statements)


def driver_of(url: str) -> str:
    """Return the driver that a URL is for, ``thin`` or ``oci``; empty if it is for none of Oracle's."""
    found = _URL.fullmatch(url)
    return "" if found is None else found["driver"].lower()
