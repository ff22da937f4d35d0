"""Options that are complete, for tests that connect to nothing."""

REQUIRED = {
    "connector": "postgres",
    "database.hostname": "db",
    "database.user": "cdc",
    "database.dbname": "shop",
    "topic.prefix": "shop",
    "state.dir": "/state",
}

REQUIRED_MYSQL = {**REQUIRED, "connector": "mysql"}
del REQUIRED_MYSQL["database.dbname"]
