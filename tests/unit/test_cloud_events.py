"""Values as CloudEvents."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from floodmark.changes.layout_groups import LayoutGroups
from floodmark.connectors.mysql.decode.structure import TableStructure
from floodmark.connectors.mysql.options import MysqlOptions
from floodmark.connectors.mysql.structures.table import Table
from floodmark.connectors.postgres.options import PostgresOptions
from floodmark.errors import ConfigError, SourceStateError
from floodmark.events.connect_schema import field_schema, source_struct
from floodmark.events.heartbeats import heartbeat_batch
from floodmark.transforms.chain import Chain
from floodmark.transforms.envelopes import envelopes
from floodmark.transforms.other_records import HEARTBEATS, transformed_batch
from floodmark.transforms.records import Records
from floodmark.transforms.structs import Struct
from tests.support.options import REQUIRED, REQUIRED_MYSQL
from tests.support.records import KEY, ROW, changes, texts

CONVERTER = "value.converter"
CLOUD_EVENTS = {CONVERTER: "io.debezium.converters.CloudEventsConverter"}
SOURCE = source_struct(
    [field_schema({"type": "int64"}, True, "lsn"), field_schema({"type": "int64"}, True, "txId")], "Source"
)


def options(**given: str) -> PostgresOptions:
    every = {f"{CONVERTER}.{name.replace('__', '.')}": value for name, value in given.items()}
    return PostgresOptions.parse({**REQUIRED, **CLOUD_EVENTS, **every})


def records(times: list[int], pieces: list[str | pa.StringArray] | None = None) -> Records:
    """Return creates of rows, at these times."""
    rows = len(times)
    source: list[str | pa.StringArray] = pieces or [
        '{"version":"1","connector":"postgresql","name":"a \\"b\\"","ts_ms":',
        pa.array(map(str, times)),
        ',"snapshot":"false","db":"d","sequence":null,"ts_us":1,"ts_ns":null,"lsn":',
        pa.array([str(n) for n in range(rows)]),
        ',"txId":null}',
    ]
    row = [texts(*("x" * rows)), texts(*("1" * rows))]
    value = envelopes(_envelope_schema(), "c", rows, None, row, source, None)
    return Records("rows of s.t", rows, "t", Struct(KEY, [row[1]]), value, (), np.arange(rows))


def _envelope_schema() -> dict[str, Any]:
    fields = [
        field_schema(ROW, True, "before"),
        field_schema(ROW, True, "after"),
        field_schema(SOURCE, False, "source"),
        field_schema({"type": "struct", "fields": []}, True, "transaction"),
        *(field_schema({"type": "string"}, False, name) for name in ("op", "ts_ms", "ts_us", "ts_ns")),
    ]
    return {"type": "struct", "fields": fields, "optional": False, "name": "t.Envelope"}


def values(found: Records, chosen: PostgresOptions | None = None) -> list[dict[str, Any]]:
    return [json.loads(text) for text in Chain(chosen or options()).columns(found)["value"].to_pylist()]


def test_attributes_of_rows_and_of_all_rows() -> None:
    times = [0, 1795897900650, 253402300799999]
    apart = values(records(times))
    assert [one["time"] for one in apart] == [
        "1970-01-01T00:00:00.000Z",
        "2026-11-28T20:31:40.650Z",
        "9999-12-31T23:59:59.999Z",
    ]
    assert apart[1]["id"] == 'name:a "b";lsn:1;txId:null;sequence:null'
    assert apart[1]["source"] == '/debezium/postgresql/a "b"'
    assert apart[1]["iodebeziumlsn"] == "1"
    assert apart[1]["iodebeziumtxId"] is None
    assert apart[1]["iodebeziumsnapshot"] == "false"
    # Some source blocks have one text a row.
    one = pa.array([_text(time, number) for number, time in enumerate(times)])
    assert values(records(times, [one])) == apart
    whole = values(records([times[1]], [_text(times[1], 1)]))
    assert whole == apart[1:2]


def _text(time: int, number: int) -> str:
    return (
        f'{{"version":"1","connector":"postgresql","name":"a \\"b\\"","ts_ms":{time},"snapshot":"false","db":"d",'
        f'"sequence":null,"ts_us":1,"ts_ns":null,"lsn":{number},"txId":null}}'
    )


def test_tombstones_and_other_records_have_no_value() -> None:
    tombstone = replace(records([0]), value=None)
    assert Chain(options()).columns(tombstone)["value"].to_pylist() == [None]
    beat = transformed_batch(heartbeat_batch(0, options(), "0/1"), HEARTBEATS, options())
    assert beat.column("value").to_pylist() == [None]
    assert beat.column("key").to_pylist() != [None]


def test_rows_without_envelopes_are_no_events() -> None:
    found = changes("t", "a")
    assert isinstance(found.value, Struct)
    row = found.value.value("after")
    assert isinstance(row, Struct)
    members = [member for member in found.value.members() if member[0] != "source"]
    for value in (row, found.value.with_members(members)):
        with pytest.raises(SourceStateError, match=r"rows of s\.t can't become CloudEvents"):
            Chain(options()).columns(replace(found, value=value))


def test_tables_of_one_layout_have_their_own_schemas() -> None:
    structures = [TableStructure(Table("d", name, ()), "mysql") for name in ("a", "b")]
    required = {**REQUIRED_MYSQL, **CLOUD_EVENTS}
    assert LayoutGroups(structures, MysqlOptions.parse(required)).shape.tolist() == [0, 1]
    bare = {**required, f"{CONVERTER}.json.schemas.enable": "false"}
    assert LayoutGroups(structures, MysqlOptions.parse(bare)).shape.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {CONVERTER: "io.confluent.connect.protobuf.ProtobufConverter"},
            (CONVERTER, "Protobuf", "CloudEventsConverter"),
        ),
        ({**CLOUD_EVENTS, f"{CONVERTER}.serializer.type": "avro"}, ("serializer.type", "avro", "json")),
        ({**CLOUD_EVENTS, f"{CONVERTER}.metadata.source": "header"}, ("metadata.source", "'header'", "value")),
        ({**CLOUD_EVENTS, f"{CONVERTER}.metadata.source": "value,id:header"}, ("'id:header'",)),
        ({f"{CONVERTER}.extension.attributes.enable": "false"}, ("has no effect", "CloudEventsConverter")),
        ({**CLOUD_EVENTS, "format": "rows"}, (CONVERTER, "format=events")),
        ({**CLOUD_EVENTS, f"{CONVERTER}.opentelemetry.tracing.attributes.enable": "true"}, ("tracing", "false")),
    ],
)
def test_wrong_options(given: dict[str, str], words: tuple[str, ...]) -> None:
    with pytest.raises(ConfigError) as error:
        PostgresOptions.parse({**REQUIRED, **given})
    assert all(word in str(error.value) for word in words), error.value


def test_schemas_of_keys() -> None:
    assert not options().schemas_enable
    given = {**REQUIRED, **CLOUD_EVENTS, "key.converter.schemas.enable": "true"}
    assert PostgresOptions.parse(given).schemas_enable
    assert not PostgresOptions.parse({**REQUIRED, **CLOUD_EVENTS, f"{CONVERTER}.schemas.enable": "true"}).schemas_enable
