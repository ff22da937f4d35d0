"""What is made of the rows of V$LOGMNR_CONTENTS."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from floodmark.capture.spool_files import SpoolFiles
from floodmark.connectors.oracle.mining.operations import Operation
from floodmark.connectors.oracle.mining.row_ids import NO_ROW_ID
from floodmark.connectors.oracle.mining.spooling.spooled_rows import SpooledRows
from floodmark.connectors.oracle.mining.statement_pieces import StatementPieces
from floodmark.connectors.oracle.mining.transactions import (
    Committed,
    MemoryStore,
    OpenTransactions,
    RowStore,
    Statement,
    Unshown,
)
from floodmark.connectors.oracle.mining.undone import UndoneChanges
from tests.support.oracle.model.database import OracleDatabase
from tests.support.oracle.model.tables import column
from tests.support.oracle.model.transactions import Transaction
from tests.support.oracle.sql.session import Session

SCHEMA = pa.schema([("SCN", pa.int64()), ("SQL_REDO", pa.string()), ("CSF", pa.int64())])
STATEMENTS = st.lists(st.one_of(st.none(), st.lists(st.text("ab'é", max_size=3), min_size=1, max_size=4)), max_size=8)


def rows_of(statements: list[list[str] | None]) -> pa.Table:
    """Return rows of statements, each cut into pieces, or null."""
    rows = [
        {"SCN": scn, "SQL_REDO": piece, "CSF": int(number < len(pieces or [None]) - 1)}
        for scn, pieces in enumerate(statements)
        for number, piece in enumerate(pieces or [None])
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


@given(STATEMENTS, st.lists(st.integers(0, 30), max_size=4))
def test_statements_are_put_together_wherever_the_rows_are_cut(
    statements: list[list[str] | None], cuts: list[int]
) -> None:
    rows = rows_of(statements)
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    pieces = StatementPieces()
    found = [row for begin, end in pairwise(bounds) for row in pieces.whole(rows.slice(begin, end - begin)).to_pylist()]
    assert [row["SCN"] for row in found] == list(range(len(statements)))
    assert [row["SQL_REDO"] for row in found] == [None if one is None else "".join(one) for one in statements]
    assert pieces.is_whole


def test_a_statement_that_has_not_come_whole() -> None:
    pieces = StatementPieces()
    rows = rows_of([["a", "b", "c"]])
    assert pieces.whole(rows.slice(0, 2)).num_rows == 0
    assert not pieces.is_whole
    assert pieces.whole(rows.slice(2)).to_pylist()[0]["SQL_REDO"] == "abc"


@dataclass
class Unit:
    """Rows of a change, and the row that undoes it.

    Attributes:
        rows: operation, ROWID and record of each.
        inverse: operation and ROWID.
    """

    rows: list[tuple[Operation, str | None, str]]
    inverse: tuple[Operation, str]


UNNAMED = st.sampled_from([None, NO_ROW_ID])


@st.composite
def units(draw: st.DrawFn) -> Unit:
    """Return a change of a row, as LogMiner shows it of tables with and without large values."""
    row_id, none = draw(st.sampled_from(["B", "C"])) * 18, draw(UNNAMED)
    one, other = draw(st.uuids()).hex, draw(st.uuids()).hex
    kind = draw(st.sampled_from([Operation.INSERT, Operation.UPDATE, Operation.DELETE, Operation.LOB_WRITE]))
    inverse = {Operation.INSERT: Operation.DELETE, Operation.DELETE: Operation.INSERT}.get(kind, Operation.UPDATE)
    if kind == Operation.LOB_WRITE:
        pieces = [(kind, draw(st.sampled_from([row_id, none])), other)] * draw(st.integers(0, 2))
        return Unit([(Operation.SELECT_LOB_LOCATOR, row_id, one), *pieces], (inverse, row_id))
    if kind == Operation.DELETE or draw(st.booleans()):
        return Unit([(kind, row_id, one)], (inverse, row_id))
    rows: list[tuple[Operation, str | None, str]] = [(kind, none, one)]
    for begin, piece in draw(
        st.lists(
            st.sampled_from(
                [
                    (Operation.SELECT_LOB_LOCATOR, Operation.LOB_WRITE),
                    (Operation.BEGIN_32K, Operation.WRITE_32K),
                ]
            ),
            max_size=3,
        )
    ):
        rows += [(begin, none, one), (piece, none, other)]
    if draw(st.booleans()):
        rows += [
            (Operation.XML_BEGIN, none, other),
            (Operation.XML_WRITE, none, other),
            (Operation.XML_END, none, other),
        ]
    return Unit([*rows, (Operation.UPDATE, row_id, other)], (inverse, row_id))


HISTORY = st.lists(st.tuples(st.sampled_from("TU"), st.one_of(units(), st.integers(1, 3))), max_size=12)


def shown(
    table: str, operation: Operation, row_id: str | None, record: str, inverse: bool = False
) -> dict[str, object]:
    return {
        "OPERATION_CODE": int(operation),
        "SEG_OWNER": "S",
        "TABLE_NAME": table,
        "ROW_ID": row_id,
        "RS_ID": record,
        "ROLLBACK": int(inverse),
    }


def kept(given: list[dict[str, object]], cuts: list[int]) -> tuple[list[int], list[str]]:
    """Return the numbers of the rows that remain, and the ROWIDs of inverse rows that undo nothing."""
    bounds = [0, *sorted(min(cut, len(given)) for cut in cuts), len(given)]
    undone, masks = UndoneChanges(), []
    for begin, end in reversed(list(pairwise(bounds))):
        masks.append(undone.kept(rows(*given[begin:end])))
    return np.flatnonzero(np.concatenate(masks[::-1])).tolist(), undone.unmatched


@given(HISTORY, st.lists(st.integers(0, 40), max_size=3))
def test_what_is_undone(history: list[tuple[str, Unit | int]], cuts: list[int]) -> None:
    given_rows: list[dict[str, object]] = []
    done: list[tuple[str, Unit, list[int]]] = []
    for table, step in history:
        if isinstance(step, Unit):
            numbers = list(range(len(given_rows), len(given_rows) + len(step.rows)))
            given_rows += [shown(table, *row) for row in step.rows]
            done.append((table, step, numbers))
            continue
        for _ in range(min(step, len(done))):
            where, unit, _ = done.pop()
            given_rows.append(shown(where, *unit.inverse, "undo", inverse=True))
    assert kept(given_rows, cuts) == ([number for *_, numbers in done for number in numbers], [])


B, C = "B" * 18, "C" * 18
Shown = tuple[Operation, str | None, str]


@pytest.mark.parametrize(
    ("changes", "inverse", "remaining"),
    [
        # The row that has the ROWID isn't read.
        (
            [
                (Operation.INSERT, NO_ROW_ID, "1"),
                (Operation.UPDATE, B, "2"),
                (Operation.SELECT_LOB_LOCATOR, NO_ROW_ID, "3"),
                (Operation.LOB_WRITE, NO_ROW_ID, "4"),
            ],
            (Operation.UPDATE, B),
            [0, 1],
        ),
        (
            [
                (Operation.INSERT, NO_ROW_ID, "1"),
                (Operation.SELECT_LOB_LOCATOR, NO_ROW_ID, "1"),
                (Operation.LOB_WRITE, NO_ROW_ID, "2"),
                (Operation.SELECT_LOB_LOCATOR, NO_ROW_ID, "3"),
                (Operation.LOB_WRITE, NO_ROW_ID, "4"),
            ],
            (Operation.UPDATE, B),
            [0, 1, 2],
        ),
        # An insert is undone with all that was done to its row.
        (
            [
                (Operation.INSERT, C, "0"),
                (Operation.INSERT, None, "1"),
                (Operation.SELECT_LOB_LOCATOR, None, "1"),
                (Operation.LOB_WRITE, None, "2"),
                (Operation.UPDATE, B, "3"),
                (Operation.SELECT_LOB_LOCATOR, B, "4"),
                (Operation.LOB_WRITE, B, "5"),
            ],
            (Operation.DELETE, B),
            [0],
        ),
        # Pieces that aren't read are undone.
        ([(Operation.UPDATE, B, "1"), (Operation.INSERT, C, "2")], (Operation.UPDATE, B), [0, 1]),
        ([(Operation.UPDATE, C, "1")], (Operation.UPDATE, None), [0]),
        ([(Operation.INSERT, B, "1")], (Operation.INSERT, B), [0]),
        ([], (Operation.DELETE, None), []),
    ],
)
def test_what_is_undone_of_large_values(
    changes: list[Shown], inverse: tuple[Operation, str | None], remaining: list[int]
) -> None:
    given_rows = [*(shown("T", *one) for one in changes), shown("T", *inverse, "undo", inverse=True)]
    for cut in range(len(given_rows)):
        found, unmatched = kept(given_rows, [cut])
        assert found == remaining
        assert unmatched == ([inverse[1] or NO_ROW_ID] if len(remaining) == len(changes) else [])


def test_inverse_rows_without_a_rowid() -> None:
    """They were sorted with others that have one."""
    given_rows = [shown("T", Operation.UPDATE, one, "undo", inverse=True) for one in (None, B, None)]
    assert kept(given_rows, []) == ([], [NO_ROW_ID, NO_ROW_ID, B])


CONTENTS = "SCN, XID, OPERATION_CODE, ROW_ID, ROLLBACK, SQL_REDO, CSF, SEG_OWNER, TABLE_NAME, INFO"
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["insert", "update", "delete", "savepoint", "undo", "commit", "rollback"]), st.integers(0, 1)
    ),
    min_size=10,
    max_size=40,
)


def written(steps: list[tuple[str, int]]) -> OracleDatabase:
    """Return a database in which two sessions have done what steps say, as far as that is possible."""
    database = OracleDatabase()
    table = database.create_table("S", "T", [column("ID", "NUMBER"), column("V", "NUMBER")], ["ID"], logged=False)
    open_: dict[int, Transaction] = {}
    own: dict[int, list[str]] = {}
    saved: dict[int, list[str]] = {}
    for number, (what, session) in enumerate(steps):
        transaction = open_.setdefault(session, database.begin())
        rows = own.setdefault(session, [])
        if what == "insert":
            rows.append(transaction.insert(table, ID=number, V=number))
        elif what in ("update", "delete") and rows:
            if what == "update":
                transaction.update(table, rows[-1], V=-number)
            else:
                transaction.delete(table, rows.pop())
        elif what == "savepoint":
            transaction.savepoint("s")
            saved[session] = list(rows)
        elif what == "undo" and session in saved:
            transaction.rollback_to("s")
            own[session] = list(saved[session])
        elif what in ("commit", "rollback"):
            getattr(transaction, what)()
            del open_[session]
            saved.pop(session, None)
            # Later transactions change what remains.
            own[session] = own[session] if what == "commit" else []
    for transaction in open_.values():
        transaction.commit()
    return database


def mined(session: Session, committed_only: bool) -> pa.Table:
    """Return the contents of the only log."""
    options = ["DICT_FROM_ONLINE_CATALOG", "NO_ROWID_IN_STMT", *(["COMMITTED_DATA_ONLY"] if committed_only else [])]
    shown = " + ".join(f"DBMS_LOGMNR.{one}" for one in options)
    if not session.logminer.files:
        session.execute("BEGIN DBMS_LOGMNR.ADD_LOGFILE(LOGFILENAME => '/redo/redo01.log'); END;")
    session.execute(f"BEGIN DBMS_LOGMNR.START_LOGMNR(startScn => '1', endScn => '0', options => {shown}); END;")
    result = session.execute(f"SELECT {CONTENTS} FROM V$LOGMNR_CONTENTS WHERE OPERATION_CODE > 0")
    names = [one.name for one in result.columns or ()]
    rows = [dict(zip(names, row, strict=True)) for row in result.rows]
    kinds = {"SCN": pa.int64(), "OPERATION_CODE": pa.int64(), "ROLLBACK": pa.int64(), "CSF": pa.int64()}
    arrays = {
        name: pa.array(
            [row[name].hex() if name == "XID" else int(row[name]) if name in kinds else row[name] for row in rows],
            kinds.get(name, pa.string()),
        )
        for name in names
    }
    return pa.table(arrays)


def sorted_into_transactions(
    rows: pa.Table, cuts: list[int], store: RowStore | None = None
) -> list[tuple[str, list[str]]]:
    """Return committed transactions with their statements."""
    transactions = OpenTransactions(store or MemoryStore())
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    return [
        (one.xid, [text for piece in one.changes for text in piece["SQL_REDO"].to_pylist()])
        for begin, end in pairwise(bounds)
        for one in transactions.add(rows.slice(begin, end - begin))
        if isinstance(one, Committed)
    ]


@settings(deadline=None, max_examples=60)
@given(STEPS, st.lists(st.integers(0, 60), max_size=4))
def test_committed_transactions_are_those_that_logminer_itself_shows(
    steps: list[tuple[str, int]], cuts: list[int]
) -> None:
    database = written(steps)
    session = Session(database, database.account)
    expected: dict[str, list[str]] = {}
    for row in mined(session, committed_only=True).to_pylist():
        if row["OPERATION_CODE"] in (1, 2, 3):
            expected.setdefault(row["XID"], []).append(row["SQL_REDO"])
    all_rows = mined(session, committed_only=False)
    assert sorted_into_transactions(all_rows, cuts) == list(expected.items())
    with tempfile.TemporaryDirectory() as directory:
        files = SpoolFiles(directory, "owner")
        # Nothing stays in memory.
        store = SpooledRows(files, all_rows.schema, memory_bytes=0)
        assert sorted_into_transactions(all_rows, cuts, store) == list(expected.items())
        store = SpooledRows(files, all_rows.schema)
        assert files.held_bytes == 0


def rows(*given: dict[str, object]) -> pa.Table:
    """Return rows of the view; what isn't given is of no matter."""
    schema = pa.schema(
        [
            *((name, pa.int64()) for name in ("SCN", "OPERATION_CODE", "ROLLBACK", "THREAD#")),
            *(
                (name, pa.string())
                for name in ("XID", "ROW_ID", "SQL_REDO", "SEG_OWNER", "TABLE_NAME", "INFO", "RS_ID")
            ),
        ]
    )
    defaults = {"ROLLBACK": 0, "THREAD#": 1, "ROW_ID": "none"}
    return pa.Table.from_pylist([{**defaults, "SCN": scn, **row} for scn, row in enumerate(given, 1)], schema)


