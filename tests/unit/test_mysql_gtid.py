"""GTID sets against plain Python sets."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.connectors.mysql.gtid import MariadbGtids, MysqlGtids, source_filter, sources
from floodmark.connectors.mysql.options import MysqlOptions
from floodmark.errors import CheckpointError
from tests.support.options import REQUIRED_MYSQL

UUIDS = ["3e11fa47-71ca-11e1-9e33-c80aa9429562", "ffffffff-0000-11e1-9e33-c80aa9429562"]
Plain = set[tuple[str, str, int]]

PLAIN = st.sets(st.tuples(st.sampled_from(UUIDS), st.sampled_from(["", "tag", "_x1"]), st.integers(1, 12)), max_size=25)


def built(plain: Plain) -> MysqlGtids:
    return MysqlGtids.parse(",".join(f"{uuid}:{tag}:{n}" if tag else f"{uuid}:{n}" for uuid, tag, n in plain))


def members(gtids: MysqlGtids) -> Plain:
    return {(uuid, tag, n) for (uuid, tag), runs in gtids.intervals.items() for a, b in runs for n in range(a, b + 1)}


@given(PLAIN, PLAIN)
def test_mysql_sets(one: Plain, other: Plain) -> None:
    a, b = built(one), built(other)
    assert members(a) == one
    assert members(a | b) == one | other
    assert members(a - b) == one - other
    assert (a <= b) == (one <= other)
    assert MysqlGtids.parse(str(a)) == a
    assert MysqlGtids.decode(a.encode()) == a
    assert bool(a) == bool(one)
    assert all(a.contains(uuid, n, tag) == ((uuid, tag, n) in one) for uuid, tag, n in one | other)
    for uuid, tag, n in other:
        a = a.add((uuid, tag), [(n, n)])
    assert a == built(one | other)


@pytest.mark.parametrize(
    ("text", "normal"),
    [
        ("", ""),
        (f"{UUIDS[0].upper()}:1-3,\n {UUIDS[0]}:4:7-9", f"{UUIDS[0]}:1-4:7-9"),
        (f"{UUIDS[0]}:5-3", ""),
        (f"{UUIDS[0]}:b:1-2:a:7, {UUIDS[0]}:3", f"{UUIDS[0]}:3:a:7:b:1-2"),
    ],
)
def test_mysql_text(text: str, normal: str) -> None:
    assert str(MysqlGtids.parse(text)) == normal


@pytest.mark.parametrize("text", ["x", UUIDS[0], f"{UUIDS[0]}:0", f"{UUIDS[0]}:1-", f"{UUIDS[0]}:1a", "0-1-2", ":1"])
def test_text_that_is_no_mysql_set(text: str) -> None:
    with pytest.raises(CheckpointError, match="not a set"):
        MysqlGtids.parse(text)


PAIRS = st.dictionaries(st.tuples(st.integers(0, 2), st.integers(1, 3)), st.integers(1, 9), max_size=6)


@given(PAIRS, PAIRS)
def test_mariadb_lists(one: dict[tuple[int, int], int], other: dict[tuple[int, int], int]) -> None:
    def covered(last: dict[tuple[int, int], int]) -> set[tuple[int, int, int]]:
        return {(*source, n) for source, end in last.items() for n in range(1, end + 1)}

    a, b = MariadbGtids(one), MariadbGtids(other)
    assert MariadbGtids.parse(str(a)) == a
    assert covered(dict((a | b).last)) == covered(one) | covered(other)
    assert (a <= b) == (covered(one) <= covered(other))
    assert bool(a - b) == bool(covered(one) - covered(other))
    assert all(a.contains(*gtid) == (gtid in covered(one)) for gtid in covered(one) | covered(other))
    assert {domain for domain, _, _ in a.positions()} == {domain for domain, _ in one}


def test_mariadb_positions_name_the_last_server_of_a_domain() -> None:
    known = MariadbGtids.parse("0-1-270,0-2-300,1-5-7")
    assert str(known.positions()) == "0-2-300,1-5-7"
    assert str(known.add(0, 1, 301)) == "0-1-301,0-2-300,1-5-7"
    with pytest.raises(CheckpointError, match="not a set"):
        MariadbGtids.parse("0-1")


@pytest.mark.parametrize(
    ("includes", "excludes", "left"),
    [
        (UUIDS[0].upper(), "", UUIDS[:1]),
        ("3e.*, f.*", "", UUIDS),
        ("", "3e.*", UUIDS[1:]),
        ("3e", "", []),
    ],
)
def test_sources_are_filtered(includes: str, excludes: str, left: list[str]) -> None:
    gtids = built({(uuid, "", 1) for uuid in UUIDS})
    kept = gtids.filtered(filter_of(includes, excludes))
    assert sorted(uuid for uuid, _ in kept.intervals) == left


def test_sources_of_mariadb_are_filtered() -> None:
    assert str(MariadbGtids.parse("0-1-5,1-2-3").filtered(filter_of("0-.*"))) == "0-1-5"


def test_without_filters_all_sources_count() -> None:
    assert source_filter(options("", "")) is None


@pytest.mark.parametrize(
    ("flavor", "gtids", "expected"),
    [
        ("mysql", [f"{UUIDS[0]}:7", None, f"{UUIDS[1]}:tag:8"], [UUIDS[0], None, UUIDS[1]]),
        ("mariadb", ["0-1-270", None, "1-2-13"], ["0-1", None, "1-2"]),
    ],
)
def test_sources_of_transactions(flavor: str, gtids: list[str | None], expected: list[str | None]) -> None:
    assert sources(flavor, pa.array(gtids, pa.string())).to_pylist() == expected


def options(includes: str, excludes: str) -> MysqlOptions:
    given = {"gtid.source.includes": includes, "gtid.source.excludes": excludes}
    return MysqlOptions.parse({**REQUIRED_MYSQL, **given})


def filter_of(includes: str, excludes: str = "") -> Callable[[str], bool]:
    taken = source_filter(options(includes, excludes))
    assert taken is not None
    return taken
