"""Files of Iceberg tables that Floodmark writes itself, read by other libraries."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np
import obstore
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from obstore.store import LocalStore
from pyiceberg.io.pyarrow import pyarrow_to_schema
from pyiceberg.schema import Schema
from pyiceberg.table.deletion_vector import deletion_vectors_from_puffin_file
from pyiceberg.table.puffin import PuffinFile as PyicebergPuffin

from floodmark.errors import TargetDamagedError, TargetUnfitError
from floodmark.json_data import Json
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.format.log import DataFile
from floodmark.sinks.delta.format.statistics import bounds
from floodmark.sinks.delta.format.vectors import read_vector
from floodmark.sinks.delta.parts import Part
from floodmark.sinks.iceberg.changes import FILES, Changes, files_of, rows_in
from floodmark.sinks.iceberg.data_files import IcebergFiles
from floodmark.sinks.iceberg.layout import Layout

NESTED: list[dict[str, Any]] = [
    {"type": "list", "element-id": 11, "element": "string", "element-required": False},
    {"type": "struct", "fields": [{"id": 12, "name": "x", "type": "double", "required": True}]},
    {
        "type": "map",
        "key-id": 13,
        "key": "string",
        "value-id": 14,
        "value": "decimal(9, 2)",
        "value-required": False,
    },
]
SIMPLE = ["boolean", "int", "long", "float", "double", "date", "timestamp", "timestamptz", "string", "binary"]
COLUMNS = {"id": "long", "v": "int", "note": "string", POSITION: "string"}


def schema(columns: dict[str, Any], required: tuple[str, ...] = (), **more: Any) -> str:
    fields = [
        {"id": number, "name": name, "type": kind, "required": name in required, **more}
        for number, (name, kind) in enumerate(columns.items(), start=1)
    ]
    return json.dumps({"type": "struct", "schema-id": 0, "fields": fields})


def layout_of(columns: dict[str, Any], identity: str = "a/0", required: tuple[str, ...] = ()) -> Layout:
    return Layout.from_json(schema(columns, required), identity)


def files_in(folder: Path, layout: Layout | None = None, **renamed: str) -> IcebergFiles:
    return IcebergFiles(LocalStore(str(folder)), f"file://{folder}", "db.t", layout, renamed)


def rows(count: int = 3) -> pa.Table:
    numbers = list(range(count))
    return pa.table(
        {
            "id": pa.array(numbers, pa.int64()),
            "v": pa.array(numbers, pa.int16()),
            POSITION: [f"{number:04}" for number in numbers],
        }
    )


def staged(folder: Path, given: pa.Table | None = None, layout: Layout | None = None) -> Part:
    """Return what a task makes that knows a layout, or none."""
    given = rows() if given is None else given
    adds = files_in(folder, layout).write(given, ["id"])
    columns = pa.schema([one for one in given.schema if one.name != POSITION])
    return Part(["id"], columns, given.select(["id", POSITION]), adds=adds)


@pytest.mark.parametrize("more", ["a column", "a wider type"])
def test_rows_that_do_not_go_with_what_a_task_knows(tmp_path: Path, more: str) -> None:
    given, then = rows(), dict(COLUMNS)
    if more == "a column":
        given, then = given.append_column("other", pa.array([7, 8, 9], pa.int32())), {**COLUMNS, "other": "int"}
    else:
        given, then = given.set_column(1, "v", pa.array([1 << 40] * 3)), {**COLUMNS, "v": "long"}
    part = staged(tmp_path, given, layout_of(COLUMNS))
    files = files_in(tmp_path, layout_of(then, "a/1"))
    (add,) = files.laid_out(part).adds
    assert files.read(DataFile.from_json(dict(add))).select(given.column_names).to_pylist() == given.to_pylist()


def test_a_column_that_was_renamed_after_a_task_wrote_it(tmp_path: Path) -> None:
    part = staged(tmp_path, layout=layout_of(COLUMNS))
    text = json.loads(schema({"id": "long", "w": "int", "note": "string", POSITION: "string"}))
    text["fields"].append({"id": 9, "name": "v", "type": "int", "required": False})
    files = files_in(tmp_path, Layout.from_json(json.dumps(text), "a/1"))
    (add,) = files.laid_out(part).adds
    found = files.read(DataFile.from_json(dict(add)))
    assert (found.column_names, found["v"].to_pylist()) == (["id", POSITION, "v"], [0, 1, 2])


def test_columns_have_the_numbers_of_the_schema(tmp_path: Path) -> None:
    text = schema({f"c{number}": kind for number, kind in enumerate([*SIMPLE, *NESTED])})
    layout = Layout.from_json(text, "a/0")
    pq.write_table(layout.columns.empty_table(), tmp_path / "t.parquet")
    found = pyarrow_to_schema(pq.read_schema(tmp_path / "t.parquet"))
    wanted = Schema.model_validate_json(text)
    assert found.as_struct() == wanted.as_struct()


def test_columns_of_types_that_no_source_has_are_left_out(tmp_path: Path) -> None:
    columns: dict[str, Any] = {**COLUMNS, "theirs": "uuid", "deep": NESTED[0] | {"element": "variant"}}
    assert layout_of(columns).columns.names == list(COLUMNS)
    part, files = staged(tmp_path), files_in(tmp_path, layout_of(columns, required=("theirs",)))
    with pytest.raises(TargetUnfitError, match=r"The column 'theirs' of the Iceberg table .* must not be null"):
        files.laid_out(part)


def test_a_column_with_a_default_for_earlier_rows() -> None:
    with pytest.raises(TargetUnfitError, match="'id' was added to the Iceberg table with a default"):
        Layout.from_json(schema({"id": "long"}, (), **{"initial-default": 7}), "a/0")


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"fields": [{"id": 1, "name": "a", "required": true}]}'])
def test_a_damaged_schema(text: str) -> None:
    with pytest.raises(TargetDamagedError):
        Layout.from_json(text, "a/0")


@pytest.mark.parametrize("missing", [True, False])
def test_a_column_that_must_not_be_null(tmp_path: Path, missing: bool) -> None:
    files = files_in(tmp_path, layout_of(COLUMNS, required=("note",)))
    given = rows() if missing else rows().append_column("note", pa.array(["a", None, "c"]))
    part = staged(tmp_path, given)
    with pytest.raises(TargetUnfitError, match=r"The column 'note' of the Iceberg table .* must not be null"):
        files.laid_out(part)
    assert files.laid_out(staged(tmp_path, rows().append_column("note", pa.array(["a", "b", "c"])))).adds


def test_a_file_is_read_by_the_numbers_of_its_columns(tmp_path: Path) -> None:
    (add,) = files_in(tmp_path, layout_of(COLUMNS)).write(rows(), ["id"])
    file = DataFile.from_json(add)
    renamed = layout_of({"key": "long", "w": "long", "note": "string", POSITION: "string"}, "a/1")
    found = files_in(tmp_path, renamed).read(file)
    assert found.schema == pa.schema([("key", pa.int64()), ("w", pa.int64()), (POSITION, pa.string())])
    assert found["w"].to_pylist() == [0, 1, 2]
    # Another column with the name of one that was dropped.
    text = json.loads(schema(COLUMNS))
    text["fields"][1]["id"] = 9
    again = files_in(tmp_path, Layout.from_json(json.dumps(text), "a/2"))
    assert again.read_columns(file, pa.schema([("v", pa.int32())]))["v"].to_pylist() == [None] * 3


def test_columns_of_the_mirrors_own_have_other_names(tmp_path: Path) -> None:
    layout = layout_of({**COLUMNS, "_is_deleted": "boolean"})
    files = files_in(tmp_path, layout, _deleted="_is_deleted")
    given = rows().append_column("_deleted", pa.array([True, False, True]))
    (add,) = files.write(given, ["id"])
    assert "_is_deleted" in pq.read_schema(tmp_path / str(add["path"])).names
    assert files.read(DataFile.from_json(add))["_deleted"].to_pylist() == [True, False, True]


def test_files_that_were_staged_are_written_again(tmp_path: Path) -> None:
    files = files_in(tmp_path)
    adds = [add for _ in range(2) for add in files.write(rows(), ["id"])]
    assert not any("/" in str(add["path"]) for add in adds)
    part = Part(["id"], rows().schema.remove(2), pa.concat_tables([rows()] * 2).select(["id", POSITION]), adds=adds)
    files.layout = layout_of(COLUMNS)
    made = files.laid_out(part)
    assert [str(add["path"])[:5] for add in made.adds] == ["data/"] * 2
    for add in made.adds:
        assert files.read(DataFile.from_json(dict(add))).equals(rows().set_column(1, "v", rows()["v"].cast(pa.int32())))
    assert files.laid_out(made).adds == made.adds
    files.layout = layout_of(COLUMNS, "a/1")
    assert files.laid_out(made).adds != made.adds


@pytest.mark.parametrize("location", ["{root}/data/a b%20.parquet", "file:{folder}/elsewhere/x.parquet", "{folder}/y"])
def test_files_anywhere(tmp_path: Path, location: str) -> None:
    files = files_in(tmp_path, layout_of(COLUMNS))
    location = location.format(root=f"file://{tmp_path}", folder=tmp_path)
    place = Path(location.removeprefix("file://").removeprefix("file:"))
    place.parent.mkdir(exist_ok=True)
    (add,) = files.write(rows(), ["id"])
    (tmp_path / str(add["path"])).rename(place)
    path = quote(files.path(location), safe="/=:")
    assert files.location(path) == location
    assert files.read(DataFile(path, {**add, "path": path}))["id"].to_pylist() == [0, 1, 2]
    assert files.size_of(location) == place.stat().st_size


def test_deletion_vectors_in_puffin_files(tmp_path: Path) -> None:
    files = files_in(tmp_path, layout_of(COLUMNS))
    puffin = files.vector_file()
    assert puffin.content == b""
    deleted = {"data/a.parquet": np.array([1, 5, 1 << 33], np.uint64), "file:/b c": np.arange(70000, dtype=np.uint64)}
    found = {path: puffin.add(numbers, file=quote(path)) for path, numbers in deleted.items()}
    obstore.put(files.store, puffin.path, puffin.content)
    for path, descriptor in found.items():
        assert files.path(descriptor.path) == puffin.path
        assert (read_vector(descriptor, files.bytes_of).rows == deleted[path]).all()
    more = files.vector_file()
    earlier = read_vector(found["data/a.parquet"], files.bytes_of)
    both = more.add(np.array([0], np.uint64), earlier.content, "data/a.parquet")
    assert both.rows == 4
    read = deletion_vectors_from_puffin_file(PyicebergPuffin((tmp_path / puffin.path).read_bytes()))
    vectors = {vector.referenced_data_file: vector.to_vector() for vector in read}
    named = {f"file://{tmp_path}/data/a.parquet": "data/a.parquet", "file:/b c": "file:/b c"}
    assert {named[path]: numbers.to_pylist() for path, numbers in vectors.items()} == {
        path: numbers.tolist() for path, numbers in deleted.items()
    }


def listed(**values: Any) -> dict[str, Any]:
    return {**dict.fromkeys(FILES), "content": 0, "file_format": "PARQUET", "record_count": 3, **values}


def table_of(*found: dict[str, Any]) -> list[Any]:
    bound = pa.map_(pa.int32(), pa.binary())
    kinds: dict[str, pa.DataType] = {"lower_bounds": bound, "upper_bounds": bound, "content": pa.int32()}
    numbers = ("record_count", "file_size_in_bytes", "content_offset", "content_size_in_bytes")
    kinds |= dict.fromkeys(numbers, pa.int64())
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in FILES])
    rows: list[Any] = pa.Table.from_pylist(list(found), schema).to_pylist()
    return rows


def test_the_files_of_a_table(tmp_path: Path) -> None:
    files, layout = files_in(tmp_path, layout_of(COLUMNS)), layout_of(COLUMNS)
    root = f"file://{tmp_path}"
    found = files_of(
        table_of(
            listed(
                file_path=f"{root}/data/x y",
                file_size_in_bytes=70,
                # A bound from before the column was widened, and one of a column that is gone.
                lower_bounds=[(1, (-2).to_bytes(4, "little", signed=True)), (4, b"0001"), (8, b"?")],
                upper_bounds=[(1, (300).to_bytes(8, "little")), (4, b"0009")],
            ),
            listed(
                content=1,
                file_format="PUFFIN",
                file_path=f"{root}/data/d.puffin",
                referenced_data_file=f"{root}/data/x y",
                content_offset=4,
                content_size_in_bytes=40,
                record_count=2,
            ),
        ),
        files,
        layout,
    )
    (file,) = found.values()
    assert (file.path, files.location(file.path), rows_in(file)) == ("data/x%20y", f"{root}/data/x y", 3)
    assert bounds(file, "id") == (-2, 300)
    assert bounds(file, POSITION) == ("0001", "0009")
    assert file.vector is not None
    assert (file.vector.path, file.vector.offset, file.vector.size, file.vector.rows) == (
        f"{root}/data/d.puffin",
        4,
        32,
        2,
    )


@pytest.mark.parametrize(
    ("file", "what"),
    [
        ({"file_format": "ORC"}, "data files in ORC"),
        ({"content": 1}, "delete files that aren't deletion vectors"),
        ({"content": 2}, "delete files that aren't deletion vectors"),
    ],
)
def test_files_of_kinds_that_are_not_read(tmp_path: Path, file: dict[str, Any], what: str) -> None:
    given = table_of(listed(file_path="/a", **file))
    with pytest.raises(TargetUnfitError, match=f"The Iceberg table 'db.t' has {what}"):
        files_of(given, files_in(tmp_path), layout_of(COLUMNS))


def test_changes_of_a_commit(tmp_path: Path) -> None:
    files = files_in(tmp_path, layout_of(COLUMNS))
    known = {file.path: file for file in (DataFile.from_json(files.write(rows(), ["id"])[0]) for _ in range(3))}
    kept, changed, gone = known.values()
    puffin = files.vector_file()
    vector = puffin.add(np.array([1], np.uint64), file=changed.path)
    new = dict[str, Json](files.write(rows(), ["id"])[0])
    actions = [*changed.added(vector, 0, 3), gone.removed(0), {"add": new}]
    changes = Changes.of(actions, known)
    assert [file.path for file in changes.added] == [new["path"]]
    assert list(changes.removed) == [gone]
    assert list(changes.before) == [changed]
    assert [(file.path, file.vector) for file in changes.after] == [(changed.path, vector)]
    after = changes.applied(known)
    assert after.keys() == {kept.path, changed.path, new["path"]}
    assert after[changed.path].vector == vector
    assert not changes.is_empty
    assert Changes.of([], known).is_empty
