"""Values of row events: from the bytes of the binlog to columns."""
