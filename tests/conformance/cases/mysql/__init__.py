"""The cases of MySQL and MariaDB, a module for each theme; most of them run on both servers."""

from __future__ import annotations

from tests.conformance.cases.case import Case
from tests.conformance.cases.mysql import (
    columns,
    ddl,
    envelope,
    images,
    keys,
    numbers,
    specials,
    tables,
    texts,
    times,
    transforms,
    workload,
)

THEMES = (numbers, times, texts, specials, keys, columns, envelope, images, tables, ddl, transforms, workload)

CASES: tuple[Case, ...] = tuple(case for theme in THEMES for case in theme.CASES)
