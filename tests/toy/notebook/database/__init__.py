"""The toy database itself, without Floodmark: tables in SQLite, and a log in a file."""
