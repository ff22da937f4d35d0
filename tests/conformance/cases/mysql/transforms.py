"""Cases of transforms of records, with the source blocks of MySQL and MariaDB."""

from __future__ import annotations

from itertools import chain

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql.envelope import OPERATIONS, TABLES
from tests.conformance.cases.mysql.flavors import both
from tests.conformance.cases.transforms import extract_options

FIELDS = "op,table,source.db:Database,connector,source.row,snapshot,query,nothing"

CASES: tuple[Case, ...] = tuple(
    chain(
        both("extract_default", TABLES, OPERATIONS, extract_options({})),
        both(
            "extract_rewrite",
            TABLES[:5],
            OPERATIONS,
            extract_options({"add.fields": FIELDS, "delete.tombstone.handling.mode": "rewrite"}),
            schemas=True,
        ),
    )
)
