"""Leaves out records that don't meet a condition, as ``io.debezium.transforms.Filter`` does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from floodmark.codecs.arrays import as_mask
from floodmark.transforms.debezium.scripting import Scripting
from floodmark.transforms.records import Records
from floodmark.transforms.sql.columns import Column


class Filter(Scripting):
    """The transform."""

    kind = "boolean"

    def _apply(self, records: Records, column: Column) -> Sequence[Records]:
        met = as_mask(column.values)
        if met.all():
            return (records,)
        return (records.take(np.flatnonzero(met)),) if met.any() else ()
