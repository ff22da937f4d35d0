"""Reading tables: rows of queries as raw columns, as the log's rows."""
