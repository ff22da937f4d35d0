"""Decodes segments of Oracle's log."""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

from floodmark.changes.isolation import Isolation
from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.oracle.decode.decoder import Decoder
from floodmark.connectors.oracle.decode.logged_statement import schema_changes
from floodmark.connectors.oracle.decode.segment import SegmentRows
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.mining_options import HYBRID
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.events.columns import EventGroup
from floodmark.transforms.other_records import transformed

SLICE_ROWS = 16_384
"""Changes that are decoded together."""


def make_decoder(options: OracleOptions, make_version: VersionMaker) -> Decoder:
    """Return what makes events of transactions, as the options say."""
    return Decoder(
        options,
        make_version,
        options.include_redo_sql and options.mines,
        options.lob_enabled and options.mines,
        options.strategy == HYBRID,
        options.adapter,
    )


class OracleDecoder:
    """A ``LogDecoder``.

    Args:
        options: the source's options.
        make_version: makes the table versions of the output.
    """

    def __init__(self, options: OracleOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._make_version = make_version
        self._decoder = make_decoder(options, make_version)

    def decode(self, request: DecodeRequest, problems: DecodeProblems) -> Iterator[pa.RecordBatch]:
        """Yield the events of the changes in ``(after, upto]``.

        Raises:
            DecodeError: a statement can't be read, or has a value that isn't its column's.
        """
        options = self._options
        segment = SegmentRows(request.data, options.adapter)
        structures = {
            name: TableStructure(table, options.settings, options.include_schema_comments)
            for name, table in segment.tables.items()
            if options.captures(table.owner, table.name)
        }
        relations = list(structures.values())
        event = self._schema_change(segment, request)
        if event is not None:
            yield event
        isolation = Isolation(relations, request.excluded, request.only, problems)
        chosen = segment.within(request.after, request.upto)
        for part in segment.slices(chosen, SLICE_ROWS, whole=options.whole_transactions):
            shown = segment.shown.slice(part.start, part.stop - part.start)
            batch = self._decoder.decode(shown, segment.rows.select(part), structures, isolation)
            if batch is not None:
                yield batch

    def _schema_change(self, segment: SegmentRows, request: DecodeRequest) -> pa.RecordBatch | None:
        """Return the event of a segment's statement; None if it has none that is wanted."""
        if segment.statement is None or self._options.format != "events" or request.only is not None:
            return None
        place, statement = segment.statement
        if not request.after < place <= request.upto:
            return None
        options = self._options
        found = statement.event(options.topic_prefix, time.time_ns() // 1_000_000, options.schemas_enable)
        event = {
            "topic": options.topic_prefix,
            "key": pa.array([found["key"]]),
            "value": pa.array([found["value"]]),
        }
        columns = {
            **transformed(event, schema_changes(), options),
            "database": statement.database,
            "position": f"{place}-00",
            "source_ts": pa.array([statement.seconds * 1_000_000]).cast(pa.timestamp("us", tz="UTC")),
        }
        return self._make_version.assemble([EventGroup.of(np.zeros(1, np.int64), columns)])
