"""Decodes segments of the binlog into change events."""
