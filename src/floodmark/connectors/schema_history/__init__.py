"""Structures of tables along the log, for databases whose log tells them by statements: what connectors share."""
