"""SQL_REDO: the statements in which LogMiner shows changes of rows."""
