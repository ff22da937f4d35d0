"""What can happen between a query and its schema registry, and every kind of record in Avro."""

from __future__ import annotations

import base64
import json
import ssl
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pyarrow as pa
import pytest
import trustme

from floodmark.capture.gaps import Gap
from floodmark.connectors.load import load_options
from floodmark.demo.embedded import EmbeddedPostgres
from floodmark.errors import ConnectError, FloodmarkError, LoginError, RegistryError
from floodmark.schema_registry import client
from floodmark.spark.stream.partitions import GapPartition
from floodmark.spark.stream.readers import output_schema, read_partition
from tests.conftest import Source, drop, make_source
from tests.support.avro import Consumer, avro_options, plain
from tests.support.forwarder import Forwarder
from tests.support.inprocess import InProcess
from tests.support.mysql import MysqlServer
from tests.support.schema_registry import RunningRegistry, guarded, running_registry

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("other_process")]
STRATEGIES = "io.confluent.kafka.serializers.subject"
AT_ONCE = {"errors.max.retries": "0", "errors.tables": "fail"}


class World:
    """A database with a table, and a query that writes Avro."""

    def __init__(self, server: EmbeddedPostgres, directory: Path, prefix: str, *statements: str) -> None:
        self.source: Source = make_source(server, directory / "state", **{"topic.prefix": prefix})
        self.source.execute(*(statements or ("CREATE TABLE t (id int PRIMARY KEY, v text)",)))
        self.queries: list[InProcess] = []

    def query(self, options: dict[str, str], offset: dict[str, Any] | None = None) -> InProcess:
        self.queries.append(InProcess({**self.source.options, **options}, offset))
        return self.queries[-1]

    def restarted(self, options: dict[str, str]) -> InProcess:
        """Go on with the last query's offset as another process."""
        last = self.queries[-1]
        last.stop()
        client._registries.clear()
        return self.query(options, last.offset)

    def close(self) -> None:
        for query in self.queries:
            query.stop()
        drop(self.source)


@pytest.fixture
def make_world(pg18: EmbeddedPostgres, tmp_path: Path, request: pytest.FixtureRequest) -> Any:
    worlds: list[World] = []

    def make(*statements: str) -> World:
        prefix = request.node.name.partition("[")[0].removeprefix("test_")[:40]
        worlds.append(World(pg18, tmp_path, f"{prefix}{len(worlds)}", *statements))
        return worlds[-1]

    yield make
    for world in worlds:
        world.close()


MakeWorld = Callable[..., World]


def id_of(content: bytes) -> int:
    assert content[0] == 0
    return int.from_bytes(content[1:5], "big")


def prefix_of(world: World) -> str:
    return world.source.options["topic.prefix"]


def test_versions_of_a_table_in_one_batch_have_ids_of_their_own(
    make_world: MakeWorld, registry: RunningRegistry
) -> None:
    world = make_world()
    query = world.query(avro_options(registry.url))
    query.drain()
    world.source.execute(
        "INSERT INTO t VALUES (1, 'a')",
        "ALTER TABLE t ADD COLUMN n int DEFAULT 5",
        "INSERT INTO t VALUES (2, 'b')",
        "ALTER TABLE t DROP COLUMN v",
        "INSERT INTO t VALUES (3)",
    )
    rows = query.drain()
    read = Consumer(registry.url)
    assert [read(row, "value")["after"] for row in rows] == [
        {"id": 1, "v": "a"},
        {"id": 2, "v": "b", "n": 5},
        {"id": 3, "n": 5},
    ]
    assert len({id_of(row["value"]) for row in rows}) == 3
    assert len({id_of(row["key"]) for row in rows}) == 1
    # A second process asks again, and is given the same.
    world.source.execute("INSERT INTO t VALUES (4)")
    again = world.restarted(avro_options(registry.url)).drain()
    assert id_of(again[0]["value"]) == id_of(rows[-1]["value"])
    assert len(registry.ask(f"subjects/{prefix_of(world)}.public.t-value/versions")) == 3


def test_a_registry_that_is_away_at_the_start_is_an_error_before_any_work(make_world: MakeWorld) -> None:
    world = make_world()
    forwarder = Forwarder(1)
    forwarder.lead_to(None)
    query = world.query(avro_options(f"http://name:geheim@127.0.0.1:{forwarder.port}"))
    with pytest.raises(ConnectError, match=r"The schema registry http://…@127\.0\.0\.1:\d+ can't be reached") as error:
        query.drain()
    assert "geheim" not in str(error.value)
    assert "Start it, or correct schema.registry.url" in str(error.value)
    with psycopg.connect(world.source.conninfo) as session:
        slot = world.source.options["slot.name"]
        assert session.execute("SELECT 1 FROM pg_replication_slots WHERE slot_name = %s", [slot]).fetchone() is None
    forwarder.close()


