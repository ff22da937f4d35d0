"""Creating Delta tables, and what a table must be like for Floodmark to write it.

Format: the Delta protocol, sections "Protocol Evolution", "Table Features" and "Change Metadata".
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from uuid import uuid4

import pyarrow as pa
from deltalake import Schema

from floodmark.changes.schema_changes import holds
from floodmark.errors import TargetError, TargetUnfitError
from floodmark.json_data import Json, JsonObject
from floodmark.sinks.delta.format.data_files import POSITION
from floodmark.sinks.delta.format.log import State, commit_info, now_ms
from floodmark.sinks.delta.format.log_files import Action
from floodmark.sinks.delta.format.vectors import damaged
from floodmark.sinks.delta.layouts import CLUSTERING, clustered
from floodmark.sinks.options import Mode

_READER, _WRITER = 3, 7
"""The versions of the protocol from which on a table lists its features."""
_VECTORS, _LOCAL_TIMES = "deletionVectors", "timestampNtz"
_READS = frozenset({_VECTORS, _LOCAL_TIMES, "v2Checkpoint", "vacuumProtocolCheck", "variantType"})
# What checkpointProtection, which DROP FEATURE adds, forbids is to remove parts of the log.
_WRITES = _READS | {"appendOnly", "invariants", "checkpointProtection", *CLUSTERING}
_EARLIER = frozenset({"appendOnly", "invariants"})
_EARLIER_WRITER = 2
"""The features of tables whose protocol lists none, up to this version for writers."""
_OFF = {"delta.appendOnly": "false", "delta.enableChangeDataFeed": "false", "delta.columnMapping.mode": "none"}
"""Properties that must have these values, which are the defaults."""
VECTORS_PROPERTY = "delta.enableDeletionVectors"
"""The property that says whether writers may delete rows in deletion vectors."""
KEY_PROPERTY = "floodmark.key"
"""The property with the columns of the table's key, which are separated by commas."""
DELETES_PROPERTY = "floodmark.deletes"
"""The property that says what becomes of rows that are changed or deleted, as a ``Mode``; ``hard`` without it."""
_AS_OPTION: Mapping[str, str] = {"hard": "deletes=hard", "soft": "deletes=soft", "history": "history=on"}
OWNER_PROPERTY = "floodmark.query"
"""The property that names the query whose table it is."""
_APPLICATION = "floodmark-"
"""The beginning of the name that a query has in a table's log."""


def application_of(query: str) -> str:
    """Return the name that a query has in the logs of its tables.

    Args:
        query: its id.
    """
    return f"{_APPLICATION}{query}"


def query_of(application: str | None) -> str | None:
    """Return the id of the query that has a name in the logs of its tables; None: it is another writer's name."""
    if application is None or not application.startswith(_APPLICATION):
        return None
    return application.removeprefix(_APPLICATION)


def owner(state: State) -> str | None:
    """Return which query a table belongs to; None: it was made by none."""
    return properties_in(state).get(OWNER_PROPERTY)


def identity(state: State) -> str:
    """Return the id that no other table has."""
    return JsonObject(state.metadata, "The metadata of a Delta table", damaged).text("id")


def creation(
    rows: pa.Schema,
    key: Sequence[str],
    properties: Mapping[str, str],
    vectors: bool = True,
    clustering: Sequence[str] = (),
    partition: Sequence[str] = (),
) -> list[Action]:
    """Return the actions that create a table.

    Args:
        rows: the source's columns.
        key: the columns of the key.
        properties: further properties of the table.
        vectors: whether it has deletion vectors.
        clustering: the columns by which it is clustered.
        partition: the columns by which it is partitioned.
    """
    wanted = ([_VECTORS] if vectors else []) + _features_of(rows)
    now = now_ms()
    metadata: dict[str, Json] = {
        "id": str(uuid4()),
        "format": {"provider": "parquet", "options": {}},
        "schemaString": _schema_text(rows),
        "partitionColumns": list(partition),
        "createdTime": now,
        "configuration": {
            **properties,
            **({VECTORS_PROPERTY: "true"} if vectors else {}),
            KEY_PROPERTY: ",".join(key),
        },
    }
    earliest: dict[str, Json] = {"minReaderVersion": 1, "minWriterVersion": 2}
    return [
        commit_info("CREATE TABLE", now),
        *(
            _upgraded(earliest, wanted, "The protocol of a new table", CLUSTERING if clustering else ())
            or [{"protocol": earliest}]
        ),
        {"metaData": metadata},
        *([clustered(clustering)] if clustering else []),
    ]


