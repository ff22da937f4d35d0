"""Receiving the binlog over a connection, and what is tracked along it."""
