"""What administrators do: users, what their tables log, log switches, and the end of sessions."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.support.oracle.errors import OracleError
from tests.support.oracle.model.database import Account
from tests.support.oracle.sql.result import Result

if TYPE_CHECKING:
    from tests.support.oracle.sql.session import Session

Statement = Callable[["Session", re.Match[str]], None]


def administer(session: Session, text: str) -> Result | None:
    """Run a statement of an administrator's; None: it is none that the stand-in knows."""
    for form, run in _FORMS:
        found = form.fullmatch(text)
        if found is not None:
            run(session, found)
            return Result()
    return None


def _create_user(session: Session, found: re.Match[str]) -> None:
    name = found["name"].upper()
    if name in session.database.accounts:
        raise OracleError(1920, name)
    session.database.accounts[name] = Account(name, found["password"])


def _drop_user(session: Session, found: re.Match[str]) -> None:
    name = found["name"].upper()
    if session.database.accounts.pop(name, None) is None:
        raise OracleError(1918, name)
    for table in [one for one in session.database.tables if one.owner == name and not one.dropped]:
        session.database.drop_table(table, session.user)


def _log_all(session: Session, found: re.Match[str]) -> None:
    table = session.database.table(session.schema, found["name"], session.container)
    session.database.ddl(table, found[0], session.user, supplemental=True)


def _switch(session: Session, found: re.Match[str]) -> None:
    del found
    session.database.switch_log()


def _kill(session: Session, found: re.Match[str]) -> None:
    other = session.database.sessions.get(int(found["number"]))
    if other is None:
        raise OracleError(30)
    other.cut()


def _form(text: str) -> re.Pattern[str]:
    return re.compile(text.replace(" ", r"\s+"), re.IGNORECASE)


_FORMS: tuple[tuple[re.Pattern[str], Statement], ...] = (
    (
        _form(r'CREATE USER (?P<name>\w+) IDENTIFIED BY "(?P<password>[^"]+)"(?: QUOTA UNLIMITED ON USERS)?'),
        _create_user,
    ),
    (_form(r"DROP USER (?P<name>\w+) CASCADE"), _drop_user),
    (_form(r'ALTER TABLE "(?P<name>[^"]+)" ADD SUPPLEMENTAL LOG DATA [(]ALL[)] COLUMNS'), _log_all),
    (_form(r"ALTER SYSTEM SWITCH LOGFILE"), _switch),
    (_form(r"ALTER SYSTEM KILL SESSION '(?P<number>\d+),\d+' IMMEDIATE"), _kill),
)