FIRST, SECOND, LOST, NONE = "0a000100000000bb", "0a000100000000cc", "0a000100ffffffff", "0" * 16


def row(operation: Operation, xid: str | None, row_id: str = "none", **more: object) -> dict[str, object]:
    return {"OPERATION_CODE": int(operation), "XID": xid, "ROW_ID": row_id, "SQL_REDO": row_id, **more}


def test_a_transaction_that_is_read_again_begins_anew() -> None:
    transactions = OpenTransactions(MemoryStore())
    begun = [row(Operation.START, FIRST), row(Operation.INSERT, FIRST, "r1")]
    assert not list(transactions.add(rows(*begun)))
    assert transactions.oldest_scn == 1
    (found,) = transactions.add(rows(*begun, row(Operation.COMMIT, FIRST)))
    assert isinstance(found, Committed)
    assert [len(piece) for piece in found.changes] == [1]
    assert transactions.oldest_scn is None


def test_a_rollback_whose_transaction_is_only_partly_named() -> None:
    transactions = OpenTransactions(MemoryStore())
    given = [
        row(Operation.START, FIRST),
        row(Operation.INSERT, FIRST, "r1"),
        row(Operation.ROLLBACK, LOST),
        row(Operation.COMMIT, FIRST),
    ]
    assert not list(transactions.add(rows(*given)))


