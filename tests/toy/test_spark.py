"""A notebook through Spark's own engine, whose processes find the connector by its entry point."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.applying import apply, duplicates
from tests.support.driver import Driver
from tests.support.patience import within
from tests.support.sink import read_sink
from tests.toy.conftest import options_of
from tests.toy.notebook.database.notebook import Notebook


@pytest.mark.long
@pytest.mark.slow
def test_parquet_equals_the_tables(notebook: Notebook, tmp_path: Path) -> None:
    notebook.create("u", {"name": "text", "v": "integer?"}, key=("name",))
    options = options_of(notebook, tmp_path / "state")
    for number in range(2):
        with notebook.page() as page:
            page.update("t", {"id": number}, v=number + 1, pad=None)
            page.delete("t", id=10 + number)
            page.insert("u", {"name": f"name {number}", "v": number})
        driver = Driver(options, tmp_path, available_now=True)
        assert driver.wait(within(120)) == 0, driver.log()[-4000:]
        events = read_sink(driver.out)
        applied = apply(events)
        for table in ("t", "u"):
            rows = sorted(tuple(row.values()) for row in applied[f"notebook.{table}"].values())
            assert rows == notebook.rows(table)
        assert not duplicates(events)
    assert {one.op for one in events} == {"r", "c", "u", "d"}
