"""Read the recorded events, and mask what differs from run to run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

GOLDENS = Path(__file__).with_name("goldens")
SOURCE_START = '"source":{"version":"'
VOLATILE = re.compile(r'"(ts_ms|ts_us|ts_ns|txId|lsn)":\d+|"sequence":"(?:[^"\\]|\\.)*"')
DEFAULT_VERSION = '"version":"3.6.3.Final"'


@dataclass(frozen=True)
class Golden:
    """One of Debezium's records: topic, the exact JSON text of key and value, headers."""

    topic: str
    key: str | None
    value: str | None
    headers: dict[str, str | None]


def load(case: str) -> list[Golden]:
    """Return the recorded events of a case, in order."""
    with (GOLDENS / f"{case}.jsonl").open(encoding="utf-8") as lines:
        return [Golden(**json.loads(line)) for line in lines]


def masked(value: str | None) -> str | None:
    """Return an event's text with 0 for times, transaction ids and log positions outside the row images."""
    if value is None:
        return None
    start = value.rfind(SOURCE_START)
    head, tail = value[:start], value[start:]
    tail = VOLATILE.sub(lambda found: f'"{found[1] or "sequence"}":0', tail)
    return head + re.sub(r'"version":"[^"]*"', DEFAULT_VERSION, tail, count=1)
