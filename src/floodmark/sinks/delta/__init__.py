"""Delta tables, written without Spark's Delta: files, deletion vectors and the transaction log."""
