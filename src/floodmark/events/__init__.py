"""Events as Debezium makes them: envelopes, keys, topics, schemas; independent of the database."""
