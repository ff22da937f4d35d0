"""What users get wrong, and the message that each mistake gets: ``docs/mistakes.md``.

Run ``python -m tests.support.mistakes docs/mistakes.md`` after a change of a message, and read what has changed as a
user would: a message says what happened, where, what is allowed, and what is nearest to what was written.
"""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import yaml

import floodmark
from floodmark.cli.checks.environment import check_iceberg, check_packages
from floodmark.cli.convert.command import Wanted, convert_file
from floodmark.cli.main import app
from floodmark.connectors.contract.findings import Finding
from floodmark.connectors.load import load_batch_options, load_options
from floodmark.connectors.postgres.server.refusals import cause_of
from floodmark.errors import FloodmarkError
from floodmark.signals.table import signal_table_finding
from floodmark.sinks.options import MirrorOptions
from floodmark.spark.delta.runtime import delta_package
from floodmark.spark.iceberg.runtime import iceberg_package, require_catalogue
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.places import check_places
from floodmark.spark.preflight import preflight
from floodmark.spark.versions import require_spark
from tests.support.options import REQUIRED, REQUIRED_MYSQL

POSTGRES = {**REQUIRED, "state.dir": "state"}
MYSQL = {**REQUIRED_MYSQL, "state.dir": "state"}
PIPELINE: dict[str, Any] = {"source": POSTGRES, "sink": {"type": "noop"}, "checkpoint": "checkpoint"}
FILE = Path("pipeline.yaml")
CONFIGURATION = Path("connector.json")
OTHER = '{{"connector.class": "io.debezium.connector.{}"}}'
KAFKA = "org.apache.spark:spark-sql-kafka-0-10_{}:{}"
HISTORY = "io.debezium.storage.kafka.history.KafkaSchemaHistory"

INTRODUCTION = """# Mistakes and their messages

What Floodmark says of what is easily written wrongly. On the command line a message follows `error:`; from Python it is
the message of the error that `load()` raises ([Errors](index.md#errors)); `floodmark check` shows it in two columns,
*finding* and *fix*. An unknown name is answered with the nearest one, if one is near.

This page is generated, and a test compares it with what is said.
"""


@dataclass(frozen=True)
class Mistake:
    """A mistake.

    Attributes:
        written: what the user wrote, for the page.
        make: does it; raises the error, or returns what was found.
    """

    written: str
    make: Callable[[], object]

    def message(self) -> str:
        """Return what the user is told."""
        try:
            found = self.make()
        except FloodmarkError as exc:
            return " ".join(str(exc).split())
        if isinstance(found, list):
            found = next((item for item in found if item.status != "ok"), None)
        if isinstance(found, Finding) and found.status != "ok":
            return f"{found.finding} {found.fix}".strip()
        raise AssertionError(f"{self.written} is no mistake: {found}")


def option(*written: str, base: dict[str, str] = POSTGRES, without: Sequence[str] = ()) -> Mistake:
    """Return options of a stream, each as ``name=value``, that are given beside those that must be."""
    given = dict(item.split("=", 1) for item in written)
    options = {name: value for name, value in base.items() if name not in without} | given
    database = " (MySQL)" if base is MYSQL else ""
    return Mistake(_shown(written) + database, lambda: load_options(options))


def mysql(*written: str, without: Sequence[str] = ()) -> Mistake:
    """Return the same for MySQL."""
    return option(*written, base=MYSQL, without=without)


def in_avro(*written: str) -> Mistake:
    """Return options of a stream whose values are Avro."""
    converter = ("value.converter=io.confluent.connect.avro.AvroConverter",)
    url = ("value.converter.schema.registry.url=http://registry:8081",)
    return Mistake(_shown([*converter, *written]), option(*converter, *url, *written).make)


def missing(name: str, base: dict[str, str] = POSTGRES) -> Mistake:
    """Return an option that must be given and isn't."""
    made = option(base=base, without=[name])
    return Mistake(f"no `{name}`{made.written}", made.make)


def loaded(*written: str, words: str = "") -> Mistake:
    """Return options that are found wrong by ``load``."""
    options = POSTGRES | dict(item.split("=", 1) for item in written)
    return Mistake(_shown(written) + words, lambda: preflight(load_options(options)))


def batch(*written: str) -> Mistake:
    """Return options of a batch read."""
    base = {name: value for name, value in POSTGRES.items() if name not in ("topic.prefix", "state.dir")}
    options = base | dict(item.split("=", 1) for item in written)
    return Mistake(_shown(written), lambda: load_batch_options(options))


def given(written: str, **values: Any) -> Mistake:
    """Return options that a program gives in other types than text."""
    return Mistake(written, lambda: load_options({**POSTGRES, **values}))


def text(written: str, content: str) -> Mistake:
    """Return the text of a pipeline file."""

    def make() -> object:
        FILE.write_text(content, encoding="utf-8")
        return load_file(FILE, {})

    return Mistake(written, make)


