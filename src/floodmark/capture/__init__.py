"""Reading the log once, in order, into segment files. Nothing in here knows a database."""
