"""Debezium's own stores: offsets and the schema history, as its connectors write and read them."""
