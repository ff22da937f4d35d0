"""The planner's side: log, tables and read points."""
