"""Options of other connectors: Debezium's that have no effect here or are refused, and those that are similar."""

from __future__ import annotations

from collections.abc import Mapping

from floodmark.config import debezium
from floodmark.config.debezium import JAVA_CLASS, Foreign
from floodmark.connectors.registry import CONNECTORS

_THREADS = "a snapshot's tasks run on Spark's cores; see snapshot.max.threads and snapshot.chunk.bytes"
_FLUSH = "what the server may discard is sent without waiting for an answer"

ACCEPTED: Mapping[str, Foreign] = {
    **debezium.ACCEPTED,
    "connector.class": Foreign("the option connector names the database", (CONNECTORS["postgres"].debezium_class,)),
    "driver.<property>": Foreign("libpq has other parameters than the JDBC driver; see database.initial.statements"),
    "include.schema.comments": Foreign("Debezium adds comments to schemas of other databases only"),
    "legacy.snapshot.max.threads": Foreign(_THREADS),
    "lsn.flush.timeout.action": Foreign(_FLUSH),
    "lsn.flush.timeout.ms": Foreign(_FLUSH),
    "memory.management.<what>.class": Foreign("no history of schemas is held in memory"),
    "schema.history.internal": Foreign("there is no schema history"),
    "schema.history.internal.<option>": Foreign("there is no schema history"),
    "schema.refresh.mode": Foreign(
        "the log announces each version of a table, so a missing large value never looks like an alteration",
        ("columns_diff", "columns_diff_exclude_unchanged_toast"),
    ),
    "slot.seek.to.known.offset.on.start": Foreign("see offset.mismatch.strategy"),
    "snapshot.max.threads.multiplier": Foreign(_THREADS),
    "snapshot.max.threads.multiplier.<table>": Foreign(_THREADS),
    "sourceinfo.struct.maker": Foreign(JAVA_CLASS, ("io.debezium.connector.postgresql.PostgresSourceInfoStructMaker",)),
}
REFUSED: Mapping[str, str] = {
    **debezium.REFUSED,
    "database.sslfactory": f"{JAVA_CLASS}; see database.sslmode and the options beside it",
}
SIMILAR: Mapping[str, str] = {
    "database.include.list": "database.dbname",
    "database.ssl.keystore": "database.sslcert",
    "database.ssl.keystore.password": "database.sslpassword",
    "database.ssl.mode": "database.sslmode",
    "database.ssl.truststore": "database.sslrootcert",
}
