"""PostgreSQL's streaming replication protocol: the connection, its frames and its messages."""
