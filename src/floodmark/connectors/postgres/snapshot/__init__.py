"""Reads tables: read points, chunks, and the changes that a read contains."""
