"""Changes as events, in tasks."""
