"""Names the fields that an update has changed, as ``io.debezium.transforms.ExtractChangedRecordState`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, valid
from floodmark.config.transforms.debezium import ExtractChangedRecordStateOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.events.json_text import Fragment, dumps
from floodmark.json_data import Json
from floodmark.transforms.failures import member
from floodmark.transforms.records import Header, Records, is_envelope
from floodmark.transforms.structs import Struct, Values, complete

_NOTHING = "[]"


class ExtractChangedRecordState:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._options = cast(ExtractChangedRecordStateOptions, settings.options)

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with their headers; others than rows are as they were.

        Raises:
            SourceStateError: an earlier transform has taken the old or the new rows away.
        """
        # In Debezium, a tombstone has the very headers of its delete.
        value = records.value or records.deleted
        if not is_envelope(value):
            return (records,)
        assert isinstance(value, Struct)
        before, after = (member(self._settings, "type", records, value, name) for name in ("before", "after"))
        changed, unchanged = self._options.header_changed_name, self._options.header_unchanged_name
        wanted = [(name, shown) for name, shown in ((changed, True), (unchanged, False)) if name.strip()]
        if before.values is None or after.values is None:
            lists: list[Values] = [_NOTHING for _ in wanted]
        else:
            names = [name for name, _, _ in after.members()]
            pairs = zip(before.values, after.values, strict=True)
            differ = np.array([_differ(old, new, records.rows) for old, new in pairs], np.bool_).T
            lists = _lists(names, differ, [shown for _, shown in wanted])
        headers = [Header(name, _schema(name), values) for (name, _), values in zip(wanted, lists, strict=True)]
        return (replace(records, headers=(*records.headers, *headers)),)


def _differ(old: Values, new: Values, rows: int) -> NDArray[np.bool_]:
    """Return which values differ, shape (rows,)."""
    if isinstance(old, Fragment) and isinstance(new, Fragment) and old.quoted == new.quoted:
        differ = as_mask(pc.not_equal(old.text, new.text))
        if old.text.null_count or new.text.null_count:
            differ = differ | (valid(old.text) != valid(new.text))
        return differ
    return as_mask(pc.not_equal(complete(old, rows), complete(new, rows)))


def _lists(names: Sequence[str], differ: NDArray[np.bool_], wanted: Sequence[bool]) -> list[Values]:
    """Return lists of names as JSON, for each of ``wanted``: of the fields that differ, or of the others.

    Args:
        names: of the fields.
        differ: shape (rows, fields).
        wanted: whether the fields are those that differ.
    """
    if not names:
        return [_NOTHING for _ in wanted]
    # Most rows differ in the same few combinations of fields.
    packed = np.ascontiguousarray(np.packbits(differ, axis=1))
    _, first, row = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_index=True, return_inverse=True)
    combinations = differ[first].T
    return [Fragment(_texts(names, combinations == shown).take(pa.array(row))) for shown in wanted]


def _texts(names: Sequence[str], chosen: NDArray[np.bool_]) -> pa.StringArray:
    """Return lists of the chosen names as JSON, shape (lists,).

    Args:
        names: of the fields.
        chosen: shape (fields, lists).
    """
    pieces = [pc.if_else(pa.array(mask), f",{dumps(name)}", "") for name, mask in zip(names, chosen, strict=True)]
    # Without the comma that they begin with.
    listed = pc.utf8_slice_codeunits(pc.binary_join_element_wise(*pieces, ""), 1)
    return pc.binary_join_element_wise("[", listed, "]", "")


def _schema(name: str) -> dict[str, Json]:
    return {"type": "array", "items": {"type": "string", "optional": True}, "optional": True, "name": name}
