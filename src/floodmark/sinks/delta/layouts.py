"""By which columns the files of a Delta table are arranged: clustered or partitioned.

Format: the Delta protocol, sections "Clustered Table" and "Partition Value Serialization".
"""

from __future__ import annotations

import json
from collections.abc import Sequence

import pyarrow as pa

from floodmark.config.model import nearest
from floodmark.errors import TargetError
from floodmark.json_data import JsonObject
from floodmark.sinks.delta.format.log import State
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.statistics import is_described
from floodmark.sinks.delta.format.vectors import damaged

CLUSTERING = ("clustering", "domainMetadata")
"""The features of clustered tables."""


def clustered(columns: Sequence[str]) -> Action:
    """Return the action that says by which columns a table is clustered."""
    domain = "delta.clustering"
    configuration = json.dumps({"clusteringColumns": [[name] for name in columns], "domainName": domain})
    return {"domainMetadata": {"domain": domain, "configuration": configuration, "removed": False}}


def prove_clustering(rows: pa.Schema, clustering: Sequence[str], name: str) -> None:
    """Check that a table can be clustered by columns.

    Args:
        rows: the source's columns.
        name: the table's, for errors.

    Raises:
        TargetError: it lacks one of them, or the log has no statistics of it.
    """
    for column in clustering:
        place = rows.get_field_index(column)
        if place < 0:
            raise TargetError(
                f"The mirror's option cluster.by names the column '{column}' for the table '{name}', which has no such "
                f"column. {nearest(column, rows.names)}".rstrip(),
                "Correct the column, or the regular expression of the table.",
            )
        if not is_described(rows, column):
            raise TargetError(
                f"The mirror's option cluster.by names the column '{column}' of the table '{name}', by which no table "
                "can be clustered.",
                "Name columns of whole numbers, texts, dates or timestamps, among the first 32 of the table.",
            )


def is_clustered(state: State) -> bool:
    """Return whether a table may be clustered."""
    protocol = JsonObject(state.protocol, "The protocol of a Delta table", damaged)
    return "writerFeatures" in protocol and CLUSTERING[0] in protocol.texts("writerFeatures")


def prove_partition(rows: pa.Schema, partition: Sequence[str], clustered: bool, name: str) -> None:
    """Check that a table can be partitioned by columns.

    Args:
        rows: the source's columns.
        clustered: whether it is clustered.
        name: the table's, for errors.

    Raises:
        TargetError: it can't.
    """
    if partition and clustered:
        raise TargetError(
            f"The mirror's option partition.by matches the table '{name}', which is clustered; Delta clusters no "
            "partitioned tables.",
            "Correct the regular expressions of partition.by and cluster.by so that one of them matches, or remove the "
            "target table if it is clustered already.",
        )
    for column in partition:
        if column not in rows.names:
            raise TargetError(
                f"The mirror's option partition.by names the column '{column}' for the table '{name}', which has no "
                f"such column. {nearest(column, rows.names)}".rstrip(),
                "Correct the column, or the regular expression of the table.",
            )
    if partition and len(partition) == len(rows):
        raise TargetError(
            f"The mirror's option partition.by names all columns of the table '{name}'.", "Leave at least one out."
        )


def prove_partitioned(state: State, partition: Sequence[str], name: str) -> None:
    """Check that a table is partitioned by columns.

    Args:
        name: the table's, for errors.

    Raises:
        TargetError: it is partitioned by others, or not at all.
    """
    found = JsonObject(state.metadata, f"The metadata of '{name}'", damaged).texts("partitionColumns")
    if found != tuple(partition):
        was = f"partitioned by {', '.join(found)}" if found else "not partitioned"
        now = f"names {', '.join(partition)}" if partition else "names no column of it"
        raise TargetError(
            f"The Delta table '{name}' is {was}, but the mirror's option partition.by {now}.",
            "Set the option as the table is, or remove the target table and start the query with missing.tables=read.",
        )
