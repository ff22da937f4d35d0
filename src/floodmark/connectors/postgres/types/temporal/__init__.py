"""Types of dates, times and intervals."""
