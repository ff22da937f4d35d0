"""The schema history: the statements that changed tables, by position, in files or a Kafka topic."""