def _features_of(rows: pa.Schema) -> list[str]:
    """Return the features that a table needs for its columns' types."""
    return [_LOCAL_TIMES] if needs_local_times(rows) else []


def needs_local_times(rows: pa.Schema) -> bool:
    """Return whether a table with these columns needs the feature for times without a time zone."""
    return any(_has_local_times(field.type) for field in rows)


def _has_local_times(kind: pa.DataType) -> bool:
    if pa.types.is_timestamp(kind):
        return kind.tz is None
    return any(_has_local_times(kind.field(number).type) for number in range(kind.num_fields))


def _upgraded(
    protocol: Mapping[str, Json], features: Sequence[str], what: str, for_writers: Sequence[str] = ()
) -> list[Action]:
    """Return the action that adds features of readers and writers to a protocol, if it lacks any.

    Args:
        what: what the protocol is, for errors.
        for_writers: features that only writers must know.
    """
    known = JsonObject(protocol, what, damaged)
    lists = "writerFeatures" in known
    reads = known.texts("readerFeatures") if "readerFeatures" in known else []
    writes = known.texts("writerFeatures") if lists else sorted(_EARLIER)
    if all(one in reads and one in writes for one in features) and set(for_writers) <= set(writes):
        return []
    versions: dict[str, Json] = {"minReaderVersion": _READER, "minWriterVersion": _WRITER}
    added: dict[str, Json] = {
        "readerFeatures": list(dict.fromkeys([*reads, *features])),
        "writerFeatures": list(dict.fromkeys([*writes, *features, *for_writers])),
    }
    return [{"protocol": {**versions, **added}}]


def with_features_of(protocol: Mapping[str, Json], other: Mapping[str, Json], name: str) -> list[Action]:
    """Return the action that gives a table what readers of another one's files must know, if it lacks any of that.

    Args:
        protocol: the table's.
        other: the other one's.
        name: the table's, for errors.
    """
    known = JsonObject(other, f"The protocol of '{name}'", damaged)
    wanted = known.texts("readerFeatures") if "readerFeatures" in known else ()
    return _upgraded(protocol, wanted, f"The protocol of '{name}'")


def prove_writable(state: State, name: str, vectors: bool = True) -> None:
    """Check that a table is one that can be written.

    Args:
        name: the table's, for errors.
        vectors: whether rows are deleted in deletion vectors.

    Raises:
        TargetUnfitError: it needs what Floodmark doesn't do.
        TargetError: the option that says whether rows are deleted in deletion vectors doesn't go with it.
    """
    protocol = JsonObject(state.protocol, f"The protocol of '{name}'", damaged)
    if "writerFeatures" not in protocol and protocol.integer("minWriterVersion") > _EARLIER_WRITER:
        raise TargetUnfitError(
            f"The Delta table '{name}' has version {protocol.integer('minWriterVersion')} of the protocol for writers, "
            f"which Floodmark does not write.",
            "Let the mirror make a table of its own.",
        )
    others = sorted(features_in(state, name) - _WRITES)
    if others:
        raise TargetUnfitError(
            f"The Delta table '{name}' has the feature '{others[0]}', which Floodmark does not write.",
            f"Drop it with ALTER TABLE … DROP FEATURE {others[0]}, or let the mirror make a table of its own.",
        )
    properties = properties_in(state)
    for wanted, value in _OFF.items():
        if properties.get(wanted, value) != value:
            raise TargetUnfitError(
                f"The Delta table '{name}' has the property {wanted}={properties[wanted]}; a mirror needs {value}.",
                f"Set it with ALTER TABLE … SET TBLPROPERTIES ('{wanted}' = '{value}').",
            )
    prove_vectors(state, name, vectors)


