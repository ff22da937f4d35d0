"""Decodes segments of the log into change events."""
