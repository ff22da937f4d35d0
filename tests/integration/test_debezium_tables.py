"""Debezium's offsets in a table."""

from __future__ import annotations

from pathlib import Path

import pytest

from floodmark.cli.offsets.moving import Stores
from floodmark.debezium.offsets import find_offset
from floodmark.errors import ConfigError, OffsetError
from tests.support.jdbc import Target

TABLE = (
    "CREATE TABLE {} (id VARCHAR(36) NOT NULL, offset_key VARCHAR(1255), offset_val VARCHAR(1255), "
    "record_insert_ts TIMESTAMP NOT NULL, record_insert_seq INTEGER NOT NULL)"
)
"""Debezium's own statement."""


@pytest.mark.parametrize("target", ["pg18", "mysql", "mariadb"], indirect=True)
def test_offsets_in_a_table(target: Target, tmp_path: Path) -> None:
    settings = tmp_path / "settings"
    given = {name: value for name, value in target.options.items() if name.startswith("connection.")}
    url = given.pop("connection.url")
    lines = [*(f"{name}={value}" for name, value in given.items()), "offset.storage.jdbc.table.name=kept"]
    settings.write_text("\n".join(lines), encoding="utf-8")
    store = Stores(url, settings=settings).offset_store("now")
    with pytest.raises(OffsetError, match="cannot be read"):
        store.read()
    target.execute(TABLE.format("kept"))
    assert store.read() == {}
    for number in (1, 2):
        for server in ("test", "other"):
            store.write(b'["reference",{"server":"%s"}]' % server.encode(), b'{"lsn":%d}' % number)
    assert find_offset(store, "test").fields == {"lsn": 2}
    assert len(store.read()) == 2
    settings.write_text("password=secret", encoding="utf-8")
    with pytest.raises(ConfigError, match="setting 'password' is not known"):
        Stores(url, settings=settings).offset_store("now")
