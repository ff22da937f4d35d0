"""Reading tables: read points, chunks, and which changes a read contains."""
