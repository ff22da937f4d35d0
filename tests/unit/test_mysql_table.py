from __future__ import annotations

import json

from floodmark.connectors.mysql.structures.table import SOME, Column, Index, Table, effective_key
from floodmark.json_data import Json

ID = Column("id", "int", unsigned=True, optional=False, auto_increment=True)
KIND = Column("kind", "enum", charset="utf8mb4", collation="utf8mb4_bin", values=("a", "b,c"), default_kind="null")


def test_a_table_survives_json() -> None:
    indexes = (
        Index("PRIMARY", ("id",), True),
        Index("k", ("kind", ""), descending=(0, 1)),
        Index("p", ("kind", "id"), lengths=(3, 0), made=True, descending=(1,)),
    )
    table = Table("db", "t", (ID, KIND), ("id",), "utf8mb4", "utf8mb4_bin", "note", indexes)
    text = json.dumps(table.to_json())
    assert Table.from_json(json.loads(text)) == table
    assert table.primary == ("id",)


def test_an_index_of_which_only_was_stored_that_it_holds_beginnings() -> None:
    data: Json = {**Table("db", "t", (ID, KIND)).to_json(), "indexes": [["p", 3, "kind"]]}
    assert Table.from_json(data).indexes == (Index("p", ("kind",), True, (SOME,)),)
    assert Table.from_json(data).indexes[0].partial


def test_what_is_as_usual_is_left_out() -> None:
    assert Table("db", "t", (Column("a", "int"),)).to_json() == {
        "database": "db",
        "name": "t",
        "columns": [{"name": "a", "type": "int"}],
    }


def test_the_key_is_the_primary_key_or_the_first_unique_index_without_nulls() -> None:
    unique = (Index("u", ("kind",), True), Index("v", ("id",), True), Index("w", ("id",), True))
    assert effective_key((ID, KIND), unique) == ("id",)
    assert effective_key((ID, KIND), unique[:1]) == ()
    assert effective_key((ID, KIND), (*unique, Index("PRIMARY", ("kind", "id"), True))) == ("kind", "id")
