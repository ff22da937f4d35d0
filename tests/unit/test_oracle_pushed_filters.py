"""Filters that the query of LogMiner's view has: they must leave out nothing that is wanted."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from floodmark.config.patterns import Pattern
from floodmark.connectors.oracle.mining.pushed_expressions import is_pushed_alike
from floodmark.connectors.oracle.options import OracleOptions
from floodmark.errors import ConfigError

NAMES = [r"S\.T", "S.T", r"S\.A\$B", r"shop\.A_1#"]
SHARED = [r"S\.T.*", r"S\.(A|B)", "S.[A-Z]+", r"S\.\w{2,3}", r"(S|T)\.(A(B|C)?|D)"]
REFUSED = [r"S\.A|S\.B", r"(?i)s\.a", r"(?:S)\.A", r"S\..*?", r"S\.A\b", r"^S\.T$", r"S\.\p{Lu}", r"S\.[\w]+"]


@pytest.mark.parametrize("expression", NAMES)
def test_names(expression: str) -> None:
    assert is_pushed_alike("in", expression)


@pytest.mark.parametrize("expression", [*SHARED, *REFUSED])
def test_what_is_no_name(expression: str) -> None:
    assert not is_pushed_alike("in", expression)


@pytest.mark.parametrize("expression", [*NAMES, *SHARED])
def test_expressions_that_both_have(expression: str) -> None:
    assert is_pushed_alike("regex", expression)


@pytest.mark.parametrize("expression", REFUSED)
def test_expressions_that_are_read_differently(expression: str) -> None:
    assert not is_pushed_alike("regex", expression)
    assert is_pushed_alike("none", expression)


@given(st.text("AB|().\\\\*+?", max_size=8), st.text("AB.", max_size=4))
def test_what_is_shared_matches_between_anchors_as_it_does_alone(expression: str, name: str) -> None:
    try:
        alone = Pattern(expression, ignore_case=True)
    except ValueError:
        return
    if is_pushed_alike("regex", expression):
        assert (re.search(f"^{expression}$", name, re.IGNORECASE) is not None) == alone.fullmatch(name)


@pytest.mark.parametrize(
    "name", ["table.include.list", "table.exclude.list", "schema.include.list", "schema.exclude.list"]
)
def test_options(name: str) -> None:
    options = {
        "connector": "oracle",
        "topic.prefix": "p",
        "state.dir": "/state",
        "database.hostname": "db",
        "database.user": "u",
        "database.password": "p",
        "database.dbname": "d",
        name: "A.*,B",
    }
    OracleOptions.parse(options)
    OracleOptions.parse({**options, "log.mining.query.filter.mode": "regex"})
    with pytest.raises(ConfigError, match=rf"'{re.escape(name)}' has the value 'A\.\*', which is not a name"):
        OracleOptions.parse({**options, "log.mining.query.filter.mode": "in"})