def prove_vectors(state: State, name: str, vectors: bool) -> None:
    """Check that a table has deletion vectors if, and only if, rows are to be deleted in them.

    Args:
        name: the table's, for errors.

    Raises:
        TargetError: it has some, or none.
    """
    wanted = properties_in(state).get(VECTORS_PROPERTY) == "true"
    if wanted and not vectors:
        raise TargetError(
            f"The Delta table '{name}' has deletion vectors, but the mirror's option deletion.vectors is off.",
            f"Set it to on, or ALTER TABLE … SET TBLPROPERTIES ('{VECTORS_PROPERTY}' = 'false') and, for readers that "
            f"don't know them, ALTER TABLE … DROP FEATURE {_VECTORS}.",
        )
    if vectors and not (wanted and _VECTORS in features_in(state, name)):
        raise TargetError(
            f"The Delta table '{name}' has no deletion vectors.",
            f"Add them with ALTER TABLE … SET TBLPROPERTIES ('{VECTORS_PROPERTY}' = 'true'), or set the mirror's "
            "option deletion.vectors to off.",
        )


def features_in(state: State, name: str) -> set[str]:
    """Return the features that writers of a table must know."""
    protocol = JsonObject(state.protocol, f"The protocol of '{name}'", damaged)
    # Tables of earlier versions of the protocol list none, and have no deletion vectors.
    return set(protocol.texts("writerFeatures") if "writerFeatures" in protocol else _EARLIER)


def prove_key(state: State, key: Sequence[str], name: str) -> None:
    """Check that a table was made for this key.

    Raises:
        TargetUnfitError: it was made for another one, or none.
    """
    found = properties_in(state).get(KEY_PROPERTY)
    if found is not None and found != ",".join(key):
        raise TargetUnfitError(
            f"The Delta table '{name}' was made for the key ({found}), but the source's is ({', '.join(key)}).",
            "Remove the target table, and start the query with the mirror's option missing.tables=read.",
        )


def prove_mode(state: State, mode: Mode, name: str) -> None:
    """Check that a table was made for the way in which rows are changed and deleted.

    Args:
        name: the table's, for errors.

    Raises:
        TargetError: it was made for the other one.
    """
    found = properties_in(state).get(DELETES_PROPERTY, "hard")
    if found != mode:
        was, now = _AS_OPTION.get(found, found), _AS_OPTION[mode]
        raise TargetError(
            f"The Delta table '{name}' was made with the mirror's option {was}, but now it is {now}.",
            f"Set {was}, or remove the target table and start the query with missing.tables=read.",
        )


def emptied(
    state: State,
    rows: pa.Schema,
    key: Sequence[str],
    properties: Mapping[str, str],
    at_ms: int,
    partition: Sequence[str] = (),
) -> list[Action]:
    """Return the actions that remove all rows of a table and make its columns and key those of the source.

    Args:
        rows: the source's columns.
        key: the columns of the key.
        properties: further properties that it gets.
        at_ms: the time, in milliseconds since the epoch.
        partition: the columns by which it is partitioned.
    """
    metadata = JsonObject(state.metadata, "The metadata of a Delta table", damaged).content()
    kept = {**properties_in(state), **properties, KEY_PROPERTY: ",".join(key)}
    given: dict[str, Json] = {"schemaString": _schema_text(rows), "partitionColumns": list(partition)}
    changed: Action = {"metaData": {**metadata, **given, "configuration": kept}}
    upgrade = _upgraded(state.protocol, _features_of(rows), "The protocol of a Delta table")
    return [*upgrade, changed, *(file.removed(at_ms) for file in state.files.values())]


def fitted(state: State, rows: pa.Schema, name: str) -> tuple[pa.Schema, dict[str, pa.DataType]]:
    """Return the types that the source's columns have in a table, and those of the table's that must be widened.

    Args:
        rows: the source's columns.
        name: the table's, for errors.

    Raises:
        TargetUnfitError: no type of the two holds the values of the other one.
    """
    known = pa.schema(Schema.from_json(json.dumps(_schema(state, name).content())).to_arrow())
    kinds, wider = [], {}
    for field in rows:
        place = known.get_field_index(field.name)
        found = field.type if place < 0 else known.field(place).type
        if place >= 0 and _shown_type(field) != _shown_type(known.field(place)):
            if _widens(field.type, found):
                wider[field.name] = found = field.type
            elif not _widens(found, field.type):
                raise TargetUnfitError(
                    f"The column '{field.name}' of the Delta table '{name}' is {_shown_type(known.field(place))}, but "
                    f"the source's is {_shown_type(field)}.",
                    "Alter the column, or remove the table and take a snapshot of the source's table again.",
                )
        kinds.append(field.with_type(found if place >= 0 and found != field.type else field.type))
    return pa.schema(kinds), wider


