"""Types, flags and offsets of binlog events.

A record of a segment is a packet: its header (4 bytes), a zero byte, and the event. Offsets that begin with
``AT_`` count from the start of such a record, the others from the start of the event.

Source: MySQL's documentation, "Binlog Event", and MariaDB's, "2-Binlog Event Header" and its pages on each event.
"""

from __future__ import annotations

QUERY, STOP, ROTATE, INTVAR, RAND, USER_VAR, FORMAT_DESCRIPTION, XID = 2, 3, 4, 5, 13, 14, 15, 16
APPEND_BLOCK, DELETE_FILE, BEGIN_LOAD_QUERY, EXECUTE_LOAD_QUERY = 9, 11, 17, 18
TABLE_MAP = 19
WRITE_ROWS_V1, UPDATE_ROWS_V1, DELETE_ROWS_V1 = 23, 24, 25
INCIDENT, HEARTBEAT, IGNORABLE, ROWS_QUERY = 26, 27, 28, 29
WRITE_ROWS, UPDATE_ROWS, DELETE_ROWS = 30, 31, 32
GTID, ANONYMOUS_GTID, PREVIOUS_GTIDS = 33, 34, 35
TRANSACTION_CONTEXT, VIEW_CHANGE, XA_PREPARE, PARTIAL_UPDATE_ROWS = 36, 37, 38, 39
TRANSACTION_PAYLOAD, HEARTBEAT_V2, TAGGED_GTID = 40, 41, 42

ANNOTATE_ROWS, BINLOG_CHECKPOINT, MARIADB_GTID, GTID_LIST, START_ENCRYPTION = 160, 161, 162, 163, 164
QUERY_COMPRESSED = 165
WRITE_ROWS_COMPRESSED_V1, UPDATE_ROWS_COMPRESSED_V1, DELETE_ROWS_COMPRESSED_V1 = 166, 167, 168
WRITE_ROWS_COMPRESSED, UPDATE_ROWS_COMPRESSED, DELETE_ROWS_COMPRESSED = 169, 170, 171

WRITES = (WRITE_ROWS_V1, WRITE_ROWS, WRITE_ROWS_COMPRESSED_V1, WRITE_ROWS_COMPRESSED)
UPDATES = (UPDATE_ROWS_V1, UPDATE_ROWS, PARTIAL_UPDATE_ROWS, UPDATE_ROWS_COMPRESSED_V1, UPDATE_ROWS_COMPRESSED)
DELETES = (DELETE_ROWS_V1, DELETE_ROWS, DELETE_ROWS_COMPRESSED_V1, DELETE_ROWS_COMPRESSED)
ROWS = (*WRITES, *UPDATES, *DELETES)
COMPRESSED_ROWS = tuple(range(WRITE_ROWS_COMPRESSED_V1, DELETE_ROWS_COMPRESSED + 1))
ROWS_V1 = (WRITE_ROWS_V1, UPDATE_ROWS_V1, DELETE_ROWS_V1, *COMPRESSED_ROWS[:3])
"""Rows events whose header lacks the extra information of version 2."""
GTIDS = (GTID, ANONYMOUS_GTID, TAGGED_GTID, MARIADB_GTID)
"""Events that begin a transaction."""
QUERIES = (QUERY, QUERY_COMPRESSED, EXECUTE_LOAD_QUERY)
LOADED_FILES = (BEGIN_LOAD_QUERY, APPEND_BLOCK, DELETE_FILE)
"""Data of a ``LOAD DATA`` that is logged as a statement; they come before it."""
STATEMENTS = (ROWS_QUERY, ANNOTATE_ROWS)
"""Events with the text of the statement that made the following rows."""
HEARTBEATS = (HEARTBEAT, HEARTBEAT_V2)
OF_THE_FILE = (ROTATE, STOP, FORMAT_DESCRIPTION, PREVIOUS_GTIDS, BINLOG_CHECKPOINT, GTID_LIST, START_ENCRYPTION)
"""Events that belong to no transaction."""
KNOWN = (
    *QUERIES,
    *LOADED_FILES,
    *OF_THE_FILE,
    *(INTVAR, RAND, USER_VAR, XID, TABLE_MAP, INCIDENT, IGNORABLE, TRANSACTION_CONTEXT, VIEW_CHANGE, XA_PREPARE),
    *ROWS,
    *STATEMENTS,
    *GTIDS,
    *HEARTBEATS,
    TRANSACTION_PAYLOAD,
)

HEADER_BYTES = 19
"""The header that all events have."""
CHECKSUM_BYTES = 4

TYPE, SERVER_ID, SIZE, LOG_POS, FLAGS = 4, 5, 9, 13, 17

PACKET = 5
"""Bytes of a record before the event."""
AT_STATUS = 4
AT_TIMESTAMP, AT_TYPE, AT_SERVER_ID, AT_SIZE, AT_LOG_POS, AT_FLAGS = 5, 9, 10, 14, 18, 22
AT_BODY = PACKET + HEADER_BYTES

ARTIFICIAL = 0x20
"""Flag of events that the server made for this connection and that are not in its file."""
IGNORABLE_FLAG = 0x80
"""Flag of events that a reader that doesn't know them may skip."""

OK, END, ERROR = 0x00, 0xFE, 0xFF
"""Values of a packet's first byte."""

ROWS_FLAGS = 6
"""Offset of the flags in a rows event's body."""
STATEMENT_END = 1
"""Flag of a statement's last rows event."""

STANDALONE, DDL_FLAG, PREPARED_XA, COMPLETED_XA = 1, 32, 64, 128
"""Flags of MariaDB's GTID events: the transaction is the one event that follows; it is DDL; it prepares an XA
transaction; it ends a prepared one."""
