"""XA transactions: prepared ones are kept until they are committed or rolled back."""
