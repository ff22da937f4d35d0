"""Redo records: what was changed, before LogMiner makes statements of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING

from tests.support.oracle.model.tables import Row

if TYPE_CHECKING:
    from tests.support.oracle.model.large_values import Part

NO_ROW = "AAAAAAAAAAAAAAAAAA"


class Operation(IntEnum):
    """``OPERATION_CODE``; the names are those of ``OPERATION``."""

    INTERNAL = 0
    INSERT = 1
    DELETE = 2
    UPDATE = 3
    DDL = 5
    START = 6
    COMMIT = 7
    SELECT_LOB_LOCATOR = 9
    LOB_WRITE = 10
    LOB_TRIM = 11
    REPLICATION_MARKER = 27
    LOB_ERASE = 29
    MISSING_SCN = 34
    ROLLBACK = 36
    XML_BEGIN = 68
    XML_WRITE = 70
    XML_END = 71
    BEGIN_32K = 91
    WRITE_32K = 92
    END_32K = 93
    UNSUPPORTED = 255


OPERATION_NAMES = {
    Operation.SELECT_LOB_LOCATOR: "SEL_LOB_LOCATOR",
    Operation.REPLICATION_MARKER: "REPLICATION MARKER",
    Operation.XML_BEGIN: "XML DOC BEGIN",
    Operation.XML_WRITE: "XML DOC WRITE",
    Operation.XML_END: "XML DOC END",
    Operation.BEGIN_32K: "32K_BEGIN",
    Operation.WRITE_32K: "32K_WRITE",
    Operation.END_32K: "32K_END",
}


@dataclass(frozen=True)
class RedoRecord:
    """A record of a redo log.

    Attributes:
        scn: its system change number.
        thread: the redo thread.
        log: the sequence of the log that it was written to.
        xid: the transaction, 16 hexadecimal digits.
        operation: what it is.
        user: who made the change.
        client: ``CLIENT_ID``; None: not set.
        container: where it was made.
        object_id: the table; 0: none.
        data_object_id: where the table's rows were.
        version: of the table's structure.
        row_id: of the row; None: not shown at all.
        before: the row before; of an update all that is logged.
        after: the row after; of an update only what it sets.
        is_undo: whether it undoes an earlier one (``ROLLBACK=1``).
        statement: the text of DDL, or of what LogMiner shows as it is.
        status: ``STATUS``.
        info: ``INFO``.
        number: the record's place among those of the same number (``SSN``).
        part: what it says of a large value.
        change: the number of the change in its transaction; that which undoes a change has the same.
        same_record: the number of the record that ``RS_ID`` names; 0: its own.
    """

    scn: int
    thread: int
    log: int
    xid: str
    operation: Operation
    user: str = ""
    client: str | None = None
    container: str = ""
    object_id: int = 0
    data_object_id: int = 0
    version: int = 0
    row_id: str | None = NO_ROW
    before: Row = field(default_factory=dict)
    after: Row = field(default_factory=dict)
    is_undo: bool = False
    statement: str | None = None
    status: int = 0
    info: str | None = None
    number: int = 0
    part: Part | None = None
    change: int = 0
    same_record: int = 0
