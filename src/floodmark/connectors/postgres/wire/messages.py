"""Offsets and letters of the replication protocol's messages.

Source: PostgreSQL documentation, "Streaming Replication Protocol" (XLogData, Primary keepalive message) and
"Logical Replication Message Formats".
"""

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

# Offsets from the start of a CopyData frame.
FRAME_KIND = 5
WAL_LSN = 6
SENT = 22
KEEPALIVE_END = 6
KEEPALIVE_REPLY = 22
KEEPALIVE_BYTES = 23
PAYLOAD = 30

PG_EPOCH_US = 946_684_800_000_000
"""2000-01-01, PostgreSQL's epoch, in microseconds since 1970."""

OWN_PREFIX = "floodmark"
"""The prefix of the logical decoding messages that Floodmark itself writes; they become no events."""
