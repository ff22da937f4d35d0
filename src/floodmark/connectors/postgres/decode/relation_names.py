"""Translates the catalog's structure of a table to the names that its columns had in a Relation message.

The catalog is read when the message arrives, which may be long after it was written: a query that starts again finds
changes from before an ``ALTER TABLE`` in the log, and the names from after it in the catalog.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from floodmark.connectors.postgres.decode.relation import parse_relation
from floodmark.connectors.postgres.server.structure import CatalogStructure, CurrentStructure


def as_of(raw: bytes, structure: CurrentStructure) -> CatalogStructure:
    """Return the catalog's structure of a table in the terms of a Relation message.

    Args:
        raw: the message.
        structure: the structure as it is now.

    Returns:
        The structure by the message's names, without defaults of columns that have had another type since.
    """
    columns = parse_relation(raw).columns
    then = past_names([(column.name, column.type_oid) for column in columns], structure.columns)
    unmarked = structure.unmarked_key
    types = {column.name: column.type_oid for column in columns}
    same = {name for name, kind, _ in structure.columns if name in then and types[then[name]] == kind}
    return CatalogStructure(
        key=tuple(then[name] for name in structure.key if name in then),
        unmarked_key=tuple(then[name] for name in unmarked) if all(name in then for name in unmarked) else (),
        identity=structure.identity,
        required=tuple(then[name] for name in structure.required if name in then),
        defaults={then[name]: default for name, default in structure.defaults.items() if name in same},
        types=structure.types,
    )


def past_names(then: Sequence[tuple[str, int]], now: Sequence[tuple[str | None, int, bool]]) -> dict[str, str]:
    """Return the past names of the columns that exist now, as far as they can be determined.

    Columns never change their order, dropped ones keep their positions, and new ones come last. So if between two
    columns that have kept their names there are as many others as at that time, they are the same columns.

    Args:
        then: name and type of the columns at that time.
        now: name (None if it was dropped), type and whether it is generated, of all that the table ever had.

    Returns:
        Past names by present ones; columns that were not there are left out.
    """
    old = [name for name, _ in then]
    now = [column for column in now if not column[2] or column[0] in old]
    places = {name: place for place, (name, _, _) in enumerate(now) if name is not None}
    kept = [(index, places[name]) for index, name in enumerate(old) if name in places]
    result = {old[index]: old[index] for index, _ in kept}
    ordered = all(a[1] < b[1] for a, b in pairwise(kept))
    if ordered and len(kept) == len(old):
        return result
    if all(name is not None for name, _, _ in now) and [kind for _, kind, _ in now[: len(old)]] == [k for _, k in then]:
        # None was dropped, so each has the position that it had.
        return {str(name): past for (name, _, _), past in zip(now, old, strict=False)}
    if not ordered:
        return result
    marks = [(-1, -1), *kept, (len(old), len(now))]
    for (index, place), (next_index, next_place) in pairwise(marks):
        before, after = then[index + 1 : next_index], now[place + 1 : next_place]
        if next_place == len(now) and all(name is not None for name, _, _ in after):
            after = after[: len(before)]
        if len(before) != len(after):
            continue
        for (past, past_type), (present, present_type, _) in zip(before, after, strict=True):
            if present is not None and present_type == past_type:
                result[present] = past
    return result
