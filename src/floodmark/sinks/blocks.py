"""Puts blocks of rows together."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa


def together(rows: Sequence[pa.Table]) -> list[pa.Table]:
    """Return blocks of rows in as few tables as the types of their columns allow."""
    try:
        return [pa.concat_tables(rows, promote_options="permissive")]
    except pa.ArrowException:
        alike: dict[str, list[pa.Table]] = {}
        for one in rows:
            alike.setdefault(str(one.schema), []).append(one)
        return [pa.concat_tables(one) for one in alike.values()]
