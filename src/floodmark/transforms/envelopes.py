"""Makes the envelopes of changed rows in the form that transforms take."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import cast

from floodmark.events.connect_schema import ConnectSchema
from floodmark.events.json_text import Fragment, Text
from floodmark.transforms.structs import Struct, Values, Written


def envelopes(
    schema: ConnectSchema,
    operation: str,
    rows: int,
    before: Sequence[Fragment] | None,
    after: Sequence[Fragment] | None,
    source: Sequence[Text],
    transaction: Sequence[Text] | None,
) -> Struct:
    """Return envelopes with the fields that ``EnvelopeBuilder.values`` writes.

    Args:
        schema: theirs.
        operation: c, u, d, r or t.
        rows: how many.
        before: the old rows' fields, or None for ``null``.
        after: the new rows' fields, or None for ``null``.
        source: pieces of the source block's text.
        transaction: pieces of the transaction block's text; None: there is none.
    """
    of = {str(field["field"]): field for field in cast(Sequence[ConnectSchema], schema["fields"])}
    now = time.time_ns()
    values: list[Values] = [
        Struct(of["before"], before),
        Struct(of["after"], after),
        Written(of["source"], source, rows),
        Struct(of["transaction"], None) if transaction is None else Written(of["transaction"], transaction, rows),
        f'"{operation}"',
        str(now // 1_000_000),
        str(now // 1000),
        str(now),
    ]
    return Struct(schema, values)
