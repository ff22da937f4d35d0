"""Reads tables: rows of queries become raw columns, like the log's rows."""
