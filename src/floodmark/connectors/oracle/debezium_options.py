"""Options of other connectors: Debezium's that have no effect here or are refused, and those that are similar."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.config import debezium
from floodmark.config.debezium import JAVA_CLASS, Foreign
from floodmark.connectors.registry import CONNECTORS

_SPOOL = "rows of open transactions are kept in state.dir, so that memory doesn't grow with them"
_THREADS = "a snapshot's tasks run on Spark's cores; see snapshot.max.threads and snapshot.chunk.bytes"

_WINDOWS = "windows are measured in logs; see log.mining.log.count.min"

ACCEPTED: Mapping[str, Foreign] = {
    **{name: foreign for name, foreign in debezium.ACCEPTED.items() if name != "query.fetch.size"},
    "connector.class": Foreign("the option connector names the database", (CONNECTORS["oracle"].debezium_class,)),
    "driver.<property>": Foreign("there is no JDBC driver; see database.initial.statements"),
    "legacy.snapshot.max.threads": Foreign(_THREADS),
    "log.mining.archive.log.only.scn.poll.interval.ms": Foreign("see log.mining.poll.interval.ms"),
    "log.mining.batch.size.<option>": Foreign(_WINDOWS),
    "log.mining.buffer.<option>": Foreign(_SPOOL),
    "log.mining.log.count.growth.max": Foreign("a window begins where the last one ended, whatever is open"),
    "log.mining.scn.gap.detection.<option>": Foreign(_WINDOWS),
    "log.mining.sleep.time.<option>": Foreign("see log.mining.poll.interval.ms"),
    "log.mining.window.max.ms": Foreign("a window begins where the last one ended, whatever is open"),
    "memory.management.<what>.class": Foreign("the tables' structures are held in memory"),
    "schema.history.internal": Foreign("the tables' structures are kept in state.dir"),
    "schema.history.internal.<option>": Foreign("the tables' structures are kept in state.dir"),
    "snapshot.database.errors.max.retries": Foreign("a task that fails is run again by Spark"),
    "snapshot.max.threads.multiplier": Foreign(_THREADS),
    "snapshot.max.threads.multiplier.<table>": Foreign(_THREADS),
    "sourceinfo.struct.maker": Foreign(JAVA_CLASS, ("io.debezium.connector.oracle.OracleSourceInfoStructMaker",)),
}
REFUSED: Mapping[str, str] = {
    **debezium.REFUSED,
    "log.mining.continuous.mine": "Oracle 19c and later don't have it",
    "log.mining.readonly.hostname": "see secondary.hostname and capture.mode",
    "log.mining.restart.connection": "see log.mining.session.max.ms",
}
SIMILAR: Mapping[str, str] = {
    "database.include.list": "schema.include.list",
    "database.exclude.list": "schema.exclude.list",
    "database.service.name": "database.dbname",
    "database.out.server.name": "xstream.out.server.name",
    "database.sslmode": "database.ssl",
    "database.ssl.mode": "database.ssl",
}
