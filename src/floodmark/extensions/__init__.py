"""The interfaces that users can implement, snapshotters and converters, and the discovery of installed ones."""