def _widens(wide: pa.DataType, kind: pa.DataType) -> bool:
    """Return whether a type of numbers holds all values of another one; text would hold them, too, but not as such."""
    return not pa.types.is_string(wide) and holds(wide, kind)


def widened(state: State, wider: Mapping[str, pa.DataType], name: str) -> Action:
    """Return the action that gives columns of a table other types.

    Args:
        wider: the types by the columns' names.
        name: the table's, for errors.
    """
    known = _schema(state, name)
    fields = [
        {**field.content(), "type": _delta_type(pa.field("c", wider[field.text("name")]))}
        if field.text("name") in wider
        else field.content()
        for field in known.members("fields")
    ]
    metadata = JsonObject(state.metadata, f"The metadata of '{name}'", damaged)
    return {"metaData": {**metadata.content(), "schemaString": json.dumps({**known.content(), "fields": fields})}}


def evolution(state: State, rows: pa.Schema, name: str) -> tuple[list[Action], list[str]]:
    """Return the actions that give a table the columns that it lacks, and their names.

    Columns that only the table has stay; new rows are null there.

    Args:
        rows: the source's columns with the types that they have in the table.
        name: the table's, for errors.

    Raises:
        TargetUnfitError: a column that the source lacks can't be null.
    """
    metadata = JsonObject(state.metadata, f"The metadata of '{name}'", damaged)
    known = _schema(state, name)
    fields = {field.text("name"): field for field in known.members("fields")}
    wanted = json.loads(_schema_text(rows))["fields"]
    given = {field["name"] for field in wanted}
    required = [one for one, field in fields.items() if one not in given and not field.flag("nullable", True)]
    if required:
        raise TargetUnfitError(
            f"The column '{required[0]}' of the Delta table '{name}' can't be null, and the source has no such column.",
            f"Alter the table: ALTER COLUMN {required[0]} DROP NOT NULL.",
        )
    added = [field for field in wanted if field["name"] not in fields]
    known_names = {one.casefold(): one for one in fields}
    for field in added:
        other = known_names.get(field["name"].casefold())
        if other is not None:
            raise TargetUnfitError(
                f"The column '{field['name']}' can't be added to the Delta table '{name}', which has '{other}': names "
                "that differ only in case are the same there.",
                "Remove the target table, and start the query with the mirror's option missing.tables=read.",
            )
    if not added:
        return [], []
    schema = {**known.content(), "fields": [*known.items("fields"), *added]}
    changed: Action = {"metaData": {**metadata.content(), "schemaString": json.dumps(schema)}}
    upgrade = _upgraded(state.protocol, _features_of(rows), f"The protocol of '{name}'")
    return [*upgrade, changed], [str(field["name"]) for field in added]


def _schema(state: State, name: str) -> JsonObject:
    metadata = JsonObject(state.metadata, f"The metadata of '{name}'", damaged)
    try:
        content: Json = json.loads(metadata.text("schemaString"))
    except ValueError as error:
        raise damaged(f"The schema of '{name}' is no JSON") from error
    return JsonObject(content, f"The schema of '{name}'", damaged)


def _delta_type(field: pa.Field) -> Json:
    (found,) = json.loads(str(Schema.from_arrow(pa.schema([field])).to_json()))["fields"]
    kind: Json = found["type"]
    return kind


def _shown_type(field: pa.Field) -> str:
    kind = _delta_type(field)
    return kind if isinstance(kind, str) else json.dumps(kind)


def _schema_text(rows: pa.Schema) -> str:
    return str(Schema.from_arrow(rows.append(pa.field(POSITION, pa.string()))).to_json())


def properties_in(state: State) -> dict[str, str]:
    """Return the properties of a table."""
    metadata = JsonObject(state.metadata, "The metadata of a Delta table", damaged)
    return metadata.text_by_name("configuration") if metadata.value("configuration") else {}