def key(written: str, /, **changes: Any) -> Mistake:
    """Return a pipeline file that is right but for some keys; those that are None are missing."""
    content = {name: value for name, value in {**PIPELINE, **changes}.items() if value is not None}
    return text(written, yaml.safe_dump(content))


def sinks(written: str, /, **given: Any) -> Mistake:
    """Return a pipeline file with several sinks."""
    return key(written, sink=None, sinks=given)


def noop(source: dict[str, str]) -> dict[str, Any]:
    """Return one of several sinks, with options of its source."""
    return {"type": "noop", "source": source}


JDBC = {
    "no URL": {"connection.url": ""},
    "connection.url: postgresql://db/shop": {"connection.url": "postgresql://db/shop"},
    "connection.url: jdbc:postgresql://cdc:secret@db/shop": {"connection.url": "jdbc:postgresql://cdc:secret@db/shop"},
    "connection.url: jdbc:mysql://db/shop?useSSL=true": {"connection.url": "jdbc:mysql://db/shop?useSSL=true"},
    "connection.url: jdbc:postgresql://db/shop?sslmode=requires": {
        "connection.url": "jdbc:postgresql://db/shop?sslmode=requires"
    },
    "connection.user: cdc": {"connection.user": "cdc"},
    "collection.name.format: all": {"collection.name.format": "all"},
    "table.name.format: t": {"table.name.format": "t"},
    "insert.mode: insert": {"insert.mode": "insert"},
    "delete.enabled: false": {"delete.enabled": "false"},
    "schema.evolution: advanced": {"schema.evolution": "advanced"},
}
"""Mistakes in options of the sink jdbc."""


CREATION = {"topic.creation.default.partitions": "1", "topic.creation.default.replication.factor": "1"}
TO_KAFKA = {
    "kafka.key.serializer: …": {"kafka.key.serializer": "x"},
    "kafka.transactional.id: shop": {"kafka.transactional.id": "shop"},
    "kafka.acks: 0": {"kafka.acks": "0"},
    "engine: java": {"engine": "java"},
    "kafka.ssl.keystore.key: …": {"kafka.ssl.keystore.key": "…"},
    "compression.type: zstd": {"compression.type": "zstd"},
    "topic.creation.default.partitions: 3": {"topic.creation.default.partitions": "3"},
    "topic.creation.orders.partitions: 3": {"topic.creation.orders.partitions": "3"},
    "topic.creation.groups: orders": {**CREATION, "topic.creation.groups": "orders"},
    "topic.creation.default.partitions: many": {**CREATION, "topic.creation.default.partitions": "many"},
}
"""Mistakes in options of the sink kafka."""


def kafka(options: dict[str, str]) -> dict[str, Any]:
    """Return a sink with options, besides the brokers."""
    return {"type": "kafka", "options": {"kafka.bootstrap.servers": "k:9092", **options}}


def jdbc(options: dict[str, str]) -> dict[str, Any]:
    """Return a sink with options, besides a URL."""
    given = {"connection.url": "jdbc:postgresql://db/shop", **options}
    return {"type": "jdbc", "options": {name: value for name, value in given.items() if value}}


def mirror(options: dict[str, str]) -> dict[str, Any]:
    """Return the sink of a pipeline file."""
    return {"type": "mirror", "path": "x", "options": options}


LAKE = {"catalog.schema": "lake.shop"}
WRONG_JAR = {
    "spark.sql.catalog.lake": "org.apache.iceberg.spark.SparkCatalog",
    "spark.jars.packages": "org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:1.11.0",
}


def iceberg(options: dict[str, str] | None = None) -> dict[str, Any]:
    """Return the sink of a pipeline file, with Iceberg's format."""
    return {"type": "mirror", "format": "iceberg", "path": "x", "options": options or {}}


def iceberg_options(options: dict[str, str]) -> MirrorOptions:
    """Return options of a mirror with Iceberg's format."""
    return MirrorOptions.parse({"format": "iceberg", **options})


def iceberg_checked(spark: str, properties: dict[str, str]) -> list[Finding]:
    """Return what the check of a file for Iceberg finds on a version of Spark."""
    with mock.patch("floodmark.cli.checks.environment.version", return_value=spark):
        return check_iceberg(properties, LAKE["catalog.schema"])


def command(*arguments: str) -> Mistake:
    """Return a command, for a pipeline file that is right."""

    def make() -> object:
        FILE.write_text(yaml.safe_dump(PIPELINE), encoding="utf-8")
        return app(arguments, standalone_mode=False)

    return Mistake(f"`floodmark {' '.join(arguments)}`", make)


def configuration(written: str, text: str, output: str | None = None) -> Mistake:
    """Return a configuration of Debezium that is to be converted."""

    def make() -> object:
        CONFIGURATION.write_text(text, encoding="utf-8")
        return convert_file(Wanted(CONFIGURATION, output))

    return Mistake(written, make)


def signal(kind: str, data: str) -> Mistake:
    """Return a signal that is sent from Python."""
    return Mistake(f"`{kind}`, data `{data}`", lambda: floodmark.signal(POSTGRES, kind, data, "ad-hoc"))


