"""Plans micro-batches: what each holds, and where the query is."""
