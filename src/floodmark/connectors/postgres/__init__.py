"""PostgreSQL: pgoutput over logical replication, and exported snapshots."""
