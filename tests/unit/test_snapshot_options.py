"""The options of snapshots, and families of options."""

from __future__ import annotations

import pytest

from floodmark.config.model import Family, Options, option
from floodmark.errors import ConfigError
from tests.unit.test_snapshot_modes import options

OVERRIDES = "snapshot.select.statement.overrides"


class WithFamily(Options):
    plain: str = option("color", "", "A colour.")
    members: Family = option("color.of.<thing>", {}, "The colour of a thing.")


def test_a_family_takes_what_begins_with_its_prefix() -> None:
    parsed = WithFamily.parse({"Color": "red", "color.of.Door": "blue", "COLOR.OF.public.a.b": "green"})
    assert (parsed.plain, parsed.members) == ("red", {"Door": "blue", "public.a.b": "green"})
    assert WithFamily.parse({}).members == {}


@pytest.mark.parametrize("key", ["color.of.", "color.off.x", "colour.of.x"])
def test_what_is_not_of_a_family_is_unknown(key: str) -> None:
    with pytest.raises(ConfigError, match=r"Unknown option .*Did you mean 'color\.of\.<thing>'"):
        WithFamily.parse({key: "blue"})


def test_statements_by_table() -> None:
    # Spark hands options over with their names in lower case.
    parsed = options(**{OVERRIDES: "public.Orders, s.t", f"{OVERRIDES}.public.orders": "A", f"{OVERRIDES}.s.t": "B"})
    assert parsed.select_statements() == {"public.Orders": "A", "s.t": "B"}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"snapshot.mode": "recovery"}, ["recovery", "schema history", "MySQL, MariaDB and Oracle", "when_needed"]),
        ({"snapshot.mode": "when_neded"}, ["snapshot.mode", "Did you mean 'when_needed'"]),
        ({"snapshot.mode": "custom"}, ["snapshot.mode.custom.name", "required"]),
        ({"snapshot.query.mode": "custom"}, ["snapshot.query.mode.custom.name", "required"]),
        ({"snapshot.locking.mode": "custom"}, ["snapshot.locking.mode.custom.name", "required"]),
        ({"snapshot.locking.mode": "minimal"}, ["none, shared, custom"]),
        ({"snapshot.isolation.mode": "snapshot"}, ["serializable, repeatable_read"]),
        ({OVERRIDES: "s.t"}, [f"'{OVERRIDES}.s.t' is required"]),
        ({f"{OVERRIDES}.s.t": "SELECT 1"}, [f"'{OVERRIDES}.s.t' has no effect"]),
        ({OVERRIDES: "s.t,s.T", f"{OVERRIDES}.s.t": "SELECT 1"}, ["'s.t' twice"]),
        ({"snapshot.include.collection.list": "("}, ["snapshot.include.collection.list", "regular expression"]),
        ({"snapshot.max.threads": "0"}, ["snapshot.max.threads", "at least 1"]),
        ({"snapshot.select.statement.override": "x"}, ["Unknown option", f"Did you mean '{OVERRIDES}'"]),
    ],
)
def test_wrong_options(given: dict[str, str], words: list[str]) -> None:
    with pytest.raises(ConfigError) as raised:
        options(**given)
    assert [word for word in words if word not in str(raised.value)] == []
