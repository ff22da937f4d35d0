"""Mistakes in the options: one error that says what is wrong and what to do, before anything is created."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import floodmark
from floodmark.errors import ConfigError, ConnectError, FloodmarkError, LoginError, SourceStateError
from tests.contract.collecting import needs
from tests.contract.conftest import Start
from tests.contract.under_test import ConnectorUnderTest, SourceUnderTest
from tests.support.inprocess import InProcess

SECRET = "s3cr3t-that-no-message-has"
REQUIRED = ("topic.prefix", "state.dir", "connector")


def fails(kind: type[FloodmarkError] | tuple[type[FloodmarkError], ...], act: Callable[[], object]) -> FloodmarkError:
    """Return the error of an action, which has both parts and no secret."""
    with pytest.raises(kind) as caught:
        act()
    error = caught.value
    assert error.what
    assert error.cure
    assert SECRET not in str(error)
    return error


def test_an_unknown_option_is_answered_with_the_nearest_one(start: Start, source: SourceUnderTest) -> None:
    error = fails(ConfigError, lambda: start(table_includ_list="x"))
    assert "table.includ.list" in error.what
    assert "'table.include.list'" in error.cure
    assert not source.created()


def test_a_wrong_value_names_the_option_and_what_it_may_be(start: Start, source: SourceUnderTest) -> None:
    error = fails(ConfigError, lambda: start(snapshot_mode="intial"))
    assert "'snapshot.mode'" in error.what
    assert "'initial'" in error.cure
    error = message(lambda: start(max_batch_rows="many"))
    assert "'max.batch.rows'" in error.what
    assert "whole number" in error.what
    assert not source.created()


def message(act: Callable[[], object]) -> FloodmarkError:
    with pytest.raises(ConfigError) as caught:
        act()
    return caught.value


def test_each_required_option_is_asked_for(
    connector: ConnectorUnderTest, start: Start, source: SourceUnderTest
) -> None:
    complete = start()
    for name in (*REQUIRED, *connector.required):
        options = {key: value for key, value in complete.options.items() if key != name}
        with pytest.raises(ConfigError, match=f"Option '{name}' is required"):
            InProcess(options)
    assert not source.created()


def test_filters_that_match_no_table_are_found_by_a_check(start: Start, source: SourceUnderTest) -> None:
    source.create("t")
    findings = [one for one in floodmark.check(start("no_such_table").options) if one.status != "ok"]
    found = [one for one in findings if "table.include.list" in f"{one.finding} {one.fix}"]
    assert found, findings
    assert all(one.fix for one in found)
    assert not source.created()


@needs("refuses_no_tables")
def test_filters_that_match_no_table_are_refused(start: Start, source: SourceUnderTest) -> None:
    source.create("t")
    query = start("no_such_table")
    error = fails(SourceStateError, query.step)
    assert "table.include.list" in str(error)
    assert not source.created()


@needs("login")
def test_a_refused_login_tells_no_secret(start: Start, source: SourceUnderTest) -> None:
    source.create("t")
    query = start(**source.refused_login(SECRET))
    fails(LoginError, query.step)
    assert not source.created()


def test_a_source_that_is_away(start: Start, source: SourceUnderTest) -> None:
    source.create("t")
    query = start(**source.away())
    fails(ConnectError, query.step)
    assert not source.created()
