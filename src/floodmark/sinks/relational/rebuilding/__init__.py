"""Targets of a relational database that are rebuilt: their shadows, and the transaction that takes their rows over."""
