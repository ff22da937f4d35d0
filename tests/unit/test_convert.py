"""What becomes of properties of Debezium."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from floodmark.cli.convert.converter import Conversion, Target, convert
from floodmark.cli.convert.given import Given
from floodmark.cli.main import app
from floodmark.config.converters import CLOUD_EVENTS
from floodmark.connectors.registry import CONNECTORS
from floodmark.errors import ConfigError
from floodmark.spark.pipelines.file import load_file, parse_file

JSON = "org.apache.kafka.connect.json.JsonConverter"
CONNECTORS_OWN = {
    "connector.class": CONNECTORS["postgres"].debezium_class,
    "database.hostname": "db",
    "database.user": "cdc",
    "database.dbname": "shop",
    "topic.prefix": "shop",
    "plugin.name": "pgoutput",
}
MYSQL = {name: value for name, value in CONNECTORS_OWN.items() if name not in ("database.dbname", "plugin.name")}
MYSQL["connector.class"] = CONNECTORS["mysql"].debezium_class
WORKER = {"bootstrap.servers": "kafka:9092", "offset.storage.topic": "offsets", "group.id": "connect"}
UNWRAP = "io.debezium.transforms.ExtractNewRecordState"


def converted(
    given: dict[str, str], base: dict[str, str] = CONNECTORS_OWN, worker: dict[str, str] | None = WORKER
) -> Conversion:
    properties = {name: value for name, value in {**base, **given}.items() if value}
    return convert(
        Given(Path("shop.json"), "connector", "shop", properties), Target("shop.yaml", "/data"), worker, Path("worker")
    )


def served(given: dict[str, str], profile: str = "prod") -> Conversion:
    own = {f"debezium.source.{name}": value for name, value in CONNECTORS_OWN.items()}
    properties = {name: value for name, value in {**own, "debezium.sink.type": "kafka", **given}.items() if value}
    return convert(Given(Path("a.properties"), "server", None, properties), Target("shop.yaml", "/data", profile))


def results(done: Conversion) -> dict[str, tuple[str, str]]:
    return {one.name: (one.result, one.remark) for one in done.outcomes}


def source(done: Conversion) -> Any:
    return done.content["source"]


def sink(done: Conversion) -> Any:
    return done.content["sink"]


@pytest.mark.parametrize(
    ("given", "option", "written"),
    [
        ({"database.server.name": "old", "topic.prefix": ""}, "topic.prefix", "old"),
        ({"table.whitelist": "public.a"}, "table.include.list", "public.a"),
        ({"snapshot.mode": "never"}, "snapshot.mode", "no_data"),
        ({"snapshot.mode": "exported"}, "snapshot.mode", "initial"),
        (
            {"column.mask.hash.SHA-256.with.salt.AbC": "public.a.b"},
            "column.mask.salt.salt1",
            "${COLUMN_MASK_SALT_SALT1}",
        ),
        ({"database.password": "secret"}, "database.password", "${DATABASE_PASSWORD}"),
        ({"database.password": "${file:/run/db:key}"}, "database.password", "${DATABASE_PASSWORD}"),
        ({"database.password": "${env:PGPASSWORD}"}, "database.password", "${PGPASSWORD}"),
        ({"heartbeat.action.query": "SELECT '${x'"}, "heartbeat.action.query", "SELECT '$${x'"),
        ({"table.include.list": "${env:A}.b"}, "table.include.list", "${A}.b"),
        ({"transforms": "u", "transforms.u.type": UNWRAP}, "transforms.u.type", UNWRAP),
    ],
)
def test_what_options_become(given: dict[str, str], option: str, written: str) -> None:
    done = converted(given)
    assert source(done)[option] == written
    assert done.complete
    assert {results(done)[name][0] for name in given if given[name] and "salt" not in name} <= {"mapped", "kept"}


@pytest.mark.parametrize(
    ("given", "result", "words"),
    [
        ({"tasks.max": "1"}, "no effect", "one task reads the log"),
        ({"database.server.name": "x"}, "no effect", "'topic.prefix', which is given, too"),
        ({"table.include.lst": "x"}, "no effect", "Did you mean 'table.include.list'?"),
        ({"database.socketTimeout": "5"}, "no effect", "JDBC driver"),
        ({"capture.mode": "x"}, "no effect", "Debezium ignores it"),
        ({"poll.dispatch.interval.ms": "5"}, "no effect", "there is no queue"),
        ({"snapshot.minimal.locks": "true"}, "not supported", "See 'snapshot.locking.mode'"),
        ({"decimal.handling.mode": "strin"}, "not supported", "Did you mean 'string'?"),
        ({"post.processors": "a"}, "not supported", "it names a Java class"),
        ({"value.converter": "io.apicurio.registry.utils.converter.AvroConverter"}, "not supported", "keys and values"),
        ({"converters": "b", "b.type": "io.debezium.B"}, "not supported", "a Python package here"),
        ({"producer.override.acks": "0"}, "not supported", "it must be all or 1"),
        ({"transforms": "f", "transforms.f.type": "org.example.F"}, "no effect", "none of them is left"),
        ({"transforms.f.type": "org.example.F"}, "no effect", "'transforms' names nothing that uses it"),
    ],
)
def test_what_is_said_of_an_option(given: dict[str, str], result: str, words: str) -> None:
    done = converted(given)
    found, remark = results(done)[next(iter(given))]
    assert found == result
    assert words in remark
    parse_file(done.content, {one.name: one.value or "x" for one in done.variables})


def test_refused_secrets_ask_for_no_variable() -> None:
    brokers = {"signal.enabled.channels": "kafka", "signal.kafka.bootstrap.servers": "k:9092"}
    done = converted(
        {**brokers, "signal.consumer.sasl.jaas.config": "secret", "signal.consumer.sasl.password": "secret"}
    )
    assert results(done)["signal.consumer.sasl.jaas.config"][0] == "not supported"
    assert [one.name for one in done.variables] == ["SIGNAL_CONSUMER_SASL_PASSWORD"]


def test_contradictions_take_one_option_away() -> None:
    done = converted({"table.include.list": "public.a", "table.exclude.list": "public.b"})
    refused = [one for one in done.outcomes if one.result == "not supported"]
    assert len(refused) == 1
    assert "exclude each other" in refused[0].remark


def test_what_is_required_is_asked_for() -> None:
    done = converted({"database.hostname": "", "topic.prefix": ""})
    assert not done.complete
    assert results(done)["database.hostname"] == (
        "missing",
        "Option 'database.hostname' is required: Host name or address of the server.",
    )
    assert source(done)["database.hostname"] == "${DATABASE_HOSTNAME}"


@pytest.mark.parametrize("value", ["x", "true", "1"])
@pytest.mark.parametrize("connector", ["postgres", "mysql", "oracle"])
def test_all_options_at_once_leave_a_pipeline_that_loads(connector: str, value: str) -> None:
    """Whatever is wrong with a value, only its option is given up."""
    names = Path(__file__).with_name(f"debezium_options_{connector}.txt").read_text().split()
    given = {re.sub("<[^>]*>", "1", name): value for name in names}
    base = MYSQL if connector == "mysql" else CONNECTORS_OWN
    own = {**base, "connector.class": CONNECTORS[connector].debezium_class}
    done = converted({**given, **own})
    assert set(results(done)) >= {name for name, text in {**given, **own}.items() if text and "salt" not in name}
    parse_file(done.content, {one.name: one.value or "x" for one in done.variables})
    right = {name: text for name, text in own.items() if name not in ("plugin.name", "connector.class")}
    assert {name: source(done).get(name) for name in right} == right


@pytest.mark.parametrize(
    ("own", "mode"),
    [
        ({"drop.tombstones": "false"}, "delete-to-tombstone"),
        ({"drop.tombstones": "true"}, "drop"),
        ({"delete.handling.mode": "rewrite"}, "rewrite"),
        ({"delete.handling.mode": "rewrite", "drop.tombstones": "false"}, "rewrite-with-tombstone"),
        ({"delete.handling.mode": "none"}, "tombstone"),
        ({"delete.handling.mode": "none", "drop.tombstones": "false"}, "delete-to-tombstone"),
        ({"drop.tombstones": "false", "delete.tombstone.handling.mode": "rewrite"}, "rewrite"),
    ],
)
def test_former_modes_of_flattening(own: dict[str, str], mode: str) -> None:
    given = {
        "transforms": "u",
        "transforms.u.type": UNWRAP,
        **{f"transforms.u.{name}": value for name, value in own.items()},
    }
    done = converted(given)
    assert source(done)["transforms.u.delete.tombstone.handling.mode"] == mode
    assert done.complete


def test_a_condition_that_is_missing_refuses_the_transform() -> None:
    done = converted({"transforms": "u", "transforms.u.type": UNWRAP, "transforms.u.predicate": "p"})
    assert "'predicates' doesn't name 'p'" in results(done)["transforms.u.type"][1]
    assert not [name for name in source(done) if name.startswith("transforms")]


def test_settings_of_a_converter_that_the_worker_names() -> None:
    name = "value.converter.schemas.enable"
    done = converted({name: "false"}, worker={**WORKER, "value.converter": CLOUD_EVENTS})
    assert results(done)[name] == ("no effect", "it counts only beside 'value.converter', which the worker sets")
    assert source(done)["value.converter"] == CLOUD_EVENTS
    assert done.complete


def test_transforms_of_other_versions() -> None:
    fields = "org.apache.kafka.connect.transforms.ReplaceField$Value"
    done = converted(
        {
            "transforms": "r,f",
            "transforms.r.type": "io.debezium.transforms.ToLogicalTopicRouter",
            "transforms.r.topic.regex": "(.*)_[0-9]+",
            "transforms.r.topic.replacement": "$1",
            "transforms.r.logical.destination.cache.size": "5",
            "transforms.f.type": fields,
            "transforms.f.blacklist": "a,b",
        }
    )
    assert done.complete, results(done)
    own = {name: value for name, value in source(done).items() if name.startswith("transforms")}
    assert own == {
        "transforms": "r,f",
        "transforms.r.type": "io.debezium.transforms.ByLogicalTableRouter",
        "transforms.r.topic.regex": "(.*)_[0-9]+",
        "transforms.r.topic.replacement": "$1",
        "transforms.r.logical.table.cache.size": "5",
        "transforms.r.key.field.name": "__dbz__sourceIdentifier",
        "transforms.f.type": fields,
        "transforms.f.exclude": "a,b",
    }


def test_simple_scripts_become_sql() -> None:
    filtering = {
        "type": "io.debezium.transforms.Filter",
        "language": "jsr223.groovy",
        "condition": "value.op == 'u' && value.before?.id == 2",
    }
    routing = {
        "type": "io.debezium.transforms.ContentBasedRouter",
        "language": "jsr223.graal.js",
        "topic.expression": "value.op.toUpperCase()",
    }
    named = {"f": filtering, "r": routing}
    done = converted(
        {
            "transforms": "f,r",
            **{f"transforms.{name}.{key}": value for name, own in named.items() for key, value in own.items()},
        }
    )
    assert source(done)["transforms"] == "f"
    assert source(done)["transforms.f.language"] == "sql"
    assert source(done)["transforms.f.condition"] == "value.op = 'u' AND value.before.id = 2"
    assert results(done)["transforms.f.condition"][0] == "mapped"
    result, remark = results(done)["transforms.r.type"]
    assert result == "not supported"
    assert "set language to sql, and topic.expression to" in remark


def test_cloud_events() -> None:
    own = {"value.converter": CLOUD_EVENTS, "value.converter.json.schemas.enable": "false"}
    done = converted({"key.converter": JSON, "key.converter.schemas.enable": "false", **own})
    assert done.complete, results(done)
    assert {name: source(done)[name] for name in (*own, "schemas.enable")} == {**own, "schemas.enable": "false"}
    avro = converted({**own, "value.converter.data.serializer.type": "avro"})
    assert results(avro)["value.converter.data.serializer.type"][0] == "not supported"
    of_server = served({"debezium.format.value": "cloudevents", "debezium.format.value.json.schemas.enable": "false"})
    assert {name: source(of_server)[name] for name in own} == own
    assert [one.name for one in of_server.outcomes if one.result == "not supported"] == []


AVRO = "io.confluent.connect.avro.AvroConverter"
REGISTRY = "schema.registry.url"


def test_avro() -> None:
    login = {"basic.auth.credentials.source": "USER_INFO", "basic.auth.user.info": "me:geheim"}
    given = {"key.converter": AVRO, f"key.converter.{REGISTRY}": "http://r:8081", "value.converter": AVRO}
    given |= {f"value.converter.{name}": value for name, value in {REGISTRY: "http://r:8081", **login}.items()}
    done = converted({**given, "value.converter.schemas.enable": "true"})
    assert done.complete, results(done)
    secret = "value.converter.basic.auth.user.info"
    assert {name: source(done)[name] for name in given if name != secret} == {
        name: value for name, value in given.items() if name != secret
    }
    assert source(done)[secret].startswith("${")
    assert "geheim" not in str(done.content)
    assert "schemas.enable" not in source(done)
    assert results(done)["value.converter.schemas.enable"][0] == "no effect"
    with_login = converted({**given, f"key.converter.{REGISTRY}": "http://me:geheim@r:8081"})
    assert "geheim" not in str(with_login.content)
    of_worker = converted({}, worker={**WORKER, f"value.converter.{REGISTRY}": "http://r", "value.converter": AVRO})
    assert source(of_worker)["value.converter"] == AVRO
    assert source(of_worker)[f"value.converter.{REGISTRY}"] == "http://r"
    # Keys are the worker's JSON.
    assert source(of_worker)["schemas.enable"] == "true"


def test_what_the_converter_to_avro_lacks() -> None:
    given = {"value.converter": AVRO, f"value.converter.{REGISTRY}": "http://r:8081"}
    others = {
        "value.converter.use.schema.id": "5",
        "value.converter.schema.registry.ssl.truststore.location": "/a.jks",
        "value.converter.schema.registry.ssl.truststore.password": "geheim",
    }
    done = converted({**given, **others})
    assert {name for name, (result, _) in results(done).items() if result == "not supported"} == set(others)
    assert "geheim" not in str(done.content)
    pem = {**others, "value.converter.schema.registry.ssl.truststore.type": "PEM"}
    taken = source(converted({**given, **pem}))
    assert taken["value.converter.schema.registry.ssl.truststore.location"] == "/a.jks"


def test_the_format_avro_of_server() -> None:
    done = served(
        {
            "debezium.format.key": "avro",
            "debezium.format.value": "avro",
            f"debezium.format.{REGISTRY}": "http://shared:8081",
            f"debezium.format.value.{REGISTRY}": "http://own:8081",
        }
    )
    assert [one.name for one in done.outcomes if one.result == "not supported"] == []
    found = source(done)
    assert (found["key.converter"], found["value.converter"]) == (AVRO, AVRO)
    assert found[f"key.converter.{REGISTRY}"] == "http://shared:8081"
    assert found[f"value.converter.{REGISTRY}"] == "http://own:8081"


@pytest.mark.parametrize(
    ("given", "enabled"),
    [
        ({}, "true"),
        ({"debezium.format.header": "json"}, "true"),
        ({"debezium.format.header": "json", "debezium.format.header.schemas.enable": "false"}, "false"),
        ({"debezium.format.header": "jsonbytearray", "debezium.format.schemas.enable": "false"}, "false"),
    ],
)
def test_headers_of_server(given: dict[str, str], enabled: str) -> None:
    done = served(given)
    assert source(done)["header.converter"] == JSON
    assert source(done)["header.converter.schemas.enable"] == enabled
    assert [one.name for one in done.outcomes if one.result == "not supported"] == []


def test_headers_of_a_connector() -> None:
    assert source(converted({"header.converter": JSON}))["header.converter.schemas.enable"] == "true"
    own = {"header.converter": JSON, "header.converter.schemas.enable": "false"}
    assert source(converted(own))["header.converter.schemas.enable"] == "false"
    assert "header.converter" not in source(converted({}))
    assert results(served({"debezium.format.header": "connect"}))["debezium.format.header"][0] == "not supported"


@pytest.mark.parametrize(
    ("given", "worker", "schemas", "complete"),
    [
        ({}, WORKER, "true", True),
        (
            {},
            {**WORKER, "key.converter.schemas.enable": "false", "value.converter.schemas.enable": "false"},
            "false",
            True,
        ),
        ({"key.converter": JSON, "value.converter": JSON}, None, "true", False),
        ({"value.converter": JSON, "value.converter.schemas.enable": "false"}, None, "false", False),
        ({"value.converter": JSON, "value.converter.schemas.enable": "false"}, WORKER, "false", False),
        ({}, {**WORKER, "value.converter": "org.example.Avro"}, "false", False),
    ],
)
def test_whether_events_have_schemas(
    given: dict[str, str], worker: dict[str, str] | None, schemas: str, complete: bool
) -> None:
    done = converted(given, worker=worker)
    assert source(done)["schemas.enable"] == schemas
    assert done.complete == complete


def test_the_producer_becomes_the_sink() -> None:
    login = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b";'
    done = converted(
        {
            "producer.override.compression.type": "zstd",
            "topic.creation.default.partitions": "3",
            "topic.creation.default.replication.factor": "1",
        },
        worker={**WORKER, "producer.sasl.jaas.config": login, "producer.compression.type": "gzip"},
    )
    assert done.complete
    assert sink(done)["options"] == {
        "kafka.bootstrap.servers": "kafka:9092",
        "kafka.sasl.jaas.config": "${KAFKA_SASL_JAAS_CONFIG}",
        "kafka.compression.type": "zstd",
        "topic.creation.default.partitions": "3",
        "topic.creation.default.replication.factor": "1",
    }


def test_what_only_java_has_takes_sparks_connector() -> None:
    done = converted({"producer.override.ssl.truststore.location": "/a.jks"})
    assert sink(done)["options"]["engine"] == "spark"
    assert done.complete


@pytest.mark.parametrize(
    ("given", "base", "worker", "command"),
    [
        ({}, CONNECTORS_OWN, WORKER, "--debezium kafka://kafka:9092/offsets --connector-name shop"),
        (
            {"offsets.storage.topic": "own"},
            CONNECTORS_OWN,
            WORKER,
            "--debezium kafka://kafka:9092/own --connector-name shop",
        ),
        (
            {},
            CONNECTORS_OWN,
            {"bootstrap.servers": "k", "offset.storage.file.filename": "/o f", "ssl.key.password": "x"},
            "--debezium '/o f' --connector-name shop --store-settings worker",
        ),
        (
            {"schema.history.internal.kafka.bootstrap.servers": "b", "schema.history.internal.kafka.topic": "h"},
            MYSQL,
            WORKER,
            "--debezium kafka://kafka:9092/offsets --history kafka://b/h --connector-name shop",
        ),
        (
            {
                "database.history": "io.debezium.relational.history.FileDatabaseHistory",
                "database.history.file.filename": "/h",
            },
            MYSQL,
            WORKER,
            "--debezium kafka://kafka:9092/offsets --history /h --connector-name shop",
        ),
    ],
)
def test_the_command_for_offsets(
    given: dict[str, str], base: dict[str, str], worker: dict[str, str], command: str
) -> None:
    done = converted(given, base, worker)
    assert done.command == f"floodmark offsets import shop.yaml {command}"
    words = shlex.split(done.command)[2:]
    assert CliRunner().invoke(app, ["offsets", *words, "--help"]).exit_code == 0


def test_server_takes_values_from_elsewhere() -> None:
    done = served(
        {
            "debezium.source.database.hostname": "${DB_HOST:localhost}",
            "debezium.source.database.user": "${db.user}",
            "debezium.source.database.password": "${DB_PASSWORD:secret}",
            "debezium.source.database.dbname": "${shared}",
            "debezium.source.slot.name": "",
            "%prod.debezium.source.slot.name": "for_prod",
            "%dev.debezium.source.slot.name": "for_dev",
            "shared": "shop",
            "debezium.sink.kafka.producer.bootstrap.servers": "${BROKERS}",
            "quarkus.log.level": "INFO",
        }
    )
    own = source(done)
    assert own["database.hostname"] == "${DB_HOST}"
    assert own["database.user"] == "${DB_USER}"
    assert own["database.password"] == "${DB_PASSWORD}"
    assert own["database.dbname"] == "shop"
    assert own["slot.name"] == "for_prod"
    assert sink(done)["options"] == {"kafka.bootstrap.servers": "${BROKERS}"}
    assert results(done)["%dev.debezium.source.slot.name"][0] == "no effect"
    assert results(done)["quarkus.log.level"][0] == "no effect"
    assert "'localhost'" in next(one.meaning for one in done.variables if one.name == "DB_HOST")
    assert "secret" not in "".join(one.meaning for one in done.variables)
    assert done.complete
    assert done.command == "floodmark offsets import shop.yaml --debezium data/offsets.dat"


def test_servers_other_sinks_become_files() -> None:
    done = served({"debezium.sink.type": "redis", "debezium.sink.redis.address": "r", "debezium.sink.http.url": "x"})
    assert sink(done) == {"type": "json", "path": "/data/events"}
    assert results(done)["debezium.sink.type"][0] == "not supported"
    assert results(done)["debezium.sink.http.url"][0] == "no effect"


def test_servers_jdbc_sink_is_ours() -> None:
    own = {"connection.url": "jdbc:postgresql://t/shop", "connection.password": "secret", "insert.mode": "insert"}
    given = {f"debezium.sink.jdbc.{name}": value for name, value in own.items()}
    done = served({"debezium.sink.type": "jdbc", **given, "debezium.source.skipped.operations": "d"})
    assert sink(done)["options"] == {
        "connection.url": "jdbc:postgresql://t/shop",
        "connection.password": "${CONNECTION_PASSWORD}",
        "collection.name.format": "$${topic}",
    }
    refused = {name for name, (result, _) in results(done).items() if result == "not supported"}
    assert refused == {"debezium.sink.jdbc.insert.mode", "debezium.source.skipped.operations"}
    parse_file(done.content, {one.name: "x" for one in done.variables})


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (
            "io.debezium.connector.mongodb.MongoDbConnector",
            "Debezium's connector for mongodb, which Floodmark does not read",
        ),
        ("io.debezium.connector.sqlserver.SqlServerConnector", "Debezium's connector for sqlserver"),
        ("io.debezium.connector.db2.Db2Connector", "Debezium's connector for db2"),
        ("io.debezium.connector.cassandra.CassandraConnector", "Debezium's connector for cassandra"),
        ("io.debezium.connector.cockroachdb.CockroachDBConnector", "Debezium's connector for cockroachdb"),
        ("io.debezium.connector.informix.InformixConnector", "Debezium's connector for informix"),
        ("io.debezium.connector.ingres.IngresConnector", "Debezium's connector for ingres"),
        ("io.debezium.connector.spanner.SpannerConnector", "Debezium's connector for spanner"),
        ("io.debezium.connector.vitess.VitessConnector", "Debezium's connector for vitess"),
        ("io.debezium.connector.yashandb.YashanDbConnector", "Debezium's connector for yashandb"),
        ("io.debezium.connector.jdbc.JdbcSinkConnector", "a sink connector, which reads topics"),
        ("io.debezium.connector.mongodb.sink.MongoDbSinkConnector", "a sink connector, which reads topics"),
        ("io.debezium.connector.mysql.MySQLConnector", "Did you mean 'io.debezium.connector.mysql.MySqlConnector'?"),
        ("org.example.Other", "Floodmark reads the databases of io.debezium"),
    ],
)
def test_other_connectors_are_refused(kind: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        converted({"connector.class": kind})
    assert words in str(caught.value)


def test_short_names_of_connectors() -> None:
    assert converted({"connector.class": "PostgresConnector"}).connector == "postgres"
    assert converted({"connector.class": "MariaDb"}, MYSQL).connector == "mariadb"


def run(*words: str) -> Any:
    return CliRunner().invoke(app, ["convert", *words])


def test_the_command_writes_a_file_once(tmp_path: Path) -> None:
    given, worker = tmp_path / "shop.json", tmp_path / "worker.properties"
    given.write_text(json.dumps({"name": "shop", "config": {**CONNECTORS_OWN, "database.password": "secret-1"}}))
    worker.write_text("bootstrap.servers=kafka:9092\noffset.storage.topic=offsets\n")
    done = run(str(given), "--worker", str(worker), "--directory", str(tmp_path / "query"))
    assert done.exit_code == 0, done.output
    assert "floodmark offsets import" in done.stdout
    assert "secret-1" not in done.output
    written = tmp_path / "shop.yaml"
    assert "secret-1" not in written.read_text()
    pipeline = load_file(written, {"DATABASE_PASSWORD": "secret-1"}).only
    assert pipeline.options.topic_prefix == "shop"
    assert pipeline.checkpoint == str(tmp_path / "query/checkpoint")

    again = run(str(given))
    assert again.exit_code == 2
    assert "exists" in again.stderr
    forced = run(str(given), "--force")
    assert forced.exit_code == 1, "without the worker nothing names the brokers"
    own = run(str(written), "--output", str(written), "--force")
    assert own.exit_code == 2
    assert "would replace" in own.stderr


def test_the_command_prints(tmp_path: Path) -> None:
    given = tmp_path / "shop.json"
    given.write_text(json.dumps(CONNECTORS_OWN))
    printed = run(str(given), "--output", "-")
    assert yaml.safe_load(printed.stdout)["source"]["connector"] == "postgres"
    assert "Set these environment variables" in printed.stderr
    report = run(str(given), "--json", "--output", str(tmp_path / "a.yaml"))
    content = json.loads(report.stdout)
    assert content["connector"] == "postgres"
    assert content["ok"] is False
    assert {"name": "plugin.name", "result": "kept", "remark": "only pgoutput, which is the default"} in content[
        "properties"
    ]
    assert run(str(given), "--json", "--output", "-").exit_code == 2


def test_nothing_is_written_of_a_wrong_file(tmp_path: Path) -> None:
    given = tmp_path / "shop.json"
    given.write_text("{,}")
    done = run(str(given))
    assert done.exit_code == 2
    assert "error:" in done.stderr
    assert list(tmp_path.iterdir()) == [given]
