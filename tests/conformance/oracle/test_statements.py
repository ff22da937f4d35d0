"""The statements that the connector sends, beside those of Debezium's for the same options on the same stand-in.

``python -m tests.conformance.oracle.test_statements`` writes pages that list all of them.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance.oracle.cases import WHOLE
from tests.conformance.oracle.statements import ADAPTERS, COMPARED, FOLDER, read_sent, sent
from tests.conformance.oracle.test_connector import delivered


@dataclass(frozen=True)
class Purpose:
    """What statements are for.

    Attributes:
        name: what for.
        pattern: what they look like, on both sides.
        why: why the two sides have others; empty: they have the same for each case.
    """

    name: str
    pattern: str
    why: str = ""


_ONE_QUERY = (
    "Floodmark reads all tables by one query each for tables, columns and keys; Debezium asks JDBC and each table."
)
PURPOSES: Sequence[Purpose] = (
    Purpose(
        "rows of the log",
        r"SELECT SCN,SQL_REDO,.* FROM V\$LOGMNR_CONTENTS ",
        "The same, but Floodmark sees all statements about tables, so that structures stay known, and changes of "
        "tables that are gone, which have a number for a name.",
    ),
    Purpose(
        "where open transactions began",
        r"SELECT \* FROM V\$LOGMNR_CONTENTS WHERE OPERATION_CODE IN",
        "Debezium reads the log once more to learn it; Floodmark asks GV$TRANSACTION.",
    ),
    Purpose("logs to mine", r"SELECT MIN\(F\.MEMBER\)AS FILE_NAME,"),
    Purpose("how far the logs go back", r"SELECT MIN\(FIRST_CHANGE#\)"),
    Purpose("size of logs", r"SELECT MAX\(BYTES\)FROM V\$LOG"),
    Purpose("formats of the session", r"ALTER SESSION SET (NLS_|TIME_ZONE)"),
    Purpose("container", r"ALTER SESSION SET CONTAINER="),
    Purpose(
        "adding logs",
        r"BEGIN SYS\.DBMS_LOGMNR\.(ADD|REMOVE)_LOGFILE|SELECT FILENAME AS NAME FROM V\$LOGMNR_LOGS",
        "Floodmark gives LogMiner a new list, where Debezium removes the logs of the last one.",
    ),
    Purpose(
        "mining",
        r"BEGIN SYS\.DBMS_LOGMNR\.(START|END)_LOGMNR",
        "Starting is the same with logminer; with logminer_unbuffered Debezium names no end. Floodmark ends each "
        "session, Debezium at a log switch.",
    ),
    Purpose(
        "flushing the log",
        r".*\"?LOG_MINING_FLUSH|SELECT COUNT\((1|\*)\)FROM USER_TABLES|COMMIT$",
        "Only the spelling differs, and Floodmark looks for the table in the container that it mines in.",
    ),
    Purpose(
        "change numbers and times",
        r"SELECT (CURRENT_SCN FROM V\$DATABASE|SYSTIMESTAMP|SCN_TO_TIMESTAMP|TO_CHAR\(S|1 FROM DUAL WHERE SCN_TO)"
        r"|SELECT TIMESTAMP_TO_SCN",
        "Floodmark reads tables that were altered a moment ago by waiting for ORA-01466; times come with their number.",
    ),
    Purpose(
        "open transactions",
        r"SELECT MIN\(START_SCN\)FROM GV\$TRANSACTION|SELECT P\.LOCAL_TRAN_ID",
        "With logminer Debezium skips them.",
    ),
    Purpose(
        "the database, its threads and settings",
        r"SELECT .*FROM V\$(DATABASE|THREAD|PARAMETER)|SELECT .*NLS_DATABASE_PARAMETERS",
        "Floodmark reads at once what it needs, and which database it is; Debezium asks for each setting.",
    ),
    Purpose(
        "archive destinations",
        r"SELECT .*V\$ARCHIVE_DEST_STATUS",
        "Floodmark reads all of them, Debezium those that are named.",
    ),
    Purpose(
        "figures for metrics",
        r"SELECT .*(V\$STATNAME|R\.STATUS FROM V\$LOGFILE|GROUP#,BYTES FROM V\$LOG|SEQUENCE# FROM V\$LOG"
        r"|FROM V\$ARCHIVED_LOG)",
        "Floodmark has no metrics of the server's memory and of log switches.",
    ),
    Purpose(
        "definitions of tables",
        r"SELECT DBMS_METADATA\.GET_DDL|BEGIN DBMS_METADATA|SELECT COUNT\(1\)FROM ALL_ALL_TABLES",
        "The same; Debezium asks first what kind of table it is, and spells the default settings in another way.",
    ),
    Purpose(
        "structures",
        r"SELECT .*(ALL_TABLES|ALL_OBJECTS|ALL_TAB_COLS|ALL_CONSTRAINTS|ALL_LOG_GROUPS)",
        _ONE_QUERY,
    ),
    Purpose(
        "locks",
        r"LOCK TABLE|ROLLBACK$|SAVEPOINT",
        "Floodmark waits for a lock for ten seconds at most.",
    ),
    Purpose(
        "what a user's own statement reads as of",
        r"BEGIN DBMS_FLASHBACK|SELECT .* FROM\(SELECT ",
        "Debezium reads such tables as they are now.",
    ),
    Purpose(
        "rows of tables",
        r"SELECT .* FROM \"CASES\"\.",
        "Floodmark names its columns by number, and reads what Arrow can't hold as text; Debezium reads large objects "
        "again by their key, and rows on request as they are now.",
    ),
    Purpose("marks of windows", r"INSERT INTO CASES\.SIGNALS", "Floodmark reads as of a number, and needs no marks."),
)


def purpose_of(statement: str) -> Purpose:
    """Return what a statement is for.

    Raises:
        LookupError: nobody has said it.
    """
    for one in PURPOSES:
        if re.match(one.pattern, statement):
            return one
    raise LookupError(f"What is this statement for? {statement}")


def by_purpose(statements: Iterable[str]) -> dict[str, set[str]]:
    """Return statements by what they are for."""
    found: dict[str, set[str]] = {}
    for one in statements:
        found.setdefault(purpose_of(one).name, set()).add(one)
    return found


def ours(adapter: str, name: str, state: Path) -> list[str]:
    """Return what Floodmark sends for a case."""
    case = WHOLE[f"{adapter}/{name}"]
    database = case.prepared()
    delivered(case, state, database)
    return sent(database)


@pytest.mark.parametrize(("adapter", "name"), COMPARED[:4])
def test_statements(adapter: str, name: str, tmp_path: Path) -> None:
    compare(adapter, name, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize(("adapter", "name"), COMPARED[4:])
def test_statements_with_other_options(adapter: str, name: str, tmp_path: Path) -> None:
    compare(adapter, name, tmp_path)


def compare(adapter: str, name: str, state: Path) -> None:
    found, wanted = by_purpose(ours(adapter, name, state)), by_purpose(read_sent(adapter, name))
    for one in PURPOSES:
        if not one.why:
            assert found.get(one.name) == wanted.get(one.name), one.name
    listed = page_of(adapter).read_text(encoding="utf-8")
    for statement in set().union(*found.values(), *wanted.values()):
        assert shown(statement) in listed


def page_of(adapter: str) -> Path:
    """Return the page of an adapter."""
    return FOLDER / f"{adapter}.md"


def shown(statement: str) -> str:
    """Return a statement as a cell of the page's tables has it."""
    return f"`{statement.replace('|', chr(92) + '|')}`"


