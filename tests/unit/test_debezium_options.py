"""Every option of Debezium 3.6's connectors is known, and its state is in the docs."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark.cli.pages.debezium import (
    DIFFERS,
    DIFFERS_OF_MYSQL,
    DIFFERS_OF_ORACLE,
    mysql_states,
    oracle_states,
    render,
    states,
)
from floodmark.config import debezium
from floodmark.config.model import OWN, Options
from floodmark.connectors import advice
from floodmark.connectors.load import connector_classes, load_options
from floodmark.connectors.mysql.options import BinlogOptions, MariadbOptions, MysqlOptions
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.connectors.registry import CONNECTORS
from floodmark.errors import ConfigError
from tests.support.options import REQUIRED_MYSQL
from tests.support.recording import Recorder

PAGE = Path(__file__).parents[2] / "docs" / "debezium-options.md"
BASE = {
    "connector": "postgres",
    "database.hostname": "h",
    "database.user": "u",
    "database.dbname": "d",
    "topic.prefix": "p",
    "state.dir": "/s",
}
MODEL = {str(field.alias): field for field in PostgresOptions.model_fields.values()}
MYSQL_MODELS: dict[str, type[BinlogOptions]] = {"mysql": MysqlOptions, "mariadb": MariadbOptions}


def reference(database: str) -> list[str]:
    return Path(__file__).with_name(f"debezium_options_{database}.txt").read_text().split()


@pytest.mark.parametrize("name", reference("postgres"))
def test_each_option_has_a_state(name: str) -> None:
    assert debezium.find({known: None for known in states() if not known.startswith("<")}, name) is not None


@pytest.mark.parametrize("name", reference("mysql"))
def test_each_option_of_mysql_has_a_state(name: str) -> None:
    assert debezium.find({known: None for known in mysql_states() if not known.startswith("<")}, name) is not None


@pytest.mark.parametrize("name", reference("oracle"))
def test_each_option_of_oracle_has_a_state(name: str) -> None:
    assert debezium.find({known: None for known in oracle_states() if not known.startswith("<")}, name) is not None


def test_no_option_of_oracle_has_two_states() -> None:
    names = {str(field.alias) for field in OracleOptions.model_fields.values()}
    for name in names:
        assert debezium.find(OracleOptions.accepted, name) is None, name
        assert debezium.find(OracleOptions.refused, name) is None, name
    assert not set(OracleOptions.accepted) & set(OracleOptions.refused)
    assert set(DIFFERS_OF_ORACLE) <= names | set(OracleOptions.accepted)


@pytest.mark.parametrize("connector", MYSQL_MODELS)
def test_no_option_of_mysql_has_two_states(connector: str) -> None:
    names = {str(field.alias) for field in MYSQL_MODELS[connector].model_fields.values()}
    for name in names - {"schema.history.internal.<option>"}:
        assert name not in MysqlOptions.accepted
        assert name not in MysqlOptions.refused
    assert not set(MysqlOptions.accepted) & set(MysqlOptions.refused)
    assert set(DIFFERS_OF_MYSQL) <= names | set(MysqlOptions.accepted)


@pytest.mark.parametrize("connector", MYSQL_MODELS)
def test_what_mysqls_models_say_of_debezium_is_on_the_page(connector: str) -> None:
    found = mysql_states()
    for field in MYSQL_MODELS[connector].model_fields.values():
        name, extra = str(field.alias), field.json_schema_extra
        assert isinstance(extra, dict)
        says = str(extra["debezium"])
        assert (name in found) == (says != OWN and not says.startswith(("key.", "connector.class"))), name
        if says.startswith(("same;", "same,")) and found[name][0] != "no effect":
            assert found[name][0] == "differs", name


def test_no_option_has_two_states() -> None:
    for name in MODEL:
        assert debezium.find(PostgresOptions.accepted, name) is None, name
        assert debezium.find(PostgresOptions.refused, name) is None, name
    assert not set(PostgresOptions.accepted) & set(PostgresOptions.refused)
    assert set(DIFFERS) <= set(MODEL) | set(PostgresOptions.accepted)


def test_what_models_say_of_debezium_is_on_the_page() -> None:
    found = states()
    for name, field in MODEL.items():
        assert isinstance(field.json_schema_extra, dict)
        says = str(field.json_schema_extra["debezium"])
        other = says.endswith("(MySQL)") or says.startswith(("key.", "connector.class"))
        assert (name in found) == (says != OWN and not other)
        if says.startswith(("same;", "same,")):
            assert found[name][0] == "differs", name


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == render(), (
        "run python -m floodmark.cli.pages.debezium docs/debezium-options.md"
    )


def test_an_accepted_option_is_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, debezium.__name__)
    monkeypatch.setattr(debezium, "_logged", set())
    for _ in range(2):
        PostgresOptions.parse({**BASE, "tasks.max": "1", "max.queue.size": "10", "internal.whatever": "x"})
    lines = recorder.of("option_has_no_effect")
    assert [line["option"] for line in lines] == ["tasks.max", "max.queue.size", "internal.whatever"]
    assert all(line["reason"] for line in lines)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("transforms", "unwrap", ("transforms.unwrap.type", "required")),
        ("transforms.unwrap.type", "x", ("transforms.unwrap.type", "Add it to 'transforms'")),
        ("key.converter", "io.confluent.connect.avro.AvroConverter", ("key.converter.schema.registry.url", "required")),
        ("key.converter", "io.confluent.connect.avro.Avro", ("AvroConverter", "JsonConverter")),
        ("connector.class", "io.debezium.connector.mysql.MySqlConnector", ("PostgresConnector",)),
        ("max.queue.sizes", "1", ("Unknown option",)),
        ("hartbeat.interval.ms", "1", ("Unknown option", "heartbeat.interval.ms")),
        ("key.converter.schemas.enable", "true", ("together", "schemas.enable")),
        ("slot.stream.params", "orign=none", ("orign", "origin")),
        ("slot.stream.params", "origin=some", ("any, none",)),
        ("slot.stream.params", "binary=true", ("binary=true", "false, off")),
        ("slot.stream.params", "origin", ("name=value",)),
        ("lsn.flush.mode", "driver", ("connector, manual, connector_and_driver",)),
        ("event.processing.failure.handling.mode", "wrn", ("warn",)),
        ("offset.mismatch.strategy", "trust-slot", ("trust_slot",)),
        ("heartbeat.interval.ms", "-1", ("heartbeat.interval.ms", "-1")),
        ("topic.heartbeat.name", "a b", ("topic.heartbeat.name",)),
        ("xmin.fetch.interval.ms", "x", ("xmin.fetch.interval.ms",)),
        ("message.prefix.include.list", "(", ("message.prefix.include.list",)),
    ],
)
def test_wrong_options(name: str, value: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        PostgresOptions.parse({**BASE, name: value})
    assert all(word in str(caught.value) for word in words), str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("snapshot.locking.mode", "custom", ("minimal", "extended", "none")),
        ("gtid.source.includes", "(", ("gtid.source.includes", "regular expression")),
        ("inconsistent.schema.handling.mode", "ignore", ("fail, warn, skip",)),
        ("database.ssl.mode", "prefer", ("preferred",)),
        ("database.sslmode", "require", ("Unknown option", "database.ssl.mode")),
        ("slot.name", "x", ("Unknown option",)),
        ("connector.class", "io.debezium.connector.postgresql.PostgresConnector", ("MySqlConnector",)),
        ("schema.history.internal", "io.debezium.storage.redis.history.RedisSchemaHistory", ("FileSchemaHistory",)),
        (
            "schema.history.internal",
            "io.debezium.storage.kafka.history.KafkaSchemaHistory",
            ("schema.history.internal.kafka.topic", "required"),
        ),
        ("database.server.id", "0", ("database.server.id",)),
        ("post.processors", "reselector", ("Spark",)),
    ],
)
def test_wrong_options_of_mysql(name: str, value: str, words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as caught:
        MysqlOptions.parse({**REQUIRED_MYSQL, name: value})
    assert all(word in str(caught.value) for word in words), str(caught.value)


def test_options_of_mysql_that_have_no_effect() -> None:
    given = {
        "schema.history.internal": "io.debezium.storage.file.history.FileSchemaHistory",
        "schema.history.internal.file.filename": "history",
        "database.server.id.offset": "5",
        "tasks.max": "1",
    }
    assert MysqlOptions.parse({**REQUIRED_MYSQL, **given}).port == 3306


def test_lists_of_gtid_sources_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        MysqlOptions.parse({**REQUIRED_MYSQL, "gtid.source.includes": "a", "gtid.source.excludes": "b"})


def test_prefix_lists_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        PostgresOptions.parse({**BASE, "message.prefix.include.list": "a", "message.prefix.exclude.list": "b"})


def test_schemas_of_converters() -> None:
    both = {"key.converter.schemas.enable": "true", "value.converter.schemas.enable": "true"}
    assert PostgresOptions.parse({**BASE, **both}).schemas_enable
    assert not PostgresOptions.parse({**BASE, **dict.fromkeys(both, "false")}).schemas_enable
    with pytest.raises(ConfigError, match="be equal"):
        PostgresOptions.parse({**BASE, **both, "schemas.enable": "false"})
    with pytest.raises(ConfigError, match="be equal"):
        PostgresOptions.parse({**BASE, **both, "key.converter.schemas.enable": "false"})


@pytest.mark.parametrize(
    ("options", "flushes", "heartbeat_ms"),
    [
        ({}, True, 0),
        ({"flush.lsn.source": "false"}, False, 0),
        ({"flush.lsn.source": "false", "lsn.flush.mode": "connector"}, True, 0),
        ({"lsn.flush.mode": "manual"}, False, 0),
        ({"lsn.flush.mode": "connector_and_driver"}, True, 600_000),
        ({"lsn.flush.mode": "connector_and_driver", "heartbeat.interval.ms": "5"}, True, 5),
        ({"lsn.flush.mode": "connector_and_driver", "provide.transaction.metadata": "true"}, True, 0),
    ],
)
def test_flush_modes(options: dict[str, str], flushes: bool, heartbeat_ms: int) -> None:
    made = PostgresOptions.parse({**BASE, **options})
    assert (made.flushes, made.heartbeat_ms) == (flushes, heartbeat_ms)


def test_initial_statements_are_split_at_single_semicolons() -> None:
    made = PostgresOptions.parse({**BASE, "database.initial.statements": "SET a = 1; SET b = ';;' ;"})
    assert made.session_statements() == ["SET a = 1", "SET b = ';'"]


def unknown(connector: str, name: str) -> str:
    required = BASE if connector == "postgres" else REQUIRED_MYSQL
    with pytest.raises(ConfigError) as caught:
        load_options({**required, "connector": connector, name: "x"})
    return str(caught.value)


@pytest.mark.parametrize(
    ("former", "today"),
    [
        ("database.server.name", "topic.prefix"),
        ("table.whitelist", "table.include.list"),
        ("Table.Blacklist", "table.exclude.list"),
        ("column.blacklist", "column.exclude.list"),
        ("database.whitelist", "database.include.list"),
        ("database.history", "schema.history.internal"),
        ("database.history.kafka.topic", "schema.history.internal.kafka.topic"),
        ("database.history.consumer.sasl.mechanism", "schema.history.internal.consumer.sasl.mechanism"),
        (
            "database.history.store.only.monitored.tables.ddl",
            "schema.history.internal.store.only.captured.tables.ddl",
        ),
        ("transaction.topic", "topic.transaction"),
    ],
)
def test_names_of_debezium_1_are_told_today(former: str, today: str) -> None:
    message = unknown("mysql", former)
    assert message == (
        f"Unknown option '{former}', which is what Debezium 1.x called '{today}'. Write '{today}' instead."
    )
    assert debezium.find({**MysqlOptions.accepted, **dict.fromkeys(MysqlOptions.names())}, today) is not None


def test_a_former_name_of_another_connectors_option() -> None:
    message = unknown("postgres", "database.whitelist")
    assert "which is what Debezium 1.x called 'database.include.list'" in message
    assert "'postgres' does not have it, only the connectors 'mysql' and 'mariadb'" in message
    assert message.endswith("Use 'database.dbname', or remove it.")
    assert unknown("postgres", "truncate.handling.mode").endswith("See 'skipped.operations', which took its place.")


@pytest.mark.parametrize(
    ("connector", "name", "end"),
    [
        ("mysql", "slot.name", "only the connector 'postgres'. Remove it."),
        (
            "mariadb",
            "database.dbname",
            "only the connectors 'postgres' and 'oracle'. Use 'database.include.list', or remove it.",
        ),
        (
            "mysql",
            "schema.include.list",
            "only the connectors 'postgres' and 'oracle'. Use 'database.include.list', or remove it.",
        ),
        ("postgres", "gtid.source.includes", "only the connectors 'mysql' and 'mariadb'. Remove it."),
        ("postgres", "binlog.buffer.size", "only the connectors 'mysql' and 'mariadb'. Remove it."),
        ("postgres", "log.mining.strategy", "only the connector 'oracle'. Remove it."),
        ("postgres", "mongodb.hosts", "one of Debezium's for MongoDB, which Floodmark does not read. Remove it."),
        ("mysql", "slot.nam", "Unknown option 'slot.nam'. None has a name like it; docs/options.md lists them all."),
    ],
)
def test_options_of_other_connectors_say_so(connector: str, name: str, end: str) -> None:
    message = unknown(connector, name)
    assert message.startswith(f"Unknown option '{name}'")
    assert message.endswith(end)


def test_advice_names_options_that_exist() -> None:
    """What is to be used instead is there, in the model of the connector that it is said of."""
    models: list[type[Options]] = [PostgresOptions, MysqlOptions, MariadbOptions]
    for model in models:
        for name, use in model.similar.items():
            assert model.knows(use), use
            assert not model.knows(name), name
    for name in advice._REPLACED.values():
        assert PostgresOptions.knows(name) or MysqlOptions.knows(name)
    for former in {**advice._FORMER, **advice._REPLACED}:
        assert not PostgresOptions.knows(former)
        assert not MysqlOptions.knows(former)


@pytest.mark.parametrize(
    ("value", "today"), [("schema_only", "no_data"), ("never", "no_data"), ("schema_only_recovery", "recovery")]
)
def test_values_of_debezium_1_are_told_today(value: str, today: str) -> None:
    with pytest.raises(ConfigError, match=f"Debezium 1.x's '{value}' is '{today}' today"):
        MysqlOptions.parse({**REQUIRED_MYSQL, "snapshot.mode": value})


def without_connector(connector: str) -> dict[str, str]:
    # Oracle requires what PostgreSQL does.
    required = BASE if connector in ("postgres", "oracle") else REQUIRED_MYSQL
    return {name: value for name, value in required.items() if name != "connector"}


@pytest.mark.parametrize(("name", "connector"), connector_classes().items())
def test_the_connector_follows_from_its_class(name: str, connector: str, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    recorder.listen(monkeypatch, debezium.__name__)
    given = without_connector(connector)
    assert load_options({**given, "Connector.Class": name}).connector == connector
    assert load_options({**given, "connector": connector, "connector.class": name}).connector == connector
    assert recorder.of("option_has_no_effect") == []


def test_a_class_that_is_wrong() -> None:
    given = without_connector("postgres")
    with pytest.raises(ConfigError, match=r"SqlServerConnector', which is not allowed: it must be one of .*MySqlConn"):
        load_options({**given, "connector.class": "io.debezium.connector.sqlserver.SqlServerConnector"})
    with pytest.raises(ConfigError, match=r"Did you mean '.*\.PostgresConnector'\?"):
        load_options({**given, "connector.class": "io.debezium.connector.postgres.PostgresConnector"})
    with pytest.raises(ConfigError, match=r"\(mysql\) and 'connector.class' \(.*\) contradict .* 'postgres'"):
        load_options({**given, "connector": "mysql", "connector.class": CONNECTORS["postgres"].debezium_class})


def test_an_option_that_is_given_twice() -> None:
    with pytest.raises(ConfigError, match=r"Option 'slot\.name' is given twice"):
        PostgresOptions.parse({**BASE, "slot.name": "a", "Slot.Name": "b"})
