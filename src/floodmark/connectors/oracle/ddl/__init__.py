"""The grammar of DDL statements, and how they change the structures of tables."""
