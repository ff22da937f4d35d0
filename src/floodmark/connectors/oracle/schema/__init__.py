"""How tables are made at each position of the log."""
