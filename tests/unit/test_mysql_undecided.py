"""What the resume state says of prepared transactions, for positions at cuts and between them."""

from __future__ import annotations

from floodmark.capture.spool import Undecided
from floodmark.connectors.mysql.prepared.undecided import UndecidedPlaces, undecided_json, undecided_of


def test_positions_at_cuts_and_between_them() -> None:
    first = Undecided("15", "gtids 15", "20", "one.index", "x")
    places = UndecidedPlaces()
    assert places.at("10") is None
    places.add("10", None, "gtids 10")
    places.add("20", first, "gtids 20", stepped=True)
    places.add("30", first, "gtids 30")
    places.add("40", None, "gtids 40", stepped=True)
    assert places.at("10") is None
    # Something was prepared between the two: it is read again from the first one on.
    assert places.at("15") == Undecided("10", "gtids 10", "10")
    assert places.at("20") == first
    # Nothing happened, so the index holds there too.
    assert places.at("25") == Undecided("15", "gtids 15", "25", "one.index", "x")
    # The branch ended somewhere behind the cut at 30.
    assert places.at("35") == first
    assert places.at("45") is None


def test_a_lost_connection_forgets_nothing() -> None:
    prepared = Undecided("15", "", "20", "one.index", "x")
    places = UndecidedPlaces()
    places.add("10", None)
    places.add("20", prepared, stepped=True)
    # The log is read again from 10 on and cut elsewhere; what was planned up to 20 stays right.
    places.add("10", None)
    places.add("12", None)
    assert places.at("20") == prepared
    places.forget("20")
    assert places.at("20") == prepared


def test_bookmarks() -> None:
    prepared = Undecided("15", "gtids", "20", "one.index", "x")
    assert undecided_of({"server": "s", "gtids": "g", **undecided_json(prepared)}) == prepared
    assert undecided_json(None) == {}
    # Of versions before.
    assert undecided_of({"server": "s", "gtids": "g"}) is None
    assert undecided_of(None) is None
