"""Structures of tables at each position of the log."""
