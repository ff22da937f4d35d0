"""Transforms of records, as Kafka Connect has them, applied to whole columns before records become JSON text."""
