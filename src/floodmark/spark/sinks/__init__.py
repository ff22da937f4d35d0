"""Where Spark writes to: what a micro-batch becomes there."""
