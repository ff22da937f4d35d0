"""Rows of tables: which are read, and how they become events."""
