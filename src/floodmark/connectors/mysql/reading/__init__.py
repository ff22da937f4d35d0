"""Receives the binlog over a connection, and tracks GTIDs, tables and file marks along it."""