def page(adapter: str, sides: Mapping[str, tuple[set[str], set[str]]]) -> str:
    """Return the page of an adapter.

    Args:
        adapter: the adapter.
        sides: by purpose, the statements of Debezium's and of Floodmark's.
    """
    count = sum(one == adapter for one, _ in COMPARED)
    lines = [
        f"# The statements that Debezium 3.6.3 and Floodmark send with {adapter}",
        "",
        f"For the options of {count} cases, each statement once; `N` stands for a change number, `?` for a bind.",
        "Written by `python -m tests.conformance.oracle.test_statements`; `test_statements.py` compares.",
        "",
    ]
    for purpose in PURPOSES:
        theirs, found = sides.get(purpose.name, (set(), set()))
        lines += [f"## {purpose.name}", "", purpose.why or "The same for each case.", ""]
        lines += ["| | |", "| --- | --- |"]
        for side, statements in (
            ("both", theirs & found),
            ("Debezium", theirs - found),
            ("Floodmark", found - theirs),
        ):
            lines += [f"| {side} | {shown(one)} |" for one in sorted(statements)]
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    """Write the pages."""
    for adapter in ADAPTERS:
        sides: dict[str, tuple[set[str], set[str]]] = {one.name: (set(), set()) for one in PURPOSES}
        for name in (name for one, name in COMPARED if one == adapter):
            with tempfile.TemporaryDirectory() as state:
                for place, statements in enumerate((read_sent(adapter, name), ours(adapter, name, Path(state)))):
                    for purpose, some in by_purpose(statements).items():
                        sides[purpose][place].update(some)
        page_of(adapter).write_text(page(adapter, sides), encoding="utf-8")


if __name__ == "__main__":
    main()
