"""Option models, with Debezium's property names, types and defaults: the parts that all connectors share."""
