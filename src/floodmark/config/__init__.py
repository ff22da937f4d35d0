"""Options: one model per connector, with Debezium's property names, types and defaults."""