def test_a_commit_whose_transaction_is_only_partly_named() -> None:
    given = [row(Operation.START, FIRST), row(Operation.INSERT, FIRST, "r1"), row(Operation.COMMIT, LOST)]
    for cut in range(len(given)):
        assert sorted_into_transactions(rows(*given), [cut]) == [(FIRST, ["r1"])]


def test_a_change_whose_transaction_is_only_partly_named() -> None:
    given = [
        row(Operation.INSERT, FIRST, "r1"),
        row(Operation.UPDATE, LOST, "r2"),
        row(Operation.INSERT, FIRST, "r3"),
        row(Operation.COMMIT, FIRST),
    ]
    for cut in range(len(given)):
        assert sorted_into_transactions(rows(*given), [cut]) == [(FIRST, ["r1", "r2", "r3"])]


@pytest.mark.parametrize("xid", [None, NONE])
def test_what_belongs_to_no_transaction_holds_nothing_back(xid: str | None) -> None:
    transactions = OpenTransactions(MemoryStore())
    given = [
        row(Operation.START, xid),
        row(Operation.INSERT, xid, "nobody's"),
        row(Operation.MISSING_SCN, xid, INFO="gap"),
        row(Operation.INSERT, FIRST, "r1"),
    ]
    told = list(transactions.add(rows(*given)))
    assert [one.scn for one in told if isinstance(one, Unshown)] == [2, 3]
    assert len(told) == 2
    assert transactions.oldest_scn == len(given)
    (found,) = transactions.add(rows(row(Operation.COMMIT, FIRST)))
    assert isinstance(found, Committed)
    assert found.xid == FIRST


