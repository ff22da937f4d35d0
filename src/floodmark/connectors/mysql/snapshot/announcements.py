"""Creates the schema change events that a snapshot begins with."""

from __future__ import annotations

import time
from collections.abc import Mapping

from floodmark.connectors.mysql.decode.structure import flavor_of
from floodmark.connectors.mysql.options import BinlogOptions
from floodmark.connectors.mysql.schema_history.schema_events import (
    key_schema,
    key_text,
    snapshot_changes,
    value_schema,
    value_text,
)
from floodmark.connectors.mysql.snapshot.definitions import Announced
from floodmark.connectors.mysql.snapshot.token import ReadPointToken
from floodmark.connectors.mysql.source_block import read_statement_block
from floodmark.events.columns import EventRow
from floodmark.events.connect_schema import carrying_schema
from floodmark.json_data import Json
from floodmark.transforms.other_records import SCHEMA_CHANGES, RecordKind, transformed_rows


def announcements(
    options: BinlogOptions, announced: Announced, position: str, token: Mapping[str, Json]
) -> list[EventRow]:
    """Return the events that a snapshot begins with, as rows of the output.

    Args:
        options: the source's options.
        announced: the tables at the read point.
        position: the read point's position.
        token: the read point's token.
    """
    flavor, read_point = flavor_of(options), ReadPointToken.from_json(token)
    kind = RecordKind(SCHEMA_CHANGES, key_schema(flavor), value_schema(flavor))
    rows: list[dict[str, str]] = []
    tables = sorted(announced.statements)
    for change in snapshot_changes(announced.schema, announced.statements, announced.server, tables):
        block = read_statement_block(
            flavor,
            options.topic_prefix,
            change.database,
            change.tables,
            read_point.micros,
            read_point.file,
            read_point.offset,
        )
        value = value_text(change, block, time.time_ns() // 1_000_000, options.includes_comments)
        rows.append(
            {
                "topic": options.topic_prefix,
                "key": carrying_schema(key_text(change), kind.key, options.schemas_enable),
                "value": carrying_schema(value, kind.value, options.schemas_enable),
                "database": change.database,
                "position": f"{position}-00",
            }
        )
    return transformed_rows(rows, kind, options)
