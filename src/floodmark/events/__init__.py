"""Events as Debezium makes them: envelopes, keys, topics, schemas. Nothing in here knows a database."""
