"""The planner's side: sessions, log, tables and read points."""
