"""Rows of any database, as columns, and the events that they are made into."""
