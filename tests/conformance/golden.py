"""Read the recorded events, and mask what differs from run to run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

GOLDENS = Path(__file__).with_name("goldens")
PREFIX = "golden"
SOURCE_START = '"source":{"version":"'
VOLATILE = re.compile(
    r'"(ts_ms|ts_us|ts_ns|txId|lsn|xmin|server_id|pos|thread)":\d+|"(sequence|gtid|file)":"(?:[^"\\]|\\.)*"'
)
TRANSACTION_ID = re.compile(r'"id":"(?:\d+:\d+|[0-9a-f-]{36}:\d+|\d+-\d+-\d+|file=[^"]*)"')
NOTIFICATION = re.compile(r'("id":")[0-9a-f]{8}-[0-9a-f-]{27}(?=")|("timestamp":)\d+')
MESSAGE_TIME = re.compile(r'(\{"op":"m","ts_ms":)\d+')
DEFAULT_VERSION = '"version":"3.6.3.Final"'
CLOUD_EVENT, CLOUD_DATA = '{"id":"name:', ',"data":'
_CLOUD_ID = re.compile(r'(?<=;)((?:lsn|txId|sequence|file|pos):)(?:[^;"\\]|\\.)*')
_CLOUD_FIELD = re.compile(
    r'"(time|iodebezium(?:version|ts[mun]s|sequence|db|txId|lsn|xmin|serverid|gtid|file|pos|thread|txid))":'
    r'"(?:[^"\\]|\\.)*"|"(iodebezium(?:thread|serverid|xmin))":\d+'
)
HEARTBEAT = re.compile(r"^__debezium-heartbeat\.|^beats?\b")


@dataclass(frozen=True)
class Golden:
    """One of Debezium's records: topic, the exact JSON text of key and value, headers, the partition if it has one."""

    topic: str
    key: str | None
    value: str | None
    headers: dict[str, str | None]
    partition: int | None = None


def path_of(case: str, connector: str = "postgres") -> Path:
    """Return where a case's events are kept."""
    return (GOLDENS if connector == "postgres" else GOLDENS / connector) / f"{case}.jsonl"


def load(case: str, connector: str = "postgres") -> list[Golden]:
    """Return the recorded events of a case, in order."""
    with path_of(case, connector).open(encoding="utf-8") as lines:
        return [Golden(**json.loads(line)) for line in lines]


def masked(value: str | None) -> str | None:
    """Return an event's text with 0 for times, transaction ids and log positions outside the row images."""
    if value is None:
        return None
    if value.startswith(CLOUD_EVENT):
        head, data = value.split(CLOUD_DATA, 1)
        head = _CLOUD_FIELD.sub(_zero, _CLOUD_ID.sub(r"\g<1>0", head))
        return head + CLOUD_DATA + (masked(data) or "" if SOURCE_START in data else data)
    start = value.rfind(SOURCE_START)
    if start < 0:
        return _unnotified(_without_ids(VOLATILE.sub(_zero, value)))
    head, tail = value[:start], value[start:]
    tail = _without_ids(VOLATILE.sub(_zero, tail))
    return MESSAGE_TIME.sub(r"\g<1>0", head) + re.sub(r'"version":"[^"]*"', DEFAULT_VERSION, tail, count=1)


def masked_key(topic: str, key: str | None) -> str | None:
    """Return an event's key with 0 for what is different in each run."""
    if key is None:
        return None
    if topic.endswith(".notices"):
        return _unnotified(key)
    return _without_ids(key) if topic.endswith(("transaction", "_tx", ".tx")) else key


def settled(events: list[Golden]) -> list[Golden]:
    """Return events with one heartbeat, if there are any, at the end: when they come depends on the clock."""
    beats = [event for event in events if HEARTBEAT.match(event.topic)]
    return [event for event in events if not HEARTBEAT.match(event.topic)] + beats[:1]


def _unnotified(text: str) -> str:
    return NOTIFICATION.sub(r"\1\g<2>0", text)


def _zero(found: re.Match[str]) -> str:
    return f'"{found[1] or found[2]}":0'


def _without_ids(text: str) -> str:
    return TRANSACTION_ID.sub('"id":"0:0"', text)
