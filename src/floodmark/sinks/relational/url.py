"""JDBC URLs: where a target database is. Floodmark reads them itself; no JDBC driver is involved."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal
from urllib.parse import parse_qsl, unquote

from pydantic import BeforeValidator

from floodmark.config.model import nearest

Kind = Literal["postgres", "mysql"]

_URL = re.compile(r"jdbc:(\w+)://([^/?#]*)/([^/?#]*)(?:\?(.*))?", re.DOTALL)
_HOST = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[\w.-]+)(?::(\d{1,5}))?")
_KINDS: Mapping[str, tuple[Kind, int]] = {
    "postgresql": ("postgres", 5432),
    "mysql": ("mysql", 3306),
    "mariadb": ("mysql", 3306),
}
_PARAMETERS: Mapping[Kind, tuple[str, ...]] = {
    "postgres": ("currentSchema", "sslmode", "sslrootcert", "sslcert", "sslkey", "targetServerType"),
    "mysql": ("sslMode", "serverSslCert"),
}
MYSQL_MODES = {
    "disabled": "disabled",
    "disable": "disabled",
    "preferred": "preferred",
    "required": "required",
    "trust": "required",
    "verify_ca": "verify_ca",
    "verify_identity": "verify_identity",
    "verify_full": "verify_identity",
}
"""Values of ``sslMode``, among them those of MariaDB's driver, and what they mean."""
_VALUES: Mapping[str, tuple[str, ...]] = {
    "sslmode": ("disable", "allow", "prefer", "require", "verify-ca", "verify-full"),
    "sslMode": tuple(MYSQL_MODES),
    "targetServerType": ("any", "primary", "master"),
}
_LOGIN = ("user", "username", "password", "sslpassword")
_SHAPE = "it must be jdbc:postgresql://<host>:<port>/<database>, or begin with jdbc:mysql:// or jdbc:mariadb://"


@dataclass(frozen=True)
class JdbcUrl:
    """Where a target database is.

    Attributes:
        kind: what kind of database it is.
        hosts: names or addresses of its servers, with their ports; several only with PostgreSQL.
        database: its name.
        parameters: those after the question mark, by their names.
    """

    kind: Kind
    hosts: tuple[tuple[str, int], ...]
    database: str
    parameters: Mapping[str, str]

    def __str__(self) -> str:
        """Return it without parameters, for messages."""
        return f"{self.place}/{self.database}"

    @property
    def place(self) -> str:
        """The servers, for messages."""
        return ",".join(f"{host}:{port}" for host, port in self.hosts)


def parse_url(text: str) -> JdbcUrl:
    """Return what a JDBC URL says.

    Raises:
        ValueError: it is not one that can be used. The message has no part of the URL that may be a password.
    """
    found = _URL.fullmatch(text.strip())
    if found is None or found[1] not in _KINDS:
        raise ValueError(_SHAPE)
    if "@" in found[2]:
        raise ValueError(f"the login belongs into connection.username and connection.password; {_SHAPE}")
    kind, port = _KINDS[found[1]]
    hosts = [_host(one, port) for one in found[2].split(",")]
    if len(hosts) > 1 and kind != "postgres":
        raise ValueError("only URLs of PostgreSQL may name several servers")
    if not found[3]:
        raise ValueError(f"it names no database; {_SHAPE}")
    parameters = parse_qsl(found[4] or "", keep_blank_values=True)
    return JdbcUrl(kind, tuple(hosts), unquote(found[3]), dict(_known(name, value, kind) for name, value in parameters))


def _host(text: str, port: int) -> tuple[str, int]:
    found = _HOST.fullmatch(text)
    if found is None or not 0 < int(found[2] or port) < 1 << 16:
        raise ValueError(f"the host is missing or wrong; {_SHAPE}")
    return found[1].strip("[]"), int(found[2] or port)


def _known(name: str, value: str, kind: Kind) -> tuple[str, str]:
    if name.lower() in _LOGIN:
        raise ValueError("the login belongs into connection.username and connection.password")
    known = {one.lower(): one for one in _PARAMETERS[kind]}
    if name.lower() not in known:
        hint = nearest(name, list(known.values())) or f"Allowed are {', '.join(known.values())}"
        raise ValueError(f"it has the parameter '{name}', which Floodmark doesn't know. {hint}")
    return known[name.lower()], _allowed(known[name.lower()], value)


def _allowed(name: str, value: str) -> str:
    """Return a parameter's value as it is written in the list of those that are allowed, if there is one."""
    if name not in _VALUES:
        return value
    as_listed = {one.replace("_", "-"): one for one in _VALUES[name]}
    given = value.lower().replace("_", "-")
    if given not in as_listed:
        hint = nearest(value, _VALUES[name]) or f"Allowed are {', '.join(_VALUES[name])}"
        raise ValueError(f"its parameter '{name}' has the value '{value}', which is not allowed. {hint}")
    return as_listed[given]


def _as_url(value: object) -> object:
    return parse_url(value) if isinstance(value, str) else value


UrlOption = Annotated[JdbcUrl, BeforeValidator(_as_url)]
