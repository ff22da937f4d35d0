"""Reading the tables of a target, to compare them with the source's."""
