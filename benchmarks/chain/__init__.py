"""What a user would write without Floodmark: Debezium in Kafka Connect, a topic, and Spark's MERGE into Delta."""