def refused(written: str, said: str) -> Mistake:
    """Return what libpq says of a connection."""

    def make() -> object:
        cause, cure = cause_of(said)
        return Finding("connection", "error", f"Cannot connect to PostgreSQL at …: {cause}.", cure)

    return Mistake(written, make)


def _shown(written: Sequence[str]) -> str:
    return ", ".join(f"`{item}`" for item in written)


def _no_driver() -> None:
    with mock.patch("floodmark.connectors.registry.find_spec", return_value=None):
        preflight(load_options(POSTGRES))


def _packages(package: str) -> list[Finding]:
    with mock.patch("floodmark.cli.checks.environment.version", return_value="4.3.0"):
        return check_packages({"spark.jars.packages": package})


SECTIONS: list[tuple[str, list[Mistake]]] = [
    (
        "Which database",
        [
            missing("connector"),
            option("connector=postgers"),
            option("connector=postgresql"),
            option("connector=sqlserver"),
            option("connector=MySQL"),
            option("connector.class=io.debezium.connector.sqlserver.SqlServerConnector", without=["connector"]),
            option("connector.class=io.debezium.connector.postgres.PostgresConnector", without=["connector"]),
            mysql("connector.class=io.debezium.connector.postgresql.PostgresConnector"),
        ],
    ),
    (
        "Options that are missing",
        [
            missing("database.hostname"),
            missing("database.user"),
            missing("database.dbname"),
            missing("topic.prefix"),
            missing("state.dir"),
            missing("database.user", MYSQL),
        ],
    ),
    (
        "Options that are unknown",
        [
            option("slot.nam=x"),
            option("table.include=public.orders"),
            option("database.host=db"),
            option("hartbeat.interval.ms=1000"),
            option("snapshot.fetchsize=100"),
            option("whatever=1"),
            option("Slot.Name=a", "slot.name=b"),
            option("column.truncate.to.5=a"),
            option("isbn.type=x"),
            option("database.passwrod=hunter2"),
        ],
    ),
    (
        "Names and values of Debezium 1.x",
        [
            option("database.server.name=shop"),
            option("table.whitelist=public.orders"),
            option("table.blacklist=public.audit"),
            option("column.blacklist=public.users.password"),
            option("schema.whitelist=public"),
            mysql("database.whitelist=shop"),
            mysql("database.history.kafka.topic=history"),
            mysql("database.history=io.debezium.relational.history.KafkaDatabaseHistory"),
            mysql("database.history.store.only.monitored.tables.ddl=true"),
            option("toasted.value.placeholder=x"),
            option("truncate.handling.mode=include"),
            option("transaction.topic=tx"),
            option("slot.drop_on_stop=true"),
            mysql("snapshot.mode=schema_only"),
            mysql("snapshot.mode=schema_only_recovery"),
            option("snapshot.mode=never"),
            option("snapshot.mode=exported"),
            option("plugin.name=wal2json"),
        ],
    ),
    (
        "Options of another database",
        [
            mysql("slot.name=shop"),
            mysql("database.dbname=shop"),
            mysql("schema.include.list=shop"),
            mysql("database.sslmode=require"),
            mysql("publication.name=shop"),
            option("database.include.list=shop"),
            option("database.server.id=7"),
            option("database.ssl.mode=required"),
            option("gtid.source.includes=.*"),
            option("database.whitelist=shop"),
            option("include.schema.changes=true"),
            option("log.mining.strategy=online_catalog"),
            option("database.names=shop"),
            option("collection.include.list=shop.orders"),
        ],
    ),
    (
        "Options of Spark's other sources",
        [
            option("url=jdbc:postgresql://db/shop"),
            option("host=db"),
            option("user=cdc"),
            option("dbtable=public.orders"),
            option("tables=public.orders"),
            option("path=public.orders"),
            option("startingOffsets=earliest"),
            option("maxFilesPerTrigger=1"),
            option("kafka.bootstrap.servers=k:9092"),
            option("checkpointLocation=/data/checkpoint"),
            batch("query=SELECT 1"),
        ],
    ),
    (
        "Debezium's options that are refused",
        [
            option("transforms=unwrap"),
            option("transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState"),
            option("transforms=unwrap", "transforms.unwrap.type=io.debezium.transforms.SwapGeometryCoordinates"),
            option(
                "transforms=late",
                "transforms.late.type=io.debezium.transforms.Filter",
                "transforms.late.language=jsr223.groovy",
                "transforms.late.condition=value.op == 'u' && value.before.id == 2",
            ),
            option(
                "transforms=late",
                "transforms.late.type=io.debezium.transforms.Filter",
                "transforms.late.language=sql",
                "transforms.late.condition=value.op RLIKE 'u'",
            ),
            option(
                "transforms=route",
                "transforms.route.type=org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.route.regex=shop.(?!public).*",
                "transforms.route.replacement=$1",
            ),
            option(
                "transforms=route",
                "transforms.route.type=org.apache.kafka.connect.transforms.RegexRouter",
                "transforms.route.regex=shop.(.*)",
                "transforms.route.replacement=$2",
            ),
            option(
                "transforms=mask",
                "transforms.mask.type=org.apache.kafka.connect.transforms.MaskField",
                "transforms.mask.fields=v",
            ),
            option(
                "transforms=cast",
                "transforms.cast.type=org.apache.kafka.connect.transforms.Cast$Value",
                "transforms.cast.spec=v:decimal",
            ),
            option(
                "transforms=unwrap",
                "transforms.unwrap.type=io.debezium.transforms.ExtractNewRecordState",
                "transforms.unwrap.delete.handling.mode=rewrite",
            ),
            option("key.converter=io.apicurio.registry.utils.converter.AvroConverter"),
            option("database.sslfactory=org.postgresql.ssl.NonValidatingFactory"),
            option("post.processors=reselector"),
            mysql("snapshot.locking.mode=custom"),
        ],
    ),
    (
        "Values",
        [
            option("database.hostname=jdbc:postgresql://db:5432/shop"),
            option("database.hostname=postgres://cdc:hunter2@db/shop"),
            option("database.hostname=db:5433"),
            option("database.hostname= "),
            option("database.port=5432x"),
            option("database.port=0"),
            option("database.port=70000"),
            option("max.batch.rows=0"),
            option("max.batch.rows=1e6"),
            option("snapshot.max.threads=0"),
            option("state.max.bytes=4GB"),
            option("segment.bytes=1"),
            option("heartbeat.interval.ms=-1"),
            option("tombstones.on.delete=maybe"),
            option("read.only="),
            option("snapshot.mode=intial"),
            option("snapshot.mode=recovery"),
            option("format=row"),
            option("decimal.handling.mode=decimal"),
            option("time.precision.mode=millis"),
            option("database.sslmode=on"),
            mysql("database.ssl.mode=prefer"),
            option("errors.tables=skip"),
            option("skipped.operations=insert"),
            option("signal.enabled.channels=table"),
            option("notification.enabled.channels=slack"),
            option("slot.name=My-Slot"),
            option("publication.name="),
            option("topic.prefix="),
            option("topic.prefix=my shop"),
            option("topic.heartbeat.name=a b"),
            option("table.include.list=public.(orders"),
            option("table.include.list=*"),
            option("unavailable.value.placeholder=hex:abc"),
            option("message.key.columns=orders"),
            option("column.truncate.to.ten.chars=public.a.b"),
            option("column.mask.hash.sha9.with.salt.x=public.a.b"),
            option("replica.identity.autoset.values=public.a:ALL"),
            option("slot.stream.params=orign=none"),
            option("slot.stream.params=binary=true"),
            option("signal.data.collection=signals"),
            option("offset.mismatch.strategy=trust-slot"),
            option("publication.autocreate.mode=filter"),
            mysql("database.server.id=0"),
            mysql("schema.history.internal=io.debezium.storage.redis.history.RedisSchemaHistory"),
        ],
    ),
    (
        "Options that don't go together",
        [
            option("table.include.list=public.a", "table.exclude.list=public.b"),
            option("schema.include.list=a", "schema.exclude.list=b"),
            mysql("database.include.list=a", "database.exclude.list=b"),
            option("column.include.list=a", "column.exclude.list=b"),
            mysql("gtid.source.includes=a", "gtid.source.excludes=b"),
            option("message.prefix.include.list=a", "message.prefix.exclude.list=b"),
            option("snapshot.mode=custom"),
            option("snapshot.select.statement.overrides=public.orders"),
            option("snapshot.select.statement.overrides.public.orders=SELECT 1"),
            option("signal.enabled.channels=kafka"),
            option("notification.enabled.channels=sink"),
            option("incremental.snapshot.read.points=watermarks"),
            option("incremental.snapshot.read.points=watermarks", "read.only=true"),
            option("key.converter.schemas.enable=true"),
            option("header.converter.schemas.enable=true"),
            option("value.converter=io.confluent.connect.avro.AvroConverter"),
            in_avro("format=rows"),
            in_avro("value.converter.basic.auth.user.info=me:secret"),
            in_avro("value.converter.use.latest.version=true"),
            in_avro("value.converter.schema.registry.ssl.truststore.type=JKS"),
            in_avro("value.converter.replace.null.with.default=false"),
            option("converters=isbn"),
            option("topic.naming.strategy=io.debezium.schema.SchemaRegexTopicNamingStrategy"),
            option("topic.regex=a"),
            option("column.mask.hash.sha-256.with.salt.abc=public.a.b"),
            mysql(f"schema.history.internal={HISTORY}"),
        ],
    ),
    (
        "Batch reads (spark.read)",
        [
            batch("topic.prefix=shop"),
            batch("connector=mysql"),
            batch("batch.wher=id > 5"),
        ],
    ),
    (
        "What load finds missing",
        [
            Mistake("Spark 3.5", lambda: require_spark("3.5.6")),
            Mistake("`pip install floodmark`, `connector=postgres`", _no_driver),
            loaded("state.dir=pipeline.yaml", words=", a file"),
            loaded("state.dir=ftp://host/state"),
            loaded("state.dir="),
            loaded("state.dir=s3://"),
            loaded("state.dir=~/floodmark"),
            loaded("state.dir=$HOME/floodmark"),
            loaded("state.dir=s3:bucket/floodmark"),
            loaded("snapshot.mode=custom", "snapshot.mode.custom.name=mine"),
            loaded("converters=isbn", "isbn.type=mine"),
            loaded("notification.enabled.channels=nowhere:tell"),
        ],
    ),
    (
        "The Python functions",
        [
            Mistake("`floodmark.check(None)`", lambda: load_options(None)),  # type: ignore[arg-type]
            Mistake("`floodmark.check('pipeline.yaml')`", lambda: load_options("pipeline.yaml")),  # type: ignore[arg-type]
            given("`database.password`: `None`", **{"database.password": None}),
            given("`table.include.list`: a list", **{"table.include.list": ["public.orders"]}),
            Mistake(
                "`floodmark.Pipeline.from_dict('pipeline.yaml')`",
                lambda: floodmark.Pipeline.from_dict("pipeline.yaml"),  # type: ignore[arg-type]
            ),
            Mistake("`floodmark.signal(options, None)`", lambda: floodmark.signal(POSTGRES, None)),  # type: ignore[arg-type]
            Mistake("an id that is a number", lambda: floodmark.signal(POSTGRES, "log", {"message": "x"}, 7)),  # type: ignore[arg-type]
            Mistake("data with a set", lambda: floodmark.signal(POSTGRES, "log", {"message": {"x"}})),
        ],
    ),
    (
        "The pipeline file",
        [
            Mistake("a path that isn't there", lambda: load_file(Path("nothing.yaml"), {})),
            Mistake("a directory", lambda: load_file(Path(), {})),
            text("`source: [`", "source: ["),
            text("a tab before a key", "source:\n\tconnector: postgres\n"),
            text("two documents", "name: shop\n---\nname: shop\n"),
            text("an alias of itself", "source: &it {connector: *it}\n"),
            text("a thousand brackets", "[" * 1000 + "]" * 1000),
            text("an alias without an anchor", "source: *shared\n"),
            text("an empty file", ""),
            text("`- source`", "- source"),
            key("no `source`", source=None),
            key("no `sink`", sink=None),
            key("no `checkpoint`", checkpoint=None),
            key("`sorce: {…}`", sorce={}),
            key("`sinks: {}`", sink=None, sinks={}),
            key("`sinks` beside `sink`", sinks={"events": {"type": "noop"}}),
            key("`sinks: [{type: noop}]`", sink=None, sinks=[{"type": "noop"}]),
            sinks("`sinks.Lake`, with a capital letter", Lake={"type": "noop"}),
            sinks("`sinks.events: kafka`", events="kafka"),
            sinks("`sinks.events: {type: parquet}`", events={"type": "parquet"}),
            sinks("`sinks.events.tranform`", events={"type": "noop", "tranform": "SELECT key FROM events"}),
            sinks("`sinks.lake: {type: mirror, transform: …}`", lake={**mirror({}), "transform": "SELECT 1"}),
            sinks("`sinks.events.source: {database.hostname: other}`", events=noop({"database.hostname": "other"})),
            sinks("`slot.nam: x` in `sinks.events.source`", events=noop({"slot.nam": "x"})),
            sinks(
                "`sinks.a.source` and `sinks.b.source: {slot.name: x}`",
                a=noop({"slot.name": "x"}),
                b=noop({"slot.name": "x"}),
            ),
            sinks(
                "`sinks.a.path: x`, `sinks.b.path: x/y`",
                a={"type": "json", "path": "x"},
                b={"type": "json", "path": "x/y"},
            ),
            key(
                "`sinks` of MySQL with `database.server.id: 5` in `source`",
                sink=None,
                source={**MYSQL, "database.server.id": "5"},
                sinks={"a": {"type": "noop"}, "b": {"type": "noop"}},
            ),
            key("`errors: ignore` with `sinks`", sink=None, sinks={"a": {"type": "noop"}}, errors="ignore"),
            key("`errors: isolate` with `sink`", errors="isolate"),
            key("`sink: parquet`", sink="parquet"),
            key("`source: postgres`", source="postgres"),
            key("`source.database: {hostname: db}`", source={**POSTGRES, "database": {"hostname": "db"}}),
            key("`sink: [{type: noop}]`", sink=[{"type": "noop"}]),
            key("`checkpoint: ''`", checkpoint=""),
            key("`checkpointLocation: /data/checkpoint`", checkpointLocation="/data/checkpoint"),
            key("`sink.type: delta`", sink={"type": "delta"}),
            key("`sink.type: parqet`", sink={"type": "parqet", "path": "x"}),
            key("`sink: {path: events}`", sink={"path": "events"}),
            key("`sink: {type: parquet}`", sink={"type": "parquet"}),
            key("`sink: {type: noop, path: events}`", sink={"type": "noop", "path": "events"}),
            key("`sink: {type: kafka}`", sink={"type": "kafka"}),
            *(key(f"`sink: {{type: kafka}}` with `{name}`", sink=kafka(given)) for name, given in TO_KAFKA.items()),
            key(
                "`source: {topic.creation.default.partitions: 3}` with `sink.type: kafka`",
                source={**POSTGRES, "topic.creation.default.partitions": "3"},
                sink=kafka({}),
            ),
            key("`sink: {type: noop, pth: x}`", sink={"type": "noop", "pth": "x"}),
            key("`sink.options: compression`", sink={"type": "noop", "options": "compression"}),
            key("`sink: {type: mirror}`", sink={"type": "mirror"}),
            key("`sink: {type: mirror, format: hudi}`", sink={"type": "mirror", "format": "hudi", "path": "x"}),
            key("`sink: {type: mirror, format: iceberg}`", sink=iceberg()),
            key("… with `catalog.schema: shop`", sink=iceberg({"catalog.schema": "shop"})),
            key("… with `catalog.schema: lake.shop, history: on`", sink=iceberg({**LAKE, "history": "on"})),
            key(
                "… with `catalog.schema: lake.shop, partition.by: .*:a`", sink=iceberg({**LAKE, "partition.by": ".*:a"})
            ),
            key("… with `catalog.schema: lake.shop, cluster.by: .*:a`", sink=iceberg({**LAKE, "cluster.by": ".*:a"})),
            key(
                "… with `table.properties: .*:format-version=1`",
                sink=iceberg({**LAKE, "table.properties": ".*:format-version=1"}),
            ),
            key(
                "… with `table.properties: .*:delta.checkpointInterval=20`",
                sink=iceberg({**LAKE, "table.properties": ".*:delta.checkpointInterval=20"}),
            ),
            key(
                "… with `catalog.schema: lake.shop, catalog.type: rest, engine: spark`",
                sink=iceberg({**LAKE, "catalog.type": "rest", "engine": "spark"}),
            ),
            key(
                "… with `catalog.schema: lake.shop, catalog.type: rest, deletion.vectors: on`",
                sink=iceberg({**LAKE, "catalog.type": "rest", "deletion.vectors": "on"}),
            ),
            key("`sink.options: {catalog.uri: http://lake}`", sink=mirror({"catalog.uri": "http://lake"})),
            Mistake(
                "… with `catalog.schema: lake.shop, catalog.type: res`",
                lambda: require_catalogue(iceberg_options({**LAKE, "catalog.type": "res"})),
            ),
            Mistake(
                "… with `catalog.schema: lake.shop, catalog.type: rest, catalog.uri: http://127.0.0.1:1`",
                lambda: require_catalogue(
                    iceberg_options({**LAKE, "catalog.type": "rest", "catalog.uri": "http://127.0.0.1:1"})
                ),
            ),
            key("`sink.options: {format: iceberg}`", sink=mirror({"format": "iceberg"})),
            Mistake("Spark 4.3 with `sink: {type: mirror, format: iceberg}`", lambda: iceberg_package("4.3.0")),
            Mistake("a file for Iceberg without the catalogue's properties", lambda: iceberg_checked("4.1.4", {})),
            Mistake(
                "a file for Iceberg on Spark 4.1 with the jar for 4.0",
                lambda: iceberg_checked("4.1.4", WRONG_JAR),
            ),
            key("`sink.options: {new.column: read}`", sink=mirror({"new.column": "read"})),
            key("`sink.options: {new.columns: keep}`", sink=mirror({"new.columns": "keep"})),
            key("`sink.options: {deletes: Soft delete}`", sink=mirror({"deletes": "Soft delete"})),
            *(key(f"`sink: {{type: jdbc}}` with `{name}`", sink=jdbc(given)) for name, given in JDBC.items()),
            key("`sink.options: {compact.files: 1}`", sink=mirror({"compact.files": "1"})),
            key("`sink.options: {cluster.by: created_at}`", sink=mirror({"cluster.by": "created_at"})),
            key("`sink.options: {cluster.by: .*:a,b,c,d,e}`", sink=mirror({"cluster.by": ".*:a,b,c,d,e"})),
            key("`sink.options: {cluster.by: a*(b:c}`", sink=mirror({"cluster.by": "a*(b:c"})),
            key("`sink.options: {partition.by: country}`", sink=mirror({"partition.by": "country"})),
            key("`sink.options: {engine: delta}`", sink=mirror({"engine": "delta"})),
            key("`sink.options: {engine: spark, history: on}`", sink=mirror({"engine": "spark", "history": "on"})),
            key("`sink.options: {catalog.schema: main.shop}`", sink=mirror({"catalog.schema": "main.shop"})),
            key(
                "`sink.options: {engine: spark, catalog.schema: main.shop.orders}`",
                sink=mirror({"engine": "spark", "catalog.schema": "main.shop.orders"}),
            ),
            Mistake("Spark 4.3 with `sink.options: {engine: spark}`", lambda: delta_package("4.3.0")),
            key("`sink.options: {history: true}`", sink=mirror({"history": "true"})),
            key(
                "`sink.options: {history: on, deletes: soft}`",
                sink=mirror({"history": "on", "deletes": "soft"}),
            ),
            key(
                "`sink.options: {table.properties: delta.logRetentionDuration=1 day}`",
                sink=mirror({"table.properties": "delta.logRetentionDuration=1 day"}),
            ),
            key(
                "`sink.options: {table.properties: .*:delta.enableChangeDataFeed=true}`",
                sink=mirror({"table.properties": ".*:delta.enableChangeDataFeed=true"}),
            ),
            key("`format: rows` with `sink.type: mirror`", source={**POSTGRES, "format": "rows"}, sink=mirror({})),
            key("`sink.format: parquet`", sink={"format": "parquet", "path": "x"}),
            key(
                "`sink.options: {checkpointLocation: x}`",
                sink={"type": "noop", "options": {"checkpointLocation": "x"}},
            ),
            key("`trigger: 10 seconds`", trigger="10 seconds"),
            key("`trigger.processingTime: soon`", trigger={"processingTime": "soon"}),
            key("`trigger.continuous: 1 second`", trigger={"continuous": "1 second"}),
            key("`trigger.availablenow: true`", trigger={"availablenow": "true"}),
            key("`trigger.availableNow: perhaps`", trigger={"availableNow": "perhaps"}),
            key("`trigger: {once: true, availableNow: true}`", trigger={"once": "true", "availableNow": "true"}),
            key("`spark.master: local`, as `master` in `spark`", spark={"master": "local"}),
            key("`source.database.password: ${NOT_SET}`", source={**POSTGRES, "database.password": "${NOT_SET}"}),
            key(
                "`source.database.password: ${PASSWORD:-x}`", source={**POSTGRES, "database.password": "${PASSWORD:-x}"}
            ),
            key("`source.database.user: ${USER`", source={**POSTGRES, "database.user": "${USER"}),
            key("a mapping in `source.table.include.list`", source={**POSTGRES, "table.include.list": [{"a": "b"}]}),
            key(
                "`format: rows` with `sink.type: kafka`",
                source={**POSTGRES, "format": "rows"},
                sink={"type": "kafka", "options": {"kafka.bootstrap.servers": "k:9092"}},
            ),
            text("`slot.name` twice", "source:\n  connector: postgres\n  slot.name: a\n  slot.name: b\n"),
        ],
    ),
    (
        "Converting a configuration of Debezium",
        [
            configuration("a comma too many", '{"name": "shop",\n "config": {,}}'),
            configuration("a list of connectors", "[]"),
            configuration("no connector.class", '{"database.hostname": "db"}'),
            configuration("an object as a value", '{"name": "shop", "config": {"database": {"port": 1}}}'),
            configuration("a property twice", '{"a": 1, "a": 2}'),
            configuration("a property twice, in a .properties file", "a=1\na=2\n"),
            configuration("a worker's file", "bootstrap.servers=k:9092\noffset.storage.topic=offsets\n"),
            configuration("a pipeline file", yaml.safe_dump(PIPELINE)),
            configuration("a resource of another kind", "kind: KafkaConnect\nspec: {}\n"),
            configuration("SQL Server's connector", OTHER.format("sqlserver.SqlServerConnector")),
            configuration("a sink connector", OTHER.format("jdbc.JdbcSinkConnector")),
            configuration("a connector's name misspelt", OTHER.format("mysql.MySqlConector")),
            configuration("`--output pipeline.yaml`, which exists", "{}", "pipeline.yaml"),
            configuration("`--output connector.json`", "{}", "connector.json"),
        ],
    ),
    (
        "The command line",
        [
            command("run", "nothing.yaml"),
            command("status", "pipeline.yaml"),
            Mistake("`floodmark.verify(options, path)`", lambda: floodmark.verify(POSTGRES, "lake")),
            Mistake(
                "`floodmark.verify(…, tables=['*'])`",
                lambda: floodmark.verify(POSTGRES, "lake", at_rest=True, tables=["*"]),
            ),
            Mistake(
                "`floodmark.verify(…, limit=-1)`",
                lambda: floodmark.verify(POSTGRES, "lake", at_rest=True, limit=-1),
            ),
            command("rebuild", "pipeline.yaml", "--table", "public.orders"),
            Mistake(
                "`floodmark.rebuild(…, wait_s=-1)`",
                lambda: floodmark.rebuild(POSTGRES, "lake", "checkpoint", "public.orders", wait_s=-1),
            ),
            command("signal", "pipeline.yaml", "execute-snapshots", "--id", "ad-hoc"),
            command("signal", "pipeline.yaml", "execute-snapshot"),
            command("signal", "pipeline.yaml", "execute-snapshot", "--table", "(", "--id", "ad-hoc"),
            command("signal", "pipeline.yaml", "execute-snapshot", "--table", "a", "--condition", "id"),
            command(
                "signal",
                "pipeline.yaml",
                "execute-snapshot",
                "--table",
                "a",
                "--condition",
                "=id > 5",
                "--id",
                "ad-hoc",
            ),
            command("signal", "pipeline.yaml", "execute-snapshot", "--table", "", "--id", "ad-hoc"),
            command("signal", "pipeline.yaml", "log", "--data", "{", "--id", "ad-hoc"),
            command("signal", "pipeline.yaml", "pause-snapshot", "--table", "public.orders"),
            command("signal", "pipeline.yaml", "log", "--blocking"),
            command("signal", "pipeline.yaml", "log", "--data", "{}", "--table", "a"),
            command("signal", "pipeline.yaml", "log", "--data", '{"message": "x"}', "--sink", "lake"),
        ],
    ),
    (
        "Signals",
        [
            signal("execute-snapshot", "public.orders"),
            signal("execute-snapshot", '["public.orders"]'),
            signal("execute-snapshot", '{"data-collections": "public.orders"}'),
            signal("execute-snapshot", '{"data-collections": ["a"], "type": "incremantal"}'),
            signal("execute-snapshot", '{"data-collection": ["a"]}'),
            signal("execute-snapshot", '{"data-collections": []}'),
            signal(
                "execute-snapshot", '{"data-collections": ["a"], "additional-conditions": [{"data-collection": "a"}]}'
            ),
            signal("stop-snapshot", '{"type": "blocking"}'),
            signal("log", "{}"),
            signal("log", '{"mesage": "x"}'),
        ],
    ),
    (
        "What floodmark check finds",
        [
            Mistake(
                "`checkpoint: /data/shop`, `state.dir: /data/shop`",
                lambda: check_places("/data/shop", "/data/shop", None),
            ),
            Mistake(
                "`checkpoint: /data/shop/state/checkpoint`, `state.dir: /data/shop/state`",
                lambda: check_places("/data/shop/state", "/data/shop/state/checkpoint", None),
            ),
            Mistake(
                "`checkpoint: /data/events/_cp`, `sink.path: /data/events`",
                lambda: check_places("/data/state", "/data/events/_cp", "/data/events"),
            ),
            Mistake(
                f"`spark.jars.packages: {KAFKA.format('2.12', '3.5.1')}`",
                lambda: _packages(KAFKA.format("2.12", "3.5.1")),
            ),
            Mistake(
                f"`spark.jars.packages: {KAFKA.format('2.13', '4.1.0')}`",
                lambda: _packages(KAFKA.format("2.13", "4.1.0")),
            ),
            Mistake("a signal table that is missing", lambda: signal_table_finding("public.signals", [])),
            Mistake("a signal table of two columns", lambda: signal_table_finding("public.signals", ["id", "type"])),
            Mistake(
                "a signal table with its columns in another order",
                lambda: signal_table_finding("public.signals", ["type", "data", "id"]),
            ),
            refused("the wrong password", 'connection failed: FATAL:  password authentication failed for user "cdc"'),
            refused("no password", "connection failed: fe_sendauth: no password supplied"),
            refused("the wrong database", 'connection failed: FATAL:  database "shp" does not exist'),
            refused("the wrong role", 'connection failed: FATAL:  role "cdk" does not exist'),
            refused(
                "a role without REPLICATION",
                "connection failed: FATAL:  permission denied to start WAL sender\n"
                "DETAIL:  Only roles with the REPLICATION attribute may start a WAL sender process.",
            ),
            refused("the wrong host", "failed to resolve host 'db': [Errno -2] Name or service not known"),
            refused("the wrong port", "connection failed: Connection refused\n\tIs the server running?"),
            refused("another server's port", "connection failed: received invalid response to SSL negotiation: J"),
            refused(
                "a socket that isn't there",
                'connection is bad: connection to server on socket "/run/pg/.s.PGSQL.5432" failed: No such file or '
                "directory\n\tIs the server running locally and accepting connections on that socket?",
            ),
            refused("TLS that isn't there", "connection failed: server does not support SSL, but SSL was required"),
            refused(
                "a network that isn't let in",
                'connection failed: FATAL:  no pg_hba.conf entry for host "10.0.0.5", user "cdc", database "shop", '
                "SSL encryption",
            ),
        ],
    ),
]


def messages() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each section with what was written and what is said of it, in another working directory."""
    with tempfile.TemporaryDirectory() as directory, contextlib.chdir(directory):
        FILE.write_text(yaml.safe_dump(PIPELINE), encoding="utf-8")
        for title, mistakes in SECTIONS:
            yield title, [(mistake.written, mistake.message()) for mistake in mistakes]


def render() -> str:
    """Return the page."""
    parts = [INTRODUCTION]
    for title, found in messages():
        rows = [f"| {_cell(written)} | {_cell(message)} |" for written, message in found]
        parts.append("\n".join([f"## {title}\n", "| written | message |", "| --- | --- |", *rows]) + "\n")
    return "\n".join(parts)


def _cell(content: str) -> str:
    escaped = content.replace("|", "\\|")
    # What stands in angle brackets would be HTML, and a star emphasis.
    return escaped if "`" in escaped else escaped.replace("<", "&lt;").replace("*", "\\*")


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