def test_a_rollback_that_may_mean_several_transactions_changes_nothing() -> None:
    transactions = OpenTransactions(MemoryStore())
    given = [
        *(row(Operation.START, xid) for xid in (FIRST, SECOND)),
        *(row(Operation.INSERT, xid, xid) for xid in (FIRST, SECOND)),
        row(Operation.ROLLBACK, LOST),
        *(row(Operation.COMMIT, xid) for xid in (FIRST, SECOND)),
    ]
    told, *committed = transactions.add(rows(*given))
    assert isinstance(told, Unshown)
    assert f"one of {FIRST}, {SECOND}" in told.what
    assert len(committed) == 2


def test_what_is_not_shown_is_told() -> None:
    transactions = OpenTransactions(MemoryStore())
    given = [
        row(Operation.UNSUPPORTED, FIRST, SEG_OWNER="S", TABLE_NAME="T", INFO="a type"),
        row(Operation.UNSUPPORTED, FIRST),
        row(Operation.MISSING_SCN, None),
        row(Operation.INSERT, LOST, SEG_OWNER="S", TABLE_NAME="T"),
    ]
    unsupported, missing, lost = (one for one in transactions.add(rows(*given)) if isinstance(one, Unshown))
    assert unsupported == Unshown(1, "The log has a change of S.T that LogMiner can't show (a type).")
    assert missing == Unshown(3, "The logs that LogMiner reads lack redo.")
    assert lost == Unshown(4, "The log has a change of S.T whose transaction LogMiner doesn't name.")


