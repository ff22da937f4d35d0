"""The format of the binlog: its events, one by one and in runs."""
