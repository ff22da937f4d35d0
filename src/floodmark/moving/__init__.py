"""Takes queries over from Debezium, hands them back, and moves them to other places of their logs."""
