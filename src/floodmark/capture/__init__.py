"""Reads the log once, in order, into segment files; independent of the database."""
