"""What real OpenLogReplicator servers have sent of a real log.

They read logs of Oracle Free 23.6 that are public (``tests/fixtures`` of github.com/rophy/OpenLogReplicator), with an
insert into ``TEST_CDC (ID NUMBER PRIMARY KEY, NAME VARCHAR2(100))``: release 1.9.0, and sources of 19 February 2026.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pytest

from floodmark.connectors.oracle.position import Position
from floodmark.connectors.oracle.redo.scanner import Side
from floodmark.connectors.oracle.replicator.documents import read_documents
from floodmark.connectors.oracle.replicator.transactions import Changes, Checkpoint, Transactions
from floodmark.connectors.oracle.structures.table import Column, Table
from floodmark.connectors.oracle.values.messages import rows_of
from floodmark.errors import DecodeError

RECORDED: dict[str, list[str]] = json.loads(
    (Path(__file__).parents[1] / "conformance/goldens/oracle/openlogreplicator.json").read_text()
)
XID = "0A000C003C020000"
CHECKPOINTS = [2_267_707, 2_267_710, 2_267_714, 2_267_714, 2_267_717, 2_267_720, 2_267_720]
"""Each piece of the log has one with the number that it begins with, and a log that ends another one."""


def table(id_: Column) -> Table:
    return Table("FREEPDB1", "OLR_TEST", "TEST_CDC", (id_, Column("NAME", "VARCHAR2", True, 100)), ("ID",))


def sent(name: str) -> tuple[Changes, list[Checkpoint]]:
    lines = RECORDED[name]
    messages = [bytes.fromhex(one) if name == "protobuf" else one.encode() for one in lines]
    documents = read_documents(messages, lambda owner, table: (owner, table) == ("OLR_TEST", "TEST_CDC"))
    assert documents.database == "FREEPDB1"
    changes, *checkpoints = Transactions(1 << 20).add(documents)
    assert isinstance(changes, Changes)
    return changes, [one for one in checkpoints if isinstance(one, Checkpoint)]


@pytest.mark.parametrize("name", RECORDED)
def test_a_transaction_and_checkpoints(name: str) -> None:
    changes, checkpoints = sent(name)
    # The release has the number of an earlier change as that of the commit.
    number = 2_267_707 if "1.9.0" in name else 2_267_708
    assert changes.commit == Position(number, 0, XID)
    assert (changes.ends, changes.is_statement, changes.seconds) == (True, False, 1_772_847_880)
    row = changes.rows.to_pylist()[0]
    assert (row["SEG_OWNER"], row["TABLE_NAME"], row["ROW_ID"]) == ("OLR_TEST", "TEST_CDC", "AAARwWAAYAAAAAOAAA")
    assert (row["SEQUENCE#"], row["XID"], row["SCN"]) == (1, XID.lower(), 2_267_707)
    assert [one.scn for one in checkpoints] == CHECKPOINTS[: len(checkpoints)]
    assert len(checkpoints) >= 5


@pytest.mark.parametrize("name", RECORDED)
def test_its_row(name: str) -> None:
    entries: pa.StringArray = sent(name)[0].rows["SQL_REDO"].combine_chunks()
    rows = rows_of(entries, table(Column("ID", "NUMBER", False)))
    if name == "protobuf":
        with pytest.raises(DecodeError, match="rounds numbers of the column 'ID'"):
            rows.columns(Side.NEW)
        # It would be exact, had the column few digits.
        rows = rows_of(entries, table(Column("ID", "NUMBER", False, 6, 0)))
    assert [one.values.to_pylist() for one in rows.columns(Side.NEW)] == [["1"], ["hello world"]]
