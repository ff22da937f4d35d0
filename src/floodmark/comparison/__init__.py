"""Compares what Debezium and Floodmark have written of the same changes to topics of their own."""
