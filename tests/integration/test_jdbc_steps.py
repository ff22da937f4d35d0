"""A query is killed at each of its statements, and goes on in a new process as if nothing had happened."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tests.support.jdbc import Event, Query, Target, block, target_on

COLUMNS = pa.schema([("id", pa.int32()), ("v", pa.string())])
MORE = pa.schema([*COLUMNS, ("w", pa.int64())])


STRIDE = 1 if os.environ.get("FLOODMARK_FULL_MATRIX") else 5
"""How many statements lie between those that a query is killed at."""


class KilledError(BaseException):
    """What stands for the end of the process."""


CASES = [("pg18", True), ("mysql", False)]
if STRIDE == 1:
    CASES = list(product(("pg18", "mysql", "mariadb"), (False, True)))


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Iterator[Target]:
    with target_on(request.getfixturevalue(request.param)) as made:
        yield made


@pytest.mark.parametrize(("target", "after"), CASES, indirect=["target"])
def test_each_step(target: Target, tmp_path: Path, after: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    number, killed = int(after), True
    while killed:
        query = Query(target, tmp_path / str(number), {"collection_name_format": f"t{number}_${{source.table}}"})
        query.staged = bool(number // STRIDE % 2)
        with monkeypatch.context() as patches:
            kill_at(number, after, query, patches)
            killed = False
            try:
                write(query)
            except KilledError:
                killed = True
        if killed:
            query = Query(target, query.state, query.options, query=query.query, staged=query.staged)
            write(query)
        assert sorted(target.rows(f"SELECT id, v, w FROM t{number}_a")) == [(2, "c", 5), (3, "b", None)]
        assert sorted(target.rows(f"SELECT id, _op FROM t{number}_k")) == [(1, "c"), (2, "c"), (2, "d")]
        number += STRIDE
    assert number > 30


def write(query: Query) -> None:
    """Write two micro-batches, the second of them with a new column, from where the target says that the query is."""
    first: dict[str, Any] = {
        "s.a": [block(COLUMNS, ["id"], [event("c", 1, v="a"), event("c", 2, v="b")])],
        "s.k": [block(COLUMNS, [], [event("c", 1), event("c", 2)])],
    }
    later = [
        event("d", 1, 3),
        event("d", 2, 4),
        {**event("c", 3, 5), "before": {"id": 2}, "unavailable": ["v"]},
        event("c", 2, 6, v="c", w=5),
    ]
    second: dict[str, Any] = {
        "s.a": [block(MORE, ["id"], later)],
        "s.k": [block(COLUMNS, [], [event("d", 2, 7)])],
    }
    done, _ = query.targets.books.offset(query.targets.session())
    # The checkpoint may be one micro-batch behind.
    for batch in range(max(done, 0), 2):
        query.write(batch, (first, second)[batch])


def event(op: str, number: int, at: int = 0, **values: Any) -> Event:
    side = "before" if op == "d" else "after"
    return {"op": op, "position": f"{at or number:04}", side: {"id": number, **values}}


def kill_at(number: int, after: bool, query: Query, patches: pytest.MonkeyPatch) -> None:
    """Let the statement with a number be the last one, before or after it has run."""
    kind = type(query.targets.session())
    count = iter(range(1 << 30))

    def counted(method: Callable[..., Any]) -> Callable[..., Any]:
        def call(session: Any, *args: Any, **kwargs: Any) -> Any:
            mine = next(count)
            if mine == number and not after:
                raise KilledError
            done = method(session, *args, **kwargs)
            if mine == number:
                raise KilledError
            return done

        return call

    for name in ("execute", "query", "load", "commit"):
        patches.setattr(kind, name, counted(getattr(kind, name)))
    # A process that is killed undoes nothing; its connection ends, and with it the transaction.
    patches.setattr(kind, "rollback", lambda session: session.close())
