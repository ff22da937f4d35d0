"""Structures of tables, and what describes them. Nothing here parses statements."""
