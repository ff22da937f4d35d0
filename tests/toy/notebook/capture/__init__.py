"""Moves bytes, in the driver."""
