"""Offsets and letters of the replication protocol's messages.

Source: PostgreSQL documentation, "Message Formats" (CopyData and what can come besides it), "Streaming Replication
Protocol" (XLogData, Primary keepalive message) and "Logical Replication Message Formats".
"""

# "Message Formats": the messages that can come besides CopyData.
COPY_DONE, COMMAND_COMPLETE, READY_FOR_QUERY = b"c", b"C", b"Z"
ERROR_RESPONSE, NOTICE_RESPONSE = b"E", b"N"
PARAMETER_STATUS, NOTIFICATION_RESPONSE = b"S", b"A"

WAL_DATA, KEEPALIVE = ord("w"), ord("k")
BEGIN, COMMIT, ORIGIN, RELATION = ord("B"), ord("C"), ord("O"), ord("R")
INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE = (ord(c) for c in "IUDTM")
TYPE = ord("Y")

CHANGES = (INSERT, UPDATE, DELETE, TRUNCATE, MESSAGE)
"""The messages that an ordinal counts; Relation messages depend on the connection, so they don't."""

LEAST_BYTES = {BEGIN: 21, COMMIT: 26, RELATION: 10, INSERT: 8, UPDATE: 8, DELETE: 8, TRUNCATE: 6, MESSAGE: 15}
LEAST_BYTES |= {ORIGIN: 10, TYPE: 7}
"""The size of each message without its variable parts."""
FIXED = (BEGIN, COMMIT)
"""The messages that have no variable parts."""

# "Streaming Replication Protocol": offsets from the start of a CopyData frame.
FRAME_LENGTH = 1
FRAME_KIND = 5
WAL_LSN = 6
SENT = 22
KEEPALIVE_END = 6
KEEPALIVE_REPLY = 22
KEEPALIVE_BYTES = 23
PAYLOAD = 30

# "Logical Replication Message Formats": offsets from a message's type byte.
BEGIN_LSN, BEGIN_TIME, BEGIN_XID = 1, 9, 17
COMMIT_LSN, COMMIT_END, COMMIT_TIME = 2, 10, 18
MESSAGE_FLAGS, MESSAGE_LSN, MESSAGE_PREFIX = 1, 2, 10
ORIGIN_LSN, ORIGIN_NAME = 1, 9
RELATION_OID = 1
CHANGE_OID, CHANGE_TUPLE_KIND, CHANGE_TUPLE = 1, 5, 6
"""Insert, Update and Delete: the table, and the kind and content of the first tuple."""
TRUNCATE_COUNT, TRUNCATE_OIDS = 1, 6
IN_TRANSACTION = 1
"""The bit of a Message's flags for one that is part of a transaction."""

PG_EPOCH_US = 946_684_800_000_000
"""2000-01-01, PostgreSQL's epoch, in microseconds since 1970."""

OWN_PREFIX = "floodmark"
"""The prefix of the logical decoding messages that Floodmark itself writes; they become no events."""
