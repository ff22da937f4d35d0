"""Reads a target's table again while the stream goes on, and replaces the target at once."""
