"""A front of lines of JSON over TCP, for the JDBC driver that Debezium uses (``tests/conformance/oracle``).

Each request is an object in a line, and so is each answer:

- ``{"login": user, "password": …}``, which must come first;
- ``{"sql": …, "binds": […]}``, answered with ``columns`` (pairs of name and type) and ``rows``, or with ``changed``;
- ``{"metadata": method, "arguments": […]}``: a method of ``java.sql.DatabaseMetaData``.

An error is ``{"error": {"code": …, "message": …}}``. Values are texts; the type says how to read them.
"""

from __future__ import annotations

import json
import socketserver
from collections.abc import Sequence
from datetime import timedelta
from decimal import Decimal
from typing import Any

from tests.support.oracle.errors import OracleError
from tests.support.oracle.fronts import jdbc_metadata
from tests.support.oracle.fronts.front import Front, Served
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.types import OracleType
from tests.support.oracle.model.values import moment, number_text
from tests.support.oracle.sql.result import Result, ResultColumn
from tests.support.oracle.sql.session import Session


class JsonServer(Front[Served]):
    """Serves a database; use it as a context manager.

    Args:
        database: what is served.
        sessions: makes a client's session.
    """

    def __init__(self, database: OracleDatabase, sessions: type[Session] = Session) -> None:
        super().__init__(Served(("127.0.0.1", 0), _Handler), database, sessions)


def row_text(columns: Sequence[ResultColumn], values: Sequence[Any]) -> bytes:
    """Return a row of an answer."""
    return json.dumps([value_text(one.type, value) for one, value in zip(columns, values, strict=True)]).encode()


class _Handler(socketserver.StreamRequestHandler):
    server: Served

    def handle(self) -> None:
        session: Session | None = None
        for line in self.rfile:
            request = json.loads(line)
            try:
                if session is None:
                    session = _login(self.server, request)
                    answer = _line({"changed": 0})
                else:
                    answer = _answer(session, request)
            except OracleError as exc:
                answer = _line({"error": {"code": exc.code, "message": exc.message}})
            self.wfile.write(answer)
        if session is not None:
            session.close()


def _login(server: Served, request: dict[str, Any]) -> Session:
    account = server.database.accounts.get(str(request["login"]).upper())
    if account is None or account.password != request["password"]:
        raise OracleError(1017)
    return server.sessions(server.database, account.name)


def _answer(session: Session, request: dict[str, Any]) -> bytes:
    if "metadata" in request:
        columns, rows = jdbc_metadata.answer(session, request["metadata"], request["arguments"])
        return _line({"columns": [[name, "VARCHAR2"] for name in columns], "rows": rows})
    result: Result = session.execute(request["sql"], request["binds"])
    if result.columns is None:
        return _line({"changed": result.changed})
    described = json.dumps([[one.name, one.type.base] for one in result.columns]).encode()
    return b'{"columns": ' + described + b', "rows": [' + b", ".join(result.encoded(row_text)) + b"]}\n"


def _line(answer: dict[str, Any]) -> bytes:
    return json.dumps(answer).encode() + b"\n"


def value_text(type_: OracleType, value: Any) -> str | None:
    """Return a value as a text; None for null."""
    if value is None:
        return None
    if type_.base in {"NUMBER", "FLOAT"}:
        return number_text(Decimal(value)) if not isinstance(value, float) else repr(value)
    if type_.base == "DATE" or type_.base.startswith("TIMESTAMP"):
        when = moment(value)
        offset = when.time.utcoffset()
        text = f"{when.time.replace(tzinfo=None, microsecond=0).isoformat(' ')}.{when.fraction}"
        return text if offset is None else f"{text} {_offset(offset)}"
    if isinstance(value, bytes):
        return value.hex()
    if type_.base in {"CHAR", "NCHAR"}:
        return str(value).ljust(type_.length)
    return str(value)


def _offset(offset: timedelta) -> str:
    minutes = int(offset.total_seconds()) // 60
    sign = "-" if minutes < 0 else "+"
    return f"{sign}{abs(minutes) // 60:02d}:{abs(minutes) % 60:02d}"
