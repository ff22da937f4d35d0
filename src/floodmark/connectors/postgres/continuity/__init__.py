"""Whether the log still continues from the stored position, and whether the publication lets everything through."""
