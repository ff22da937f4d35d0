"""Sends records to topics that an expression names, as ``io.debezium.transforms.ContentBasedRouter`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from floodmark.transforms.debezium.scripting import Scripting
from floodmark.transforms.records import Records
from floodmark.transforms.sql.columns import Column


class ContentBasedRouter(Scripting):
    """The transform."""

    kind = "string"

    def _apply(self, records: Records, column: Column) -> Sequence[Records]:
        topics = column.values
        if topics.null_count == len(topics):
            return (records,)
        if pc.any(pc.equal(topics, "")).as_py():
            raise self._failure(records, "a topic would become a text without content")
        former = records.topic if isinstance(records.topic, pa.Array) else pa.scalar(records.topic)
        return (replace(records, topic=pc.coalesce(topics, former)),)
