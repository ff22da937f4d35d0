"""The formats of a Delta table: its transaction log, data files and deletion vectors."""
