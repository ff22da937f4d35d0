"""``floodmark status``: the progress of a pipeline, from its checkpoint and its source."""
