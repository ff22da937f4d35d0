"""How snapshots cut tables: keys that lie anyhow, and many tables."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NamedTuple

import pytest

from floodmark.connectors.postgres.server import catalog, connection, publication, slots
from floodmark.connectors.postgres.snapshot import chunks, key_ranges, read_point
from floodmark.connectors.postgres.source import log, read_points, tables
from tests.conftest import Source
from tests.integration.test_incremental import SIGNALS, query_of, signal
from tests.support.hurry import hurry
from tests.support.inprocess import InProcess

ROWS = 20_000
SIZE = 500
WIDE = "md5(g::text)::uuid"
TABLES = {
    "gaps": ("bigint", "CASE WHEN g % 2 = 0 THEN g ELSE g::bigint * 461168601842738 END"),
    "extremes": (
        "bigint",
        "CASE g WHEN 1 THEN -9223372036854775808 WHEN 2 THEN 9223372036854775807 ELSE g - 10000 END",
    ),
    "one prefix": (
        "text",
        "CASE WHEN g % 100 = 0 THEN chr(97 + g / 100 % 26) || g ELSE 'customer/eu-west-1/orders/' || g END",
    ),
    "uuid": ("uuid", WIDE),
    "numeric": ("numeric", "CASE WHEN g % 3 = 0 THEN -g * 1e30 WHEN g % 3 = 1 THEN g / 1e9 ELSE 'NaN'::numeric END"),
    "time": ("timestamptz", "CASE g WHEN 1 THEN '-infinity' WHEN 2 THEN 'infinity' ELSE 'epoch' END::timestamptz"),
    "pair": ("integer", "CASE WHEN g % 100 = 0 THEN g ELSE 7 END"),
}
UNIQUE = {"numeric", "time", "pair"}
"""Those whose key has a second column, since the first is nearly always the same."""


@pytest.fixture(autouse=True)
def _hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    hurry(monkeypatch)


def parts_of(query: InProcess, end: dict[str, Any]) -> list[tuple[dict[str, Any], int]]:
    """Return the chunks of a micro-batch, each with how many rows it really has."""
    found = []
    for task in query.reader.partitions(query.offset, end):
        for chunk in getattr(task, "chunks", []):
            alone = type(task)(**{**vars(task), "chunks": [chunk]})
            found.append((chunk, sum(rows.num_rows for rows in query.reader.read(alone))))
    return found


@pytest.mark.parametrize("kind", TABLES)
def test_chunks_have_their_size(source: Source, kind: str) -> None:
    column, value = TABLES[kind]
    key = "id, n" if kind in UNIQUE else "id"
    source.execute(
        SIGNALS,
        f"CREATE TABLE t (id {column}, n integer, PRIMARY KEY ({key}))",
        f"INSERT INTO t SELECT {value}, g FROM generate_series(1, {ROWS}) g",
    )
    query = query_of(source, incremental_snapshot_chunk_size=str(SIZE), max_batch_rows="4000")
    query.step()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    sizes: list[list[int]] = []
    total = 0
    while total < ROWS:
        end = query.reader.latestOffset(query.offset, query.reader.getDefaultReadLimit())
        if end == query.offset:
            continue
        read = parts_of(query, end)
        total += sum(count for _, count in read)
        sizes += [[count for _, count in read]] if read else []
        query.offset = end
    query.stop()
    assert total == ROWS
    # What a chunk is to have grows with what a micro-batch may have; the last of a table has the rest.
    for number, counts in enumerate(sizes):
        whole = counts if number < len(sizes) - 1 else counts[:-1]
        assert all(SIZE <= count <= 2 * max(min(whole), SIZE) for count in whole), sizes
    assert len(sizes) > 2


@pytest.mark.parametrize("columns", ["n", "more", "k0", "k1,k0", "keys", "numbered,highest", "t,n,k2"])
def test_a_key_whose_columns_have_any_names(source: Source, columns: str) -> None:
    first, *others = columns.split(",")
    # As texts, in the order of the second column, or with another highest key, these would be cut wrongly.
    defined = ", ".join([f"{first} integer", *(f"{name} integer" for name in others)])
    values = ", ".join(["g", *("-g" for _ in others)])
    source.execute(
        SIGNALS,
        f"CREATE TABLE t ({defined}, PRIMARY KEY ({columns}))",
        f"INSERT INTO t SELECT {values} FROM generate_series(1, 120) g",
    )
    query = query_of(source, incremental_snapshot_chunk_size="7", max_batch_rows="50")
    query.step()
    signal(source, "execute-snapshot", data_collections=["public.t"])
    rows = query.drain()
    query.stop()
    assert Counter(json.loads(row["key"])[first] for row in rows if row["op"] == "r") == dict.fromkeys(range(1, 121), 1)


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The statements that are run at the server, except those that copy rows."""
    found: list[str] = []

    def counting(conn: Any, statement: str, *args: Any, **kwargs: Any) -> Any:
        found.append(str(statement))
        return RUN(conn, statement, *args, **kwargs)

    for module in (catalog, chunks, connection, key_ranges, log, read_points, tables, publication, read_point, slots):
        if hasattr(module, "run"):
            monkeypatch.setattr(module, "run", counting)
    return found


