"""The snapshot engine. Nothing in it knows a database."""
