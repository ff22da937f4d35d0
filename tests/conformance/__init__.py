"""Comparisons with Debezium, field by field."""
