"""A stand-in for an Oracle server: a small model of one, which evaluates the statements that it is sent.

No Oracle server can be had where the tests run. What a connector does against this one shows that it follows the rules
that are known of Oracle (and that Debezium follows), and nothing about Oracle itself. It shares no code with the
connector.

``model`` has the database: tables with the history of their rows, redo threads with logs, transactions. ``mining`` has
LogMiner. ``sql`` answers statements: DuckDB evaluates queries, and whatever isn't understood is refused. ``fronts``
lets clients connect.
"""
