"""Schemas and values beside those of Confluent's converter, byte by byte."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from floodmark.errors import ConfigError
from floodmark.transforms.avro.schemas import SchemaSettings, avro_schema
from tests.conformance.golden import GOLDENS
from tests.support.avro import encoded, read_event

# JsonConverter, which gave the converter the events, takes these for zeros.
NOT_READ = ('"NaN"', '"Infinity"', '"-Infinity"', "-0.0")
WIRE = 5
SHARE = 15
"""One of so many is compared by ``make test``."""


def recorded() -> Iterator[tuple[dict[str, Any], str]]:
    """Yield what was recorded, and the event that it was made of."""
    texts: dict[str, list[str]] = {}
    for line in (GOLDENS / "avro.jsonl").read_text(encoding="utf-8").split("\n")[:-1]:
        one = json.loads(line)
        if one["case"] not in texts:
            texts = {one["case"]: (GOLDENS / f"{one['case']}.jsonl").read_text(encoding="utf-8").split("\n")}
        yield one, json.loads(texts[one["case"]][one["line"]])[one["side"]]


def settings_of(one: dict[str, Any]) -> SchemaSettings:
    given = one["settings"]
    return SchemaSettings(given.get("connect.meta.data") != "false", given.get("scrub.invalid.names") == "true")


@pytest.mark.parametrize("rest", [False, pytest.param(True, marks=pytest.mark.long)])
def test_schemas_and_values_equal_confluents(rest: bool) -> None:
    schemas, values = 0, 0
    for number, (one, text) in enumerate(recorded()):
        if rest != bool(number % SHARE):
            continue
        schema, payload = read_event(text)
        if "error" in one:
            assert "Illegal character" in one["error"]
            with pytest.raises(ConfigError, match=r"adjustment\.mode=avro"):
                avro_schema(schema, settings_of(one))
            continue
        place = one["case"], one["line"]
        mine = avro_schema(schema, settings_of(one))
        if '"NaN"' not in text:
            assert mine == one["schema"], place
            schemas += 1
        if payload is not None and not any(word in text for word in NOT_READ):
            assert encoded(schema, [payload])[0] == base64.b64decode(one["bytes"])[WIRE:], place
            values += 1
    assert min(schemas, values) > (1200 if rest else 80)