def test_commits_of_one_number_come_in_the_order_of_their_positions() -> None:
    given = [
        *(row(Operation.INSERT, xid, xid) for xid in (FIRST, SECOND)),
        {**row(Operation.COMMIT, SECOND, SCN=7), "THREAD#": 1},
        {**row(Operation.COMMIT, FIRST, SCN=7), "THREAD#": 1},
    ]
    assert sorted_into_transactions(rows(*given), []) == [(FIRST, [FIRST]), (SECOND, [SECOND])]
    given[2]["THREAD#"], given[3]["THREAD#"] = 1, 2
    assert sorted_into_transactions(rows(*given), []) == [(SECOND, [SECOND]), (FIRST, [FIRST])]


def test_an_inverse_row_whose_transaction_is_only_partly_named() -> None:
    given = [
        *(row(Operation.START, xid) for xid in (FIRST, SECOND)),
        *(row(Operation.INSERT, xid, xid) for xid in (FIRST, SECOND)),
        row(Operation.DELETE, LOST, SECOND, ROLLBACK=1),
        row(Operation.INSERT, SECOND, "last"),
        *(row(Operation.COMMIT, xid) for xid in (FIRST, SECOND)),
    ]
    for cut in range(len(given)):
        assert sorted_into_transactions(rows(*given), [cut]) == [(FIRST, [FIRST]), (SECOND, ["last"])]


def test_a_replication_s_own_transaction_is_left_out() -> None:
    given = [
        row(Operation.START, FIRST),
        row(Operation.INSERT, FIRST, "r1"),
        row(Operation.REPLICATION_MARKER, FIRST),
        row(Operation.COMMIT, FIRST),
    ]
    assert sorted_into_transactions(rows(*given), []) == []


def test_statements_about_tables_come_in_their_order() -> None:
    transactions = OpenTransactions(MemoryStore())
    given = [row(Operation.INSERT, FIRST, "r1"), row(Operation.DDL, SECOND, "alter"), row(Operation.COMMIT, FIRST)]
    first, second = transactions.add(rows(*given))
    assert isinstance(first, Statement)
    assert first.row["SQL_REDO"].to_pylist() == ["alter"]
    # Its beginning wasn't seen.
    assert isinstance(second, Committed)
    assert second.start_scn == 1


@pytest.mark.parametrize("named", [FIRST, LOST])
@pytest.mark.parametrize("end", [Operation.COMMIT, Operation.ROLLBACK])
def test_an_abandoned_transaction_stays_left_out_until_it_ends(end: Operation, named: str) -> None:
    transactions = OpenTransactions(MemoryStore())
    assert not list(transactions.add(rows(row(Operation.START, FIRST), row(Operation.INSERT, FIRST, "r1"))))
    assert not transactions.abandon(0)
    assert transactions.abandon(1) == {FIRST: 1}
    assert transactions.oldest_scn is None
    again = OpenTransactions(MemoryStore(), transactions.abandoned)
    for one in (transactions, again):
        change = row(Operation.UPDATE, named, "r1", SEG_OWNER="S", TABLE_NAME="T")
        assert not list(one.add(rows(row(Operation.START, FIRST), row(Operation.INSERT, FIRST, "r2"), change)))
        assert (one.oldest_scn, one.abandoned) == (None, (FIRST,))
        assert not list(one.add(rows(row(end, named))))
        assert one.abandoned == ()


def test_of_an_old_transaction_without_changes_nothing_is_left_out() -> None:
    transactions = OpenTransactions(MemoryStore())
    assert not list(transactions.add(rows(row(Operation.START, FIRST))))
    assert transactions.abandon(1) == {}
    assert transactions.oldest_scn is None
    (found,) = transactions.add(rows(row(Operation.INSERT, FIRST, "r1"), row(Operation.COMMIT, FIRST)))
    assert isinstance(found, Committed)
