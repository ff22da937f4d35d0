"""Iceberg tables that Floodmark itself commits to a catalogue, through pyiceberg, without Spark and without jars."""
