"""What users can replace: snapshotters and converters, and how installed ones are found."""
