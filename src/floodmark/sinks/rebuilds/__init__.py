"""What targets that are rebuilt have in common, whatever they are kept in."""
