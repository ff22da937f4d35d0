"""What the writers of mirrors by Spark share, whatever the format of their tables."""
