"""The options of the PostgreSQL connector."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, SecretStr, model_validator

from floodmark.config.common import OPERATIONS, check_words
from floodmark.config.hosts import Host
from floodmark.config.model import OWN, Words, option, pattern_in
from floodmark.config.patterns import Pattern
from floodmark.connectors.postgres import debezium_options
from floodmark.connectors.postgres.replication_options import ReplicationOptions

_IDENTITY = re.compile(r"\s*([^\s:]+):(DEFAULT|FULL|NOTHING|INDEX\s+(\S+))\s*", re.IGNORECASE)


@dataclass(frozen=True)
class IdentityRule:
    """The replica identity that tables are to have.

    Attributes:
        tables: matches ``schema.table``.
        identity: d(efault), n(othing), f(ull), i(ndex).
        index: the index's name, if that is the identity.
    """

    tables: Pattern
    identity: str
    index: str | None = None


def _as_identities(value: object) -> object:
    if not isinstance(value, str):
        return value
    rules = []
    for item in value.split(","):
        parts = _IDENTITY.fullmatch(item)
        if parts is None:
            raise ValueError(f"'{item}' is not of the form <table>:DEFAULT, FULL, NOTHING or INDEX <name>")
        rules.append(IdentityRule(pattern_in(parts[1]), parts[2][0].lower(), parts[3]))
    return tuple(rules)


Identities = Annotated[tuple[IdentityRule, ...], BeforeValidator(_as_identities)]


class PostgresOptions(ReplicationOptions):
    """Options of ``connector=postgres``."""

    accepted = debezium_options.ACCEPTED
    refused = debezium_options.REFUSED
    similar = debezium_options.SIMILAR

    hostname: Host = option("database.hostname", ..., "Host name or address of the server.")
    port: int = option("database.port", 5432, "Port of the server.", ge=1, le=65535)
    user: str = option("database.user", ..., "Role to log in as; it needs LOGIN and REPLICATION.")
    password: SecretStr | None = option("database.password", None, "The role's password.")
    dbname: str = option("database.dbname", ..., "Database to capture.")
    sslmode: Literal["disable", "allow", "prefer", "require", "verify-ca", "verify-full"] = option(
        "database.sslmode", "prefer", "Whether and how to use TLS, as in libpq."
    )
    sslrootcert: str | None = option("database.sslrootcert", None, "File with the accepted authorities' certificates.")
    sslcert: str | None = option("database.sslcert", None, "File with the client's certificate.")
    sslkey: str | None = option("database.sslkey", None, "File with the client's key.")
    sslpassword: SecretStr | None = option("database.sslpassword", None, "Password of the client's key.")
    tcp_keepalive: bool = option("database.tcpKeepAlive", True, "Whether TCP keep-alive probes are sent.")
    connect_timeout_ms: int = option(
        "connect.timeout.ms",
        30_000,
        "How long to wait for a connection.",
        "connect.timeout.ms (MySQL)",
        ge=2000,
    )
    plugin_name: Literal["pgoutput"] = option("plugin.name", "pgoutput", "Logical decoding plug-in.")
    slot_name: str = option("slot.name", "debezium", "Name of the replication slot.", pattern=r"^[a-z0-9_]{1,63}$")
    slot_drop_on_stop: bool = option(
        "slot.drop.on.stop", False, "Whether the slot is dropped when the query stops. Only for tests."
    )
    slot_failover: bool = option(
        "slot.failover", False, "Whether the slot is created as a failover slot (PostgreSQL 17 and later)."
    )
    slot_max_retries: int = option("slot.max.retries", 6, "How often to try again while the slot is in use.", ge=0)
    slot_retry_delay_ms: int = option(
        "slot.retry.delay.ms", 10_000, "Wait between two tries while the slot is in use.", ge=1
    )
    publication_name: str = option(
        "publication.name", "dbz_publication", "Name of the publication.", pattern=r"^.{1,63}$"
    )
    publication_autocreate_mode: Literal["all_tables", "disabled", "filtered", "no_tables"] = option(
        "publication.autocreate.mode",
        "all_tables",
        "What to do if the publication is missing: create it for all tables, don't, create it for the captured "
        "tables (and keep it so), or create it empty.",
    )
    publication_operations: Words = option(
        "publication.operations",
        (),
        "Operations that a publication publishes if Floodmark creates it: `c`, `u`, `d`, `t`; those that "
        "`skipped.operations` doesn't name if not given. Queries that share a publication need those of all.",
        OWN,
    )
    publish_via_partition_root: bool = option(
        "publish.via.partition.root", False, "Whether changes of partitions are published as their root's."
    )
    replica_identity_autoset_values: Identities = option(
        "replica.identity.autoset.values",
        (),
        "Replica identities that captured tables are given at the start, by a role that owns them: "
        "`<table>:DEFAULT|FULL|NOTHING|INDEX <name>,…`, where the table is a regular expression.",
    )
    snapshot_locking_mode: Literal["none", "shared", "custom"] = option(
        "snapshot.locking.mode",
        "none",
        "Whether a snapshot locks its tables until it ends: `shared` keeps them from being altered; each task locks "
        "the table that it reads in any case.",
    )
    snapshot_isolation_mode: Literal["serializable", "repeatable_read", "read_committed", "read_uncommitted"] = option(
        "snapshot.isolation.mode",
        "serializable",
        "No effect: all tasks read the one snapshot that belongs to the log's position.",
    )
    status_update_interval_ms: int = option(
        "status.update.interval.ms",
        10_000,
        "How often the server is told how far the log is processed.",
        ge=100,
    )
    interval_handling_mode: Literal["numeric", "string"] = option(
        "interval.handling.mode", "numeric", "How intervals are represented: microseconds, or ISO 8601 text."
    )
    hstore_handling_mode: Literal["json", "map"] = option(
        "hstore.handling.mode", "json", "How hstore values are represented: as JSON text, or as a map."
    )
    money_fraction_digits: int = option("money.fraction.digits", 2, "Decimal digits of type money.", ge=0, le=30)
    include_unknown_datatypes: bool = option(
        "include.unknown.datatypes",
        False,
        "Whether events hold columns of types without a mapping, as the bytes of their text.",
    )

    @property
    def owner(self) -> str:
        """The name of the source's directory below ``state.dir``; no other source may share it."""
        place = hashlib.sha256(f"{self.hostname}:{self.port}/{self.dbname}".encode()).hexdigest()[:8]
        return f"{self.topic_prefix}-{self.slot_name}-{place}"

    @property
    def busy_wait_s(self) -> float:
        """The total time to wait while another query has the slot."""
        return self.slot_max_retries * self.slot_retry_delay_ms / 1000

    def place_of(self, part: str) -> dict[str, str]:
        """Return what each of several queries of one source needs for itself: a slot, and what it is to publish."""
        own = {"slot.name": f"{self.slot_name}_{part}", **super().place_of(part)}
        if self.publication_autocreate_mode == "filtered":
            return {**own, "publication.name": f"{self.publication_name}_{part}"}
        # The first query that finds no publication creates it for all of them.
        return {**own, "publication.operations": ",".join(OPERATIONS)}

    @property
    def unshared(self) -> dict[str, str]:
        """What no other query may have, by option."""
        filtered = self.publication_autocreate_mode == "filtered"
        own = {"publication.name": self.publication_name} if filtered else {}
        return {**super().unshared, "slot.name": self.slot_name, **own}

    @model_validator(mode="after")
    def _check_operations(self) -> Self:
        check_words("publication.operations", self.publication_operations, OPERATIONS)
        return self

    @model_validator(mode="after")
    def _check_mode(self) -> Self:
        if self.snapshot_mode == "recovery":
            raise ValueError(
                "Option 'snapshot.mode' has the value 'recovery', which PostgreSQL does not have: it rebuilds a lost "
                "schema history, which only MySQL, MariaDB and Oracle have. If the replication slot is lost, use "
                "when_needed."
            )
        return self


class PostgresBatchOptions(PostgresOptions):
    """Options of a batch read (``spark.read``): those of a stream; the ones that only a stream needs have no effect."""

    topic_prefix: str = option("topic.prefix", "batch", "Only for streams.")
    state_dir: str = option("state.dir", "", "Only for streams.", OWN)
    batch_where: str = option(
        "batch.where",
        "",
        "SQL condition, evaluated by the server, on the rows to read: `amount > 10 AND region = 'EU'`.",
        OWN,
    )
    batch_filter_pushdown: bool = option(
        "batch.filter.pushdown",
        False,
        "Whether Spark's filters are evaluated by the server; needs `spark.sql.python.filterPushdown.enabled`. With "
        "Spark 4.3 a DataFrame that was loaded so must be used in one query only, and once in it: see the limits.",
        OWN,
    )
    batch_snapshot_idle_ms: int = option(
        "batch.snapshot.idle.ms",
        600_000,
        "How long the snapshot is held while no task reads from it, at most (at least half of that). After that the "
        "DataFrame must be loaded again.",
        OWN,
        ge=1000,
    )
