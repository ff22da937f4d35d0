"""Writes keys and values as Avro, as Confluent's ``AvroConverter`` does: whole columns at once."""
