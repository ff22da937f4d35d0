"""Batch reads of one table."""
