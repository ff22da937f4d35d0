"""Structures of tables, and what they are described with. Nothing here reads statements."""
