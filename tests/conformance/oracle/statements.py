"""The statements that connectors send for the same options, in a form in which they can be compared."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from tests.conformance.oracle.cases.case import Case
from tests.conformance.oracle.golden import GOLDENS
from tests.support.oracle.model.database import OracleDatabase

ADAPTERS = ("logminer", "logminer_unbuffered")
CASES = (
    "options/plain",
    "options/lob",
    "options/comments",
    "options/no_schema_changes",
    "options/no_locks",
    "options/one_log",
    "options/small_fetches",
    "options/tables_none",
    "options/tables_in",
    "options/tables_regex",
    "options/without_tables_none",
    "options/users_none",
    "options/users_in",
    "options/users_regex",
    "options/without_users_in",
    "options/clients",
    "snapshots/no_data",
    "snapshots/some_tables",
    "snapshots/override",
    "snapshots/incremental",
    "snapshots/blocking",
    "generated/001",
)
"""The cases whose statements are compared; the last one has two redo threads."""
LACKING = {("logminer_unbuffered", "snapshots/incremental")}
"""Those that aren't recorded with an adapter."""
COMPARED = tuple((adapter, name) for name in CASES for adapter in ADAPTERS if (adapter, name) not in LACKING)
FOLDER = GOLDENS / "statements"
_QUOTED = re.compile(r"""('(?:[^']|'')*'|"[^"]*")""")
_LONG_NUMBER = re.compile(r"\d{6,}")
_BIND = re.compile(r":\w+|\?")
_SPACE = re.compile(r"\s*([(),=<>|;]+)\s*")


def normalised(text: str) -> str:
    """Return a statement in capitals but for what is quoted, without needless blanks, and ``N`` for change numbers."""
    parts = _QUOTED.split(_LONG_NUMBER.sub("N", text.strip().removesuffix(";")))
    for place in range(0, len(parts), 2):
        plain = _BIND.sub("?", re.sub(r"\s+", " ", parts[place].upper()))
        parts[place] = _SPACE.sub(r"\1", plain)
    return "".join(parts)


def sent(database: OracleDatabase) -> list[str]:
    """Return the statements that sessions have sent, each once, in the order of their first time."""
    return list(dict.fromkeys(normalised(one.text) for one in list(database.statements)))


def write_sent(case: Case, statements: Iterable[str]) -> None:
    """Write what Debezium sent for a case."""
    path = _path(case.adapter, case.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{one}\n" for one in statements), encoding="utf-8")


def read_sent(adapter: str, name: str) -> list[str]:
    """Return what Debezium sent for a case."""
    return _path(adapter, name).read_text(encoding="utf-8").splitlines()


def _path(adapter: str, name: str) -> Path:
    return FOLDER / adapter / f"{name.replace('/', '_')}.txt"
