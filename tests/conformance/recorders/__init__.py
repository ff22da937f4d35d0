"""How Debezium's events of a case are recorded, a module for each kind of server."""
