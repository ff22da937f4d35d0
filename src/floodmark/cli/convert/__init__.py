"""``floodmark convert``: makes a pipeline file of a configuration of Debezium."""
