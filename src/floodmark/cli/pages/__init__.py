"""Pages of the documentation that are rendered from the option models."""