RUN = connection.run


class Work(NamedTuple):
    """What a snapshot took."""

    reads: int
    """Transactions that read rows."""
    others: int
    """Statements that aren't part of those."""
    batches: int
    largest: int
    """Characters of the largest offset."""


READ = 10
"""The statements of a transaction that reads rows."""


def planned(source: Source, count: int, statements: list[str], rows: int) -> Work:
    """Snapshot the first tables in micro-batches of at most that many rows."""
    query = query_of(
        source,
        incremental_snapshot_chunk_size="50",
        table_include_list=rf"public\.m{count}_.*",
        max_batch_rows=str(rows),
    )
    query.step()
    signal(source, "execute-snapshot", data_collections=[rf"public\.m{count}_.*"])
    statements.clear()
    largest = 0
    read: Counter[str] = Counter()
    while not read or query.offset["incremental"] is not None:
        read.update(row["table"] for row in query.step() if row["op"] == "r")
        largest = max(largest, len(json.dumps(query.offset)))
    query.stop()
    assert read == {f"m{count}_{number}": 200 for number in range(count)}
    reads = sum(statement.endswith(" LIMIT 0") for statement in statements)
    return Work(reads, len(statements) - READ * reads, query.batches, largest)


@pytest.mark.parametrize("rows", [540, 1_000_000])
def test_the_work_grows_as_the_number_of_tables(source: Source, statements: list[str], rows: int) -> None:
    source.execute(
        SIGNALS,
        "DO $$ BEGIN FOR g IN 0..109 LOOP EXECUTE format('CREATE TABLE m%s_%s (id integer PRIMARY KEY, v text)', "
        "CASE WHEN g < 10 THEN 10 ELSE 100 END, CASE WHEN g < 10 THEN g ELSE g - 10 END); EXECUTE format("
        "'INSERT INTO m%s_%s SELECT n, n FROM generate_series(1, 200) n', CASE WHEN g < 10 THEN 10 ELSE 100 END, "
        "CASE WHEN g < 10 THEN g ELSE g - 10 END); END LOOP; END $$",
    )
    few = planned(source, 10, statements, rows)
    many = planned(source, 100, statements, rows)
    # A busy machine makes smaller micro-batches, and each takes some statements and its own reads, at most one a chunk.
    assert 10 <= few.reads <= 10 * 4, few
    assert 100 <= many.reads <= 100 * 4, many
    assert many.others <= 10 * few.others + 10 * many.batches, (few, many)
    assert many.largest <= 12 * few.largest, (few, many)
    assert many.largest <= 100 * 1500, many
