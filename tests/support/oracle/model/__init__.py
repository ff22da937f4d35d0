"""The database: a clock, tables, transactions, redo logs."""
