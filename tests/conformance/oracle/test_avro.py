"""Oracle's events in Avro, with a real registry, beside the same in JSON, on the stand-in."""

from __future__ import annotations

import json
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.oracle.cases import WHOLE
from tests.conformance.oracle.test_connector import options_of
from tests.support.avro import Consumer, avro_options, plain
from tests.support.inprocess import InProcess
from tests.support.oracle.fronts.tns.server import TnsServer
from tests.support.schema_registry import RunningRegistry

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("other_process")]
CASES = ("decimal_string", "ddl_comments", "transaction_metadata", "large_objects")
"""Decimals are texts, since fastavro reads none of a negative scale; ``tests/conformance/test_avro.py`` has these."""


def rows_of(name: str, state: Path, more: dict[str, str]) -> list[dict[str, Any]]:
    """Return the rows of a case's changes, which are all read at once."""
    case = WHOLE[f"logminer_unbuffered/{name}"]
    database = case.prepared()
    with ExitStack() as stack:
        ports = [stack.enter_context(TnsServer(database, thread=number)).port for number in database.threads]
        query = InProcess(options_of(case, database, ports, state) | more)
        try:
            rows = query.drain()
            for step in case.steps:
                if callable(step):
                    with database.step():
                        step(database)
            case.end(database)
            return rows + query.drain()
        finally:
            query.stop()


@pytest.mark.parametrize("name", CASES)
def test_events_are_those_in_json(name: str, registry: RunningRegistry, tmp_path: Path) -> None:
    own = {"topic.prefix": f"ora_{name}", "schemas.enable": "false"}
    given = rows_of(name, tmp_path / "text", own)
    found = rows_of(name, tmp_path / "avro", own | avro_options(registry.url))
    read = Consumer(registry.url)
    assert len(given) == len(found) > 2
    for one, other in zip(given, found, strict=True):
        assert one["topic"] == other["topic"]
        for side in ("key", "value"):
            shown = None if other[side] is None else plain(read(other, side))
            assert settled(shown) == settled(json.loads(one[side] or "null")), one["topic"]


def settled(event: Any) -> Any:
    """Return an event without when it was made and where in the log, which each run has of its own."""
    if isinstance(event, dict):
        volatile = ("ts_ms", "ts_us", "ts_ns", "scn", "commit_scn", "txId", "id", "rs_id", "ssn", "row_id", "start_scn")
        kept = {name: settled(one) for name, one in event.items() if name not in volatile}
        # JSON has the shortest digits of 32 bits; infinities and what is no number are texts there.
        return kept | {name: str(np.float32(kept[name])) for name in ("SINGLE",) if kept.get(name) is not None}
    return [settled(one) for one in event] if isinstance(event, list) else event
