"""Old files of a table's log are removed, and every version that is not so old can be read."""

from __future__ import annotations

import datetime as dt
import os
from pathlib import Path

import polars as pl
import pytest
from deltalake import DeltaTable

from floodmark.sinks.delta import upkeep
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.format.log_cleanup import retention_of
from tests.support.delta_mirror import Mirror, in_order
from tests.unit.test_last_changes import Source

DAY = dt.timedelta(days=1)


@pytest.mark.parametrize(
    ("properties", "features", "days"),
    [
        ({}, set(), 30),
        ({"delta.logRetentionDuration": "interval 1 week"}, set(), 7),
        ({"delta.logRetentionDuration": "2 Days"}, set(), 2),
        ({"delta.logRetentionDuration": "interval 1 month"}, set(), None),
        ({"delta.enableExpiredLogCleanup": "false"}, set(), None),
        ({}, {"checkpointProtection"}, None),
    ],
)
def test_how_long_it_is_kept(properties: dict[str, str], features: set[str], days: int | None) -> None:
    assert retention_of(properties, features) == (None if days is None else days * DAY)


@pytest.mark.parametrize("kept", [True, False])
def test_an_old_log_gets_shorter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    monkeypatch.setattr(upkeep, "_CHECKPOINT_EVERY", 5)
    monkeypatch.setattr(upkeep, "_REMOVE_EVERY_MS", 0)
    properties = (
        f".*:delta.enableExpiredLogCleanup={str(not kept).lower()}; .*:delta.logRetentionDuration=interval 7 days"
    )
    source = Source(("id",))
    mirror = Mirror(tmp_path / "t", ("id",), **{"compact.files": "0", "table.properties": properties})
    log = tmp_path / "t" / "_delta_log"
    now = dt.datetime.now(dt.UTC)
    rows = {}
    for batch in range(30):
        # A version a day: the last seven days are to be kept.
        source.change("insert", batch, 0, batch, False)
        known = set(log.glob("*"))
        assert mirror.write(batch, source.told[-1:])
        rows[DeltaTable(mirror.path).version()] = in_order(source.rows.values())
        at = (now - (29 - batch) * DAY).timestamp()
        for path in set(log.glob("*")) - known:
            os.utime(path, (at, at))
        if batch % 4 == 0:
            mirror.start()
    versions = sorted(int(path.stem) for path in log.glob("*[0-9].json"))
    assert versions[0] == (0 if kept else 20)
    assert (log / f"{versions[0]:020d}.checkpoint.parquet").exists() != kept
    for version in range(30 - 7, 31):
        assert in_order(pl.read_delta(mirror.path, version=version).drop(POSITION).to_dicts()) == rows[version]
    mirror.start()
    source.change("update", 3, 0, 99, False)
    assert mirror.write(30, source.told[-1:])
    assert mirror.rows() == in_order(source.rows.values())
