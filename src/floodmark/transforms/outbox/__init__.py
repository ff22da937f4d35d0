"""Debezium's router of an outbox table's events."""
