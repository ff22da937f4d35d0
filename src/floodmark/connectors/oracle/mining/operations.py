"""The kinds of rows in ``V$LOGMNR_CONTENTS``, by ``OPERATION_CODE``."""

from __future__ import annotations

from enum import IntEnum


class Operation(IntEnum):
    """What a row says; Oracle's documentation of the view names some of them."""

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


ROW_CHANGES = (Operation.INSERT, Operation.DELETE, Operation.UPDATE)
LARGE_OBJECTS = (
    Operation.SELECT_LOB_LOCATOR,
    Operation.LOB_WRITE,
    Operation.LOB_TRIM,
    Operation.LOB_ERASE,
    Operation.XML_BEGIN,
    Operation.XML_WRITE,
    Operation.XML_END,
    Operation.BEGIN_32K,
    Operation.WRITE_32K,
    Operation.END_32K,
)
"""The parts of values that LogMiner shows apart from their rows."""
CHANGES = (*ROW_CHANGES, *LARGE_OBJECTS)
"""What belongs to the changes of a transaction."""
