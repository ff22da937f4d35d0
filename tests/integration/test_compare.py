"""``floodmark compare``: topics of Debezium's beside Floodmark's, in a real broker."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from floodmark.cli.main import app
from floodmark.debezium.topics import Topic
from tests.conformance.debezium.debezium import Debezium
from tests.support.databases import Database
from tests.support.debezium_files import debezium_options
from tests.support.handed_over import Counting, Place, place_on
from tests.support.inprocess import InProcess
from tests.support.kafka import Broker
from tests.support.patience import within
from tests.unit.test_comparison import Record, event, stream, tombstone


def produce(broker: Broker, topic: str, records: Iterable[Record]) -> None:
    """Write records to a topic of two partitions, those of a key to one of them."""
    broker.create(topic, 2)
    plain = [(None if key is None else key.encode(), value and value.encode()) for key, value in records]
    Topic(f"kafka://{broker.servers}/{topic}", {}).append(plain)  # type: ignore[arg-type]


def compared(broker: Broker, theirs: str, ours: str, *more: str) -> tuple[int, str]:
    """Return the exit code of the command, and what it printed."""
    uris = [f"kafka://{broker.servers}/{name}" for name in (theirs, ours)]
    result = CliRunner().invoke(app, ["compare", *uris, *more], catch_exceptions=False)
    return result.exit_code, result.stdout


@pytest.fixture
def name() -> str:
    return f"compared-{uuid.uuid4()}"


def ends(side: str, records: list[Record]) -> list[Record]:
    return [event(side, 1, 0), *records, event(side, 1000, 0)]


def test_equal_topics(broker: Broker, name: str) -> None:
    for side in ("theirs", "ours"):
        for table in ("a", "b"):
            produce(broker, f"{name}.{side}.{table}", ends(side, stream(side)))
    code, text = compared(broker, f"{name}.theirs.*", f"{name}.ours.*")
    assert code == 0
    assert "38 changes were compared; all are equal." in text
    code, text = compared(broker, f"{name}.theirs.a", f"{name}.ours.b", "--json")
    assert (code, json.loads(text)["topics"][""]["compared"]) == (0, 19)
    produce(broker, f"{name}.theirs.c", [])
    code, text = compared(broker, f"{name}.theirs.*", f"{name}.ours.*")
    assert code == 1
    assert "Only Debezium has the topic of c." in text


def test_differences_are_shown(broker: Broker, name: str) -> None:
    theirs, ours = stream("theirs"), stream("ours")
    produce(broker, f"{name}.theirs", ends("theirs", [*theirs, tombstone(3)]))
    produce(broker, f"{name}.ours", ends("ours", [*ours[:3], event("ours", 50, 1, "d", "x\x1b[2J"), *ours[6:]]))
    code, text = compared(broker, f"{name}.theirs", f"{name}.ours")
    assert code == 1
    assert "19 changes compared: 2 missing, 2 different" in text
    assert 'key {"id":0}, op u, lsn 40, txId 40: only Debezium has it' in text
    assert r"""after.v: 5 / "x\u001b[2J\"""".replace('\\"', '"') in text
    assert "written differently, or a tombstone follows only one of them" in text
    assert "\x1b" not in text
    code, text = compared(broker, f"{name}.theirs", f"{name}.ours", "--json", "--limit", "1")
    (shown,) = json.loads(text)["topics"][""]["differences"]
    assert (code, shown["kind"], shown["position"]) == (1, "missing", "lsn 40, txId 40")


def test_mistakes(broker: Broker, name: str, tmp_path: Path) -> None:
    produce(broker, f"{name}.theirs", stream("theirs"))
    produce(broker, f"{name}.ours", [('{"id":1}', '{"id":1,"v":2}')])
    produce(broker, f"{name}.mysql", [event("ours", 5, connector="mysql", file="binlog.000001", pos=4, row=0)])
    settings = tmp_path / "settings"
    settings.write_text("ssl.keystore.type=JKS\nssl.keystore.location=/x\n", encoding="utf-8")
    for theirs, ours, more, message in [
        ("gone", "ours", (), f"There is no Kafka topic '{name}.gone'"),
        ("theirs", "ours", (), "Floodmark's topics have no events with a source block"),
        ("theirs", "mysql", (), "different connectors: mysql and postgresql"),
        ("*", "ours", (), "One side is several topics, the other is one"),
        ("none*", "ours*", (), "has the same rest of its name"),
        ("theirs", "ours", ("--client-settings", str(settings)), "is one that only Java knows"),
    ]:
        uris = [f"kafka://{broker.servers}/{name}.{one}" for one in (theirs, ours)]
        result = CliRunner().invoke(app, ["compare", *uris, *more], catch_exceptions=False)
        assert result.exit_code == 2
        assert message in " ".join(result.stderr.split())
    result = CliRunner().invoke(app, ["compare", "broker/topic", "kafka://b/t"], catch_exceptions=False)
    assert result.exit_code == 2
    assert "'broker/topic' names no Kafka topic" in result.stderr


@pytest.fixture(params=["pg18", "mysql", "mariadb"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with place_on(request.getfixturevalue(request.param), tmp_path / "state") as made:
        yield made


@pytest.mark.long
@pytest.mark.timeout(300)
def test_debezium_and_a_query_side_by_side(place: Place, broker: Broker, name: str, tmp_path: Path) -> None:
    """They begin one after the other, while rows change; a lost event is the only difference."""
    database, given = place
    options = {**given, "table.include.list": f"{database.schema}.counted", "snapshot.mode": "initial"}
    work = Counting(database, 1)
    work.create(200)
    theirs = debezium_options(options, tmp_path, topic_prefix="debezium")
    if options["connector"] == "postgres":
        theirs["slot.name"] = f"{options['slot.name']}_debezium"
    query = InProcess(options)
    work.start()
    connector = Debezium({**theirs, "snapshot.mode": "initial"}, tmp_path / "records")
    connector.start()
    try:
        connector.wait_records(300, within(60))
        rows = query.drain()
        connector.wait_records(connector.count + 300, within(60))
    finally:
        work.stop()
    try:
        connector.wait_for(f'"n":{work.done[-1][1]},', within(60))
        query.restart()
        rows += query.drain()
        query.stop()
        records = [(one.key, one.value) for one in connector.records() if one.topic.endswith(".counted")]
    finally:
        connector.stop()
        if options["connector"] == "postgres":
            drop_slot(database, theirs["slot.name"])
    events = [(row["key"], row["value"]) for row in rows if row["topic"].endswith(".counted")]
    produce(broker, f"{name}.theirs", records)
    produce(broker, f"{name}.ours", events)
    code, text = compared(broker, f"{name}.theirs", f"{name}.ours")
    assert code == 0, text
    updates = [at for at, (_, value) in enumerate(events) if '"op":"u"' in (value or "")]
    lost = updates[len(updates) // 2]
    produce(broker, f"{name}.lost", [*events[:lost], *events[lost + 1 :]])
    code, text = compared(broker, f"{name}.theirs", f"{name}.lost", "--json")
    assert code == 1
    assert json.loads(text)["topics"][""]["counts"] == {"missing": 1, "additional": 0, "different": 0, "order": 0}


def drop_slot(database: Database, slot: str) -> None:
    with database.session() as session:
        session.execute(f"SELECT pg_drop_replication_slot('{slot}')")
