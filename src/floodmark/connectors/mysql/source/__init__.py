"""The planner's side of the connector: the source's connections, log, tables and read points."""
