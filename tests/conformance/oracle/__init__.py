"""Oracle: our readers of what LogMiner writes, beside the classes in Debezium's own jars."""
