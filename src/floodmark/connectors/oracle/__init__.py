"""Oracle: the connector that reads its redo log."""
