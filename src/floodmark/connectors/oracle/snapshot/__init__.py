"""Reads rows of tables."""
