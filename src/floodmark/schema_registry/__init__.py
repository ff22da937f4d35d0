"""Schema registries with Confluent's interface: which id a schema has."""
