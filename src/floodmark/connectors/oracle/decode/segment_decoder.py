"""Decodes segments of Oracle's log."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from floodmark.changes.isolation import Isolation
from floodmark.changes.table_version import VersionMaker
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.oracle.decode.decoder import Decoder
from floodmark.connectors.oracle.decode.segment import SegmentRows
from floodmark.connectors.oracle.decode.structure import TableStructure
from floodmark.connectors.oracle.options import OracleOptions

SLICE_ROWS = 16_384
"""Changes that are decoded together."""


class OracleDecoder:
    """A ``LogDecoder``.

    Args:
        options: the source's options.
        make_version: makes the table versions of the output.
    """

    def __init__(self, options: OracleOptions, make_version: VersionMaker) -> None:
        self._options = options
        self._decoder = Decoder(options, make_version, options.include_redo_sql, options.lob_enabled)

    def decode(self, request: DecodeRequest, problems: DecodeProblems) -> Iterator[pa.RecordBatch]:
        """Yield the events of the changes in ``(after, upto]``.

        Raises:
            DecodeError: a statement can't be read, or has a value that isn't its column's.
        """
        segment = SegmentRows(request.data)
        options = self._options
        structures = {
            name: TableStructure(table, options.settings)
            for name, table in segment.tables.items()
            if options.captures(table.owner, table.name)
        }
        relations = list(structures.values())
        isolation = Isolation(relations, request.excluded, request.only, problems)
        chosen = segment.within(request.after, request.upto)
        for part in segment.slices(chosen, SLICE_ROWS, whole=options.lob_enabled):
            shown = segment.shown.slice(part.start, part.stop - part.start)
            batch = self._decoder.decode(shown, segment.rows.select(part), structures, isolation)
            if batch is not None:
                yield batch
