"""Structures of tables at each place of the log."""
