"""Standbys: the log is mined there, or the address leads to one by mistake, and what a switchover or fail-over does."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module
from floodmark.errors import CaptureError, ConfigError, LogGoneError
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.oracle.model.dictionaries import made_of
from tests.support.oracle.model.standby import Standby
from tests.support.oracle.scene import Rows, Scene, applied

FILE = "/dictionaries/shop.ora"


@pytest.fixture(autouse=True)
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


class Pair:
    """A primary and its standby, each with an address."""

    def __init__(self, scene: Scene, standby: Standby, server: TnsServer) -> None:
        self.scene = scene
        self.standby = standby
        self.server = server
        standby.dictionary_files[FILE] = made_of(standby)
        self.options = {
            "capture_mode": "physical_standby",
            "secondary_hostname": "127.0.0.1",
            "secondary_port": str(server.port),
            "log_mining_strategy": "dictionary_from_file",
            "log.mining.path.dictionary": FILE,
            "log_mining_archive_log_only_mode": "true",
            "errors_max_retries": "1",
        }

    def snapshot(self) -> tuple[InProcess, Rows]:
        """Return a query that has taken its snapshot."""
        query = self.scene.query(**self.options)
        rows = query.step()
        while query.offset["snapshot"] is not None:
            rows += query.step()
        return query, rows

    def ship(self, apply: bool = True) -> None:
        """Let the primary archive its log, and send it."""
        with self.scene.database.lock:
            self.scene.database.switch_log()
            self.scene.database.background()
            self.standby.receive(apply)

    def until_equal(self, query: InProcess, rows: Rows) -> None:
        for _ in range(200):
            rows += query.step()
            if applied(rows) == self.scene.expected():
                return
        raise AssertionError("The changes don't come.")


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    with Scene(tmp_path) as scene:
        scene.database.switch_log()
        standby = Standby(scene.database)
        with TnsServer(standby) as server:
            yield Pair(scene, standby, server)


def mined(database: Any) -> bool:
    return any("START_LOGMNR" in one.text for one in database.statements)


def test_the_log_is_mined_in_the_standby(pair: Pair) -> None:
    query, rows = pair.snapshot()
    pair.scene.write(100)
    for _ in range(3):
        assert query.step() == []
    pair.ship()
    pair.until_equal(query, rows)
    assert len(rows) == 22
    assert mined(pair.standby)
    assert not mined(pair.scene.database)
    written = [one.text for one in pair.standby.statements if one.text.startswith(("INSERT", "UPDATE", "CREATE"))]
    assert written == []


@pytest.mark.long
def test_what_is_open_in_the_primary_when_a_query_begins_is_delivered(pair: Pair) -> None:
    with pair.scene.database.lock:
        early = pair.scene.database.begin()
        early.insert(pair.scene.table, ID=Decimal(50), V=Decimal(1), PAD="open")
    pair.ship()
    query, rows = pair.snapshot()
    with pair.scene.database.lock:
        early.commit()
    pair.ship()
    pair.until_equal(query, rows)


def test_a_restart_while_the_standby_applies_redo_later(pair: Pair) -> None:
    """The position is behind what the standby shows; only the primary says that it isn't behind the log's end."""
    query, rows = pair.snapshot()
    pair.scene.write(100)
    pair.ship(apply=False)
    pair.until_equal(query, rows)
    query.stop()
    assert pair.standby.clock.scn < pair.scene.database.clock.scn - 5
    pair.scene.write(101)
    again = pair.scene.query(query.offset, **pair.options)
    pair.ship(apply=False)
    pair.until_equal(again, rows)
    assert len(rows) == 24


@pytest.mark.long
def test_a_switchover_while_the_standby_is_mined(pair: Pair) -> None:
    query, rows = pair.snapshot()
    pair.scene.write(100)
    pair.ship()
    pair.until_equal(query, rows)
    query.stop()
    pair.scene.write(101)
    pair.standby.switch_over()
    with pytest.raises(CaptureError, match="to a standby") as caught:
        pair.scene.query(query.offset, **pair.options).step()
    assert "capture.mode=physical_standby" in str(caught.value)
    # The addresses are exchanged: what was the standby is the primary, and the other way round.
    other = Standby(pair.standby)
    other.dictionary_files[FILE] = made_of(other)
    with TnsServer(other) as server:
        exchanged = {**pair.options, "database_port": str(pair.server.port), "secondary_port": str(server.port)}
        again = pair.scene.query(query.offset, **exchanged)
        pair.until_equal(again, rows)
        write(pair, 102)
        with pair.standby.lock:
            pair.standby.switch_log()
            other.receive()
        pair.until_equal(again, rows)
        again.stop()
    assert len(rows) == 26


def write(pair: Pair, number: int) -> None:
    """Change the table in the database that was the standby."""
    with pair.standby.lock:
        transaction = pair.standby.begin()
        transaction.insert(pair.scene.table, ID=Decimal(number), V=Decimal(number), PAD="new")
        transaction.update(pair.scene.table, {"ID": 1}, V=Decimal(number))
        transaction.commit()
        pair.standby.background()


@pytest.mark.parametrize("adapter", ["logminer", pytest.param("logminer_unbuffered", marks=pytest.mark.long)])
def test_a_query_of_the_primary_goes_on_after_a_switchover(pair: Pair, adapter: str) -> None:
    more = {"database_connection_adapter": adapter, "errors_max_retries": "1"}
    query = pair.scene.query(**more)
    rows = query.drain()
    pair.scene.write(100)
    rows += query.drain()
    query.stop()
    pair.scene.write(101)
    pair.standby.switch_over()
    with pytest.raises(CaptureError, match="to a standby") as caught:
        pair.scene.query(query.offset, **more).step()
    assert "a service that follows it" in str(caught.value)
    write(pair, 102)
    again = pair.scene.query(query.offset, **more, database_port=str(pair.server.port))
    rows += again.drain()
    assert applied(rows) == pair.scene.expected()
    assert len(rows) == 26


@pytest.mark.long
def test_a_fail_over_is_another_life_of_the_database(pair: Pair) -> None:
    query, rows = pair.snapshot()
    pair.scene.write(100)
    pair.ship()
    pair.until_equal(query, rows)
    query.stop()
    pair.standby.fail_over()
    both = {"database_port": str(pair.server.port)}
    with pytest.raises(LogGoneError, match="earlier life") as caught:
        pair.scene.query(query.offset, **pair.options, **both).step()
    assert "snapshot.mode=when_needed" in caught.value.cure
    pair.standby.dictionary_files[FILE] = made_of(pair.standby)
    again = pair.scene.query(query.offset, **pair.options, **both, snapshot_mode="when_needed")
    rows = again.step()
    while again.offset["snapshot"] is not None:
        rows += again.step()
    assert applied(rows) == pair.scene.expected()


def test_a_standby_of_another_database(pair: Pair) -> None:
    pair.standby.settings.database_id += 1
    with pytest.raises(CaptureError, match=r"secondary\.\* leads to another database"):
        pair.scene.query(**pair.options).step()
    assert finding(pair, "role").status == "error"


def test_a_standby_is_no_primary(pair: Pair) -> None:
    """Nothing would come from its own logs, and the query would go on all the same."""
    alone = {"database_port": str(pair.server.port), "log_mining_read_only": "true", "errors_max_retries": "1"}
    with pytest.raises(CaptureError, match="to a standby") as caught:
        pair.scene.query(**alone).step()
    assert "capture.mode=physical_standby" in str(caught.value)
    found = connector_module("oracle", "checks.server").check_source(load_options(pair.scene.options(**alone)))
    assert next(one for one in found if one.check == "role").status == "error"


@pytest.mark.long
def test_a_snapshot_standby_is_none_to_mine(pair: Pair) -> None:
    pair.standby.settings.role = "SNAPSHOT STANDBY"
    with pytest.raises(CaptureError, match="SNAPSHOT STANDBY"):
        pair.scene.query(**pair.options).step()


def finding(pair: Pair, name: str) -> Any:
    options = load_options(pair.scene.options(**pair.options))
    found = connector_module("oracle", "checks.server").check_source(options)
    return next(one for one in found if one.check == name)


def test_checks_and_status(pair: Pair) -> None:
    query, rows = pair.snapshot()
    pair.scene.write(100)
    pair.ship(apply=False)
    pair.until_equal(query, rows)
    query.stop()
    options = load_options(pair.scene.options(**pair.options))
    found = connector_module("oracle", "checks.server").check_source(options, query.offset)
    assert not [one for one in found if one.status == "error"], found
    assert finding(pair, "role").finding == "PRIMARY, mined on PHYSICAL STANDBY"
    status = connector_module("oracle", "log_status").log_status(options, query.offset["log"])
    assert status.problem == ""


@pytest.mark.parametrize(
    ("without", "more", "words"),
    [
        ("secondary_hostname", {}, "'secondary.hostname' or 'secondary.url' is required"),
        ("capture_mode", {}, "no effect with 'capture.mode=primary'"),
        ("", {"log_mining_archive_log_only_mode": "false"}, "archive.log.only.mode' must be 'true'"),
        ("", {"database_connection_adapter": "logminer_unbuffered"}, "needs 'logminer'"),
        ("log.mining.path.dictionary", {"log_mining_strategy": "hybrid"}, "needs 'dictionary_from_file'"),
        ("", {"secondary_url": "jdbc:oracle:oci:@db"}, "jdbc:oracle:thin:@"),
        ("", {"log_mining_readonly_hostname": "x"}, "secondary.hostname"),
    ],
)
def test_options_of_standbys(pair: Pair, without: str, more: dict[str, str], words: str) -> None:
    options = {name: value for name, value in pair.options.items() if name != without}
    with pytest.raises(ConfigError) as caught:
        load_options(pair.scene.options(**{**options, **more}))
    assert words in str(caught.value)


def test_the_standby_s_address_may_be_a_url(pair: Pair) -> None:
    options = {name: value for name, value in pair.options.items() if not name.startswith("secondary")}
    url = f"jdbc:oracle:thin:@127.0.0.1:{pair.server.port}/FREE"
    found: Any = load_options(pair.scene.options(**options, secondary_url=url, secondary_dbname="OTHER"))
    assert found.mining_address == f"127.0.0.1:{pair.server.port}/FREE"
    named: Any = load_options(pair.scene.options(**pair.options, secondary_dbname="OTHER"))
    assert named.mining_address == f"127.0.0.1:{pair.server.port}/OTHER"