def test_a_registry_that_goes_away_is_waited_for(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world()
    forwarder = Forwarder(registry.port)
    url = registry.url.replace(str(registry.port), str(forwarder.port))
    query = world.query(avro_options(url))
    query.drain()
    forwarder.lead_to(None)
    world.source.execute("INSERT INTO t VALUES (1, 'a')")
    threading.Timer(3, forwarder.lead_to, [registry.port]).start()
    began = time.monotonic()
    assert Consumer(registry.url)(query.drain()[0], "value")["after"] == {"id": 1, "v": "a"}
    assert time.monotonic() - began > 1
    # What a process has been told it needn't ask for again.
    forwarder.lead_to(None)
    world.source.execute("INSERT INTO t VALUES (2, 'b')")
    assert len(query.drain()) == 1
    world.source.execute("ALTER TABLE t ADD COLUMN n int", "INSERT INTO t VALUES (3, 'c', 1)")
    impatient = world.restarted({**avro_options(url), "errors.max.retries": "1"})
    with pytest.raises(FloodmarkError, match="can't be reached"):
        impatient.drain()
    # The table isn't to blame, so nothing is lost.
    forwarder.lead_to(registry.port)
    assert [
        Consumer(registry.url)(row, "value")["after"]["id"] for row in world.restarted(avro_options(url)).drain()
    ] == [3]
    forwarder.close()


def test_a_registry_that_has_lost_its_schemas_gets_them_again(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world()
    forwarder = Forwarder(registry.port)
    url = registry.url.replace(str(registry.port), str(forwarder.port))
    world.source.execute("INSERT INTO t VALUES (1, 'a')")
    world.query(avro_options(url)).drain()
    with running_registry() as other:
        forwarder.lead_to(other.port)
        world.source.execute("INSERT INTO t VALUES (2, 'b')")
        rows = world.restarted(avro_options(url)).drain()
        assert Consumer(other.url)(rows[0], "value")["after"] == {"id": 2, "v": "b"}
    forwarder.close()


@pytest.mark.parametrize(("tables", "records"), [("isolate", "fail"), ("isolate", "warn"), ("fail", "fail")])
def test_a_change_that_is_not_compatible(
    tables: str, records: str, make_world: MakeWorld, registry: RunningRegistry
) -> None:
    world = make_world("CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE u (id int PRIMARY KEY)")
    subject = f"{prefix_of(world)}.public.t-value"
    world.source.execute("INSERT INTO t VALUES (1, 'a')", "INSERT INTO u VALUES (1)")
    handled = {"errors.tables": tables, "event.processing.failure.handling.mode": records}
    query = world.query({**avro_options(registry.url), **handled})
    query.drain()
    registry.set_compatibility("FULL", subject)
    world.source.execute(
        "ALTER TABLE t ALTER COLUMN v TYPE int USING 1", "INSERT INTO t VALUES (2, 2)", "INSERT INTO u VALUES (2)"
    )
    if tables == "fail":
        with pytest.raises(
            RegistryError, match=rf"refuses a schema about the subject '{subject}': it isn't compat"
        ) as e:
            query.drain()
        assert "Make the subject's compatibility one that allows the change" in str(e.value)
        registry.set_compatibility("NONE", subject)
        rows = world.restarted(avro_options(registry.url)).drain()
    else:
        rows = query.drain()
        assert [row["topic"] for row in rows] == [f"{prefix_of(world)}.public.u"]
        return
    assert sorted(row["topic"][-1] for row in rows) == ["t", "u"]


def test_schemas_that_are_not_registered_automatically(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world()
    by_hand = {**avro_options(registry.url, auto_register_schemas="false"), **AT_ONCE}
    world.source.execute("INSERT INTO t VALUES (1, 'a')")
    with pytest.raises(FloodmarkError, match=r"finds nothing about the subject '.*-(key|value)'.*auto\.register\.sch"):
        world.query(by_hand).drain()
    world.queries[-1].stop()
    world.source.execute(
        "SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots WHERE NOT active AND "
        f"slot_name = '{world.source.options['slot.name']}'"
    )
    made = world.query(avro_options(registry.url)).drain()
    world.source.execute("INSERT INTO t VALUES (2, 'b')")
    rows = world.restarted(by_hand).drain()
    assert id_of(rows[0]["value"]) == id_of(made[0]["value"])
    # The latest schema: with documentation it is another one, but has the same fields.
    subject = f"{prefix_of(world)}.public.t-value"
    latest = json.loads(registry.schemas(subject)[-1])
    latest["doc"] = "orders"
    given = registry.ask(f"subjects/{subject}/versions", {"schema": json.dumps(latest)})
    world.source.execute("INSERT INTO t VALUES (3, 'c')")
    by_latest = {**avro_options(registry.url, auto_register_schemas="false", use_latest_version="true"), **AT_ONCE}
    rows = world.restarted(by_latest).drain()
    assert id_of(rows[0]["value"]) == given["id"]
    world.source.execute("ALTER TABLE t ADD COLUMN n int", "INSERT INTO t VALUES (4, 'd', 1)")
    with pytest.raises(FloodmarkError, match="has other fields than the events"):
        world.restarted(by_latest).drain()


def test_names_that_avro_lacks(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world(
        'CREATE TABLE "my-table" (id int PRIMARY KEY, "1st" int, "a b" int, größe int)',
        "CREATE TABLE t (id int PRIMARY KEY)",
        'INSERT INTO "my-table" VALUES (1, 2, 3, 4)',
        "INSERT INTO t VALUES (1)",
    )
    # Debezium with AvroConverter ends here; this goes on with the other table.
    rows = world.query(avro_options(registry.url)).drain()
    assert [row["topic"] for row in rows] == [f"{prefix_of(world)}.public.t"]
    adjusted = {"field.name.adjustment.mode": "avro", "schema.name.adjustment.mode": "avro"}
    beside = {"slot.name": "names2", "publication.name": "names2"}
    with pytest.raises(FloodmarkError, match=r"field\.name\.adjustment\.mode=avro"):
        world.query({**avro_options(registry.url), **AT_ONCE, **beside}).drain()
    world.queries[-1].stop()
    query = world.query({**avro_options(registry.url), **adjusted, "slot.name": "names3", "publication.name": "names3"})
    found = {row["topic"].rpartition(".")[2]: row for row in query.drain()}
    read = Consumer(registry.url)
    assert read(found["my-table"], "value")["after"] == {"id": 1, "_1st": 2, "a_b": 3, "gr__e": 4}
    assert "my_table" in registry.schemas(f"{prefix_of(world)}.public.my-table-value")[0]


@pytest.mark.parametrize("strategy", ["RecordNameStrategy", "TopicRecordNameStrategy"])
def test_subjects_by_the_record_s_name(strategy: str, make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world()
    world.source.execute("INSERT INTO t VALUES (1, 'a')")
    options = avro_options(registry.url)
    for side in ("key", "value"):
        options[f"{side}.converter.{side}.subject.name.strategy"] = f"{STRATEGIES}.{strategy}"
    row = world.query(options).drain()[0]
    topic = row["topic"]
    start = f"{topic}-" if strategy.startswith("Topic") else ""
    subjects = registry.ask("subjects")
    assert f"{start}{topic}.Envelope" in subjects
    assert f"{start}{topic}.Key" in subjects
    assert f"{topic}-value" not in subjects
    assert Consumer(registry.url)(row, "value")["after"] == {"id": 1, "v": "a"}


def test_logins_and_secure_connections(make_world: MakeWorld, registry: RunningRegistry, tmp_path: Path) -> None:
    world = make_world()
    authority = trustme.CA()
    trusted = tmp_path / "authority.pem"
    authority.cert_pem.write_to_path(str(trusted))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(context)
    by_name = "Basic " + base64.b64encode(b"me:geheim").decode()
    login = {"basic_auth_credentials_source": "USER_INFO"}

    def answer(url: str, **more: str) -> str:
        converter = load_options({**world.source.options, **avro_options(url, **more)}).value_avro
        client.check_registries([converter])
        return "ok"

    def refused(url: str, **more: str) -> str:
        with pytest.raises(LoginError) as error:
            answer(url, **more)
        assert "geheim" not in str(error.value)
        assert "verboten" not in str(error.value)
        return str(error.value)

    with guarded(registry, by_name) as url:
        assert "HTTP 401" in refused(url)
        assert "HTTP 401" in refused(url, basic_auth_user_info="me:verboten", **login)
        assert answer(url, basic_auth_user_info="me:geheim", **login) == "ok"
        assert answer(url.replace("://", "://me:geheim@")) == "ok"
        assert "HTTP 401" in refused(url.replace("://", "://me:verboten@"))
    with guarded(registry, "Bearer geheim", context) as url:
        token = {"bearer_auth_credentials_source": "STATIC_TOKEN"}
        assert "can't be trusted" in refused(url, bearer_auth_token="geheim", **token)
        trust = {"schema_registry_ssl_truststore_location": str(trusted)}
        assert "HTTP 401" in refused(url, bearer_auth_token="verboten", **token, **trust)
        assert answer(url, bearer_auth_token="geheim", **token, **trust) == "ok"
        # A whole query, with everything on.
        world.source.execute("INSERT INTO t VALUES (1, 'a')")
        rows = world.query(avro_options(url, bearer_auth_token="geheim", **token, **trust)).drain()
        assert Consumer(registry.url)(rows[0], "value")["after"] == {"id": 1, "v": "a"}


def test_what_is_no_registry(make_world: MakeWorld, registry: RunningRegistry) -> None:
    options = make_world().source.options
    wrong = registry.url.replace("/apis/ccompat/v7", "/nowhere")
    with pytest.raises(RegistryError, match=r"finds nothing for the kinds of schemas.*/apis/ccompat/v7"):
        client.check_registries([load_options({**options, **avro_options(wrong)}).key_avro])


def test_records_of_every_kind(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world(
        "CREATE TABLE t (id int PRIMARY KEY, v text)", "CREATE TABLE u (w text)", "INSERT INTO t VALUES (1, 'a')"
    )
    options = {
        **avro_options(registry.url),
        "provide.transaction.metadata": "true",
        "heartbeat.interval.ms": "1",
        "notification.enabled.channels": "sink",
        "notification.sink.topic.name": f"{prefix_of(world)}.told",
    }
    query = world.query(options)
    rows = query.drain()
    world.source.execute(
        "INSERT INTO u VALUES ('x')",
        "DELETE FROM t",
        "SELECT pg_logical_emit_message(true, 'kind', 'content')",
    )
    rows += query.drain()
    read = Consumer(registry.url)
    found: dict[str, list[Any]] = {}
    for row in rows:
        name = row["topic"].replace(prefix_of(world), "p")
        shown = [None if row[side] is None else plain(read(row, side)) for side in ("key", "value")]
        found.setdefault(name, []).append(shown)
    assert found["p.public.u"][0][0] is None
    assert [value and value["op"] for _, value in found["p.public.t"]] == ["r", "d", None]
    assert found["p.public.t"][1][1]["transaction"]["total_order"] == 1
    assert {value["status"] for _, value in found["p.transaction"]} == {"BEGIN", "END"}
    ends = [value for _, value in found["p.transaction"] if value["status"] == "END" and value["event_count"]]
    assert {one["data_collection"] for end in ends for one in end["data_collections"] or []} >= {"public.t", "public.u"}
    assert found["p.message"][0][1]["message"]["content"] == base64.b64encode(b"content").decode()
    told = [value for _, value in found["p.told"]]
    assert {one["type"] for one in told} >= {"STARTED", "COMPLETED"}
    assert all("connector_name" in one["additional_data"] for one in told)
    beats = found.get("__debezium-heartbeat.p", [])
    assert beats
    assert beats[0][0] == {"serverName": prefix_of(world)}


def test_gaps(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world()
    options = load_options({**world.source.options, **avro_options(registry.url)})
    gap = Gap("00A", "00B", "gone", "slot.failover")
    batches = list(read_partition(options, output_schema(options), GapPartition((gap,))))
    row = pa.Table.from_batches(batches).to_pylist()[0]
    read = Consumer(registry.url)
    assert read(row, "key") == {"position": "00B"}
    assert read(row, "value")["after"] == "00A"
    assert batches[0].schema == output_schema(options)


UNWRAP = {"transforms": "unwrap", "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState"}


def test_transforms_come_first(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world()
    options = {
        **avro_options(registry.url),
        **UNWRAP,
        "transforms": "unwrap,route,id",
        "transforms.unwrap.delete.tombstone.handling.mode": "rewrite",
        "transforms.unwrap.add.fields": "op,lsn",
        "transforms.route.type": "org.apache.kafka.connect.transforms.RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": f"{prefix_of(world)}.all",
        "transforms.id.type": "org.apache.kafka.connect.transforms.ExtractField$Key",
        "transforms.id.field": "id",
    }
    query = world.query(options)
    query.drain()
    world.source.execute("INSERT INTO t VALUES (1, 'a')", "DELETE FROM t")
    rows = query.drain()
    read = Consumer(registry.url)
    assert [row["topic"] for row in rows] == [f"{prefix_of(world)}.all"] * 2
    assert [read(row, "key") for row in rows] == [1, 1]
    first, second = (read(row, "value") for row in rows)
    assert (first["id"], first["v"], first["__deleted"], first["__op"]) == (1, "a", "false", "c")
    assert (second["id"], second["v"], second["__deleted"], second["__op"]) == (1, None, "true", "d")
    assert registry.schemas(f"{prefix_of(world)}.all-key") == ['"int"']


def test_keys_and_values_may_differ(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world()
    world.source.execute("INSERT INTO t VALUES (1, 'a')")
    mixed = {**avro_options(registry.url, "value"), "key.converter.schemas.enable": "true"}
    row = world.query(mixed).drain()[0]
    assert json.loads(row["key"])["payload"] == {"id": 1}
    assert Consumer(registry.url)(row, "value")["after"] == {"id": 1, "v": "a"}
    clouds = {
        **avro_options(registry.url, "key"),
        "value.converter": "io.debezium.converters.CloudEventsConverter",
        "slot.name": "mixed2",
        "publication.name": "mixed2",
    }
    row = world.query(clouds).drain()[0]
    assert Consumer(registry.url)(row, "key") == {"id": 1}
    assert json.loads(row["value"])["specversion"] == "1.0"


def test_large_values_and_many_rows(make_world: MakeWorld, registry: RunningRegistry) -> None:
    world = make_world(
        "CREATE TABLE t (id int PRIMARY KEY, v text, w bytea)",
        "INSERT INTO t SELECT n, repeat('ä', n % 1000), decode(md5(n::text), 'hex') FROM generate_series(1, 20000) n",
        "INSERT INTO t VALUES (0, repeat('x', 20000000), NULL)",
    )
    read = Consumer(registry.url)
    rows = world.query(avro_options(registry.url)).drain()
    assert len(rows) == 20001
    for row in [*rows[::997], *(row for row in rows if len(row["value"]) > 10_000_000)]:
        after = read(row, "value")["after"]
        number = after["id"]
        assert after["v"] == ("ä" * (number % 1000) if number else "x" * 20_000_000)


def test_mysql(binlog_server: MysqlServer, registry: RunningRegistry, tmp_path: Path) -> None:
    binlog_server.execute(
        "DROP DATABASE IF EXISTS in_avro",
        "CREATE DATABASE in_avro",
        "USE in_avro",
        "CREATE TABLE t (id bigint unsigned PRIMARY KEY, v varchar(20) DEFAULT 'd', n decimal(10,3), d datetime(6), "
        "y year, b bit(9), e enum('x','y'), j json, p point)",
        "INSERT INTO t VALUES (1, NULL, 1.5, '2024-01-01 01:02:03.000004', 2024, b'101', 'y', '{\"a\": 1}', "
        "ST_GeomFromText('POINT(1 2)'))",
    )
    given = {
        **binlog_server.options(),
        "topic.prefix": f"my_{binlog_server.flavor}",
        "database.include.list": "in_avro",
        "provide.transaction.metadata": "true",
    }
    text = InProcess({**given, "state.dir": str(tmp_path / "text"), "database.server.id": "777"})
    query = InProcess({**given, **avro_options(registry.url), "state.dir": str(tmp_path / "avro")})
    wanted, found = text.drain(), query.drain()
    binlog_server.execute(
        "ALTER TABLE t ADD COLUMN k int NOT NULL DEFAULT 3 COMMENT 'new'",
        "UPDATE t SET v = 'w'",
        "DELETE FROM t",
        database="in_avro",
    )
    wanted, found = wanted + text.drain(), found + query.drain()
    read = Consumer(registry.url)
    assert len(wanted) == len(found) > 6
    assert any("tableChanges" in (row["value"] or "") for row in wanted)
    for one, other in zip(wanted, found, strict=True):
        assert one["topic"] == other["topic"]
        for side in ("key", "value"):
            shown = None if other[side] is None else plain(read(other, side))
            assert comparable(shown) == comparable(json.loads(one[side] or "null"))
    text.stop()
    query.stop()
    binlog_server.execute("DROP DATABASE in_avro")


def comparable(event: Any) -> Any:
    """Return an event without the times at which it was made."""
    if isinstance(event, dict):
        return {name: comparable(one) for name, one in event.items() if not name.startswith("ts_")}
    return [comparable(one) for one in event] if isinstance(event, list) else event
