"""Snapshots and data files as pyiceberg has them.

Interface: ``pyiceberg.manifest`` and ``pyiceberg.io.pyarrow`` of pyiceberg 0.12.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa

from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.iceberg.changes import rows_in
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.state import Snapshot

if TYPE_CHECKING:
    from pyiceberg.manifest import DataFile as PyDataFile
    from pyiceberg.table import Table
    from pyiceberg.table.snapshots import Snapshot as PySnapshot


def snapshot_of(found: PySnapshot) -> Snapshot:
    """Return a snapshot."""
    return Snapshot(found.snapshot_id, found.parent_snapshot_id, found.sequence_number or 0)


def has_rows(found: PySnapshot) -> bool:
    """Return whether a snapshot may have rows: other writers needn't say how many files it has."""
    return found.summary is None or found.summary.get("total-data-files") != "0"


def described(file: PyDataFile) -> dict[str, Any]:
    """Return a file as the metadata table ``files`` has it; pyiceberg has none with delete files that count."""
    return {
        "content": int(file.content),
        "file_path": file.file_path,
        "file_format": str(file.file_format.value),
        "record_count": file.record_count,
        "file_size_in_bytes": file.file_size_in_bytes,
        "lower_bounds": list((file.lower_bounds or {}).items()),
        "upper_bounds": list((file.upper_bounds or {}).items()),
    }


def added_file(table: Table, file: DataFile, files: IcebergFiles) -> PyDataFile:
    """Return a file that a table gets, with the statistics that are in its end.

    Args:
        files: those of the table.
    """
    from pyiceberg.io.pyarrow import (
        compute_statistics_plan,
        data_file_statistics_from_parquet_metadata,
        parquet_path_to_id_mapping,
    )

    metadata = table.metadata
    found = data_file_statistics_from_parquet_metadata(
        files.parquet_metadata(file),
        compute_statistics_plan(metadata.schema(), metadata.properties),
        parquet_path_to_id_mapping(metadata.schema()),
    ).to_serialized_dict()
    return _data_file(table, files.location(file.path), size_of(file), **found)


def removed_file(table: Table, file: DataFile, files: IcebergFiles) -> PyDataFile:
    """Return a file that a table loses.

    Args:
        files: those of the table.
    """
    return _data_file(table, files.location(file.path), size_of(file), rows_in(file))


def _data_file(table: Table, location: str, size: int, record_count: int, **more: Any) -> PyDataFile:
    from pyiceberg.manifest import DataFile as PyDataFile
    from pyiceberg.manifest import DataFileContent, FileFormat
    from pyiceberg.typedef import Record

    found = PyDataFile.from_args(
        content=DataFileContent.DATA,
        file_path=location,
        file_format=FileFormat.PARQUET,
        partition=Record(),
        record_count=record_count,
        file_size_in_bytes=size,
        **more,
    )
    found.spec_id = table.metadata.default_spec_id
    return found


def iceberg_type(kind: pa.DataType) -> Any:
    """Return the type of a column as pyiceberg has it."""
    from pyiceberg.io.pyarrow import _ConvertToIcebergWithoutIDs, visit_pyarrow

    return visit_pyarrow(kind, _ConvertToIcebergWithoutIDs())


def size_of(file: DataFile) -> int:
    """Return how many bytes a data file has."""
    size = file.add["size"]
    assert isinstance(size, int)
    return size
