"""Which columns of a relation events hold, what they are called, and what becomes of their values.

It is found once a relation version and is the same for the log and for snapshots.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from floodmark.config.columns import LengthRule
from floodmark.config.model import matches
from floodmark.config.postgres import PostgresOptions
from floodmark.connectors.postgres.rows.conversions import converted, load_converters
from floodmark.connectors.postgres.rows.relation import Column, Relation
from floodmark.connectors.postgres.rows.source_types import SourceType, source_type
from floodmark.connectors.postgres.rows.transforms import Hash, Mask, Told, Transform, Truncation
from floodmark.connectors.postgres.types.codec import Codec
from floodmark.connectors.postgres.types.registry import codec_for
from floodmark.errors import SourceStateError
from floodmark.events.converter import SourceColumn
from floodmark.events.names import adjusted_field_name
from floodmark.events.topics import table_key_fields


class Field(NamedTuple):
    """A field of a row or of a key.

    Attributes:
        column: the index of the relation's column.
        name: in events.
        optional: whether it may be null.
        transform: what becomes of its values; None: nothing.
    """

    column: int
    name: str
    optional: bool
    transform: Transform | None = None


@dataclass(frozen=True)
class ColumnPlan:
    """What events of one relation version are made of.

    Attributes:
        row: the fields of a row.
        key: the fields of a key; empty if there is none.
        constants: names and values of the fields that come after the key's columns.
    """

    row: tuple[Field, ...]
    key: tuple[Field, ...]
    constants: tuple[tuple[str, str], ...] = ()


def plan_columns(relation: Relation, options: PostgresOptions) -> ColumnPlan:
    """Return the plan of a relation version.

    Raises:
        SourceStateError: two columns get the same name.
    """
    indices = {column.name: index for index, column in enumerate(relation.columns)}
    every, hides, mode = options.has_all_columns, _transforms(options), options.field_name_adjustment_mode
    row = [
        Field(
            index,
            adjusted_field_name(column.name, mode),
            column.optional and column.name not in relation.key,
            _transform(relation, column, options) if hides else None,
        )
        for index, column in enumerate(relation.columns)
        if every or options.has_column(_full_name(relation, column))
    ]
    shown = {field.column for field in row}
    names = event_key(relation.schema, relation.table, list(indices), relation.key, options)
    key = [_key_field(relation, indices[name], options, indices[name] in shown) for name in names]
    if mode != "none":
        _check_names(relation, row)
        _check_names(relation, key)
    constants = table_key_fields(options, relation.schema, relation.table)
    return ColumnPlan(tuple(row), tuple(key), constants)


def event_key(
    schema: str, table: str, columns: Sequence[str], key: Sequence[str], options: PostgresOptions
) -> Sequence[str]:
    """Return the columns that make the key of a table's events: by ``message.key.columns``, else the table's own."""
    patterns = options.message_key_columns
    chosen = [name for pattern in patterns for name in columns if pattern.fullmatch(f"{schema}.{table}.{name}")]
    return list(dict.fromkeys(chosen)) or key


def read_columns(
    schema: str, table: str, columns: Sequence[str], key: Sequence[str], options: PostgresOptions
) -> Collection[str]:
    """Return those of a table's columns that a snapshot must read: what events hold, and all keys."""
    if options.has_all_columns:
        return columns
    needed = {*key, *event_key(schema, table, columns, key, options)}
    return [name for name in columns if name in needed or options.has_column(f"{schema}.{table}.{name}")]


def as_read(relation: Relation, options: PostgresOptions) -> Relation:
    """Return a relation with the columns that a snapshot reads."""
    names = [column.name for column in relation.columns]
    wanted = read_columns(relation.schema, relation.table, names, relation.key, options)
    return dataclasses.replace(relation, columns=tuple(column for column in relation.columns if column.name in wanted))


def codec_of(relation: Relation, column: Column, options: PostgresOptions) -> Codec:
    """Return the codec of a column, a converter's if one takes it."""
    if options.converters:
        kind = source_type(column, relation.types)
        described = SourceColumn(
            relation.schema, relation.table, column.name, kind.name, kind.length, kind.scale, column.optional
        )
        codec = converted(described, load_converters(options), options.unavailable_value_placeholder)
        if codec is not None:
            return codec
    return codec_for(column.type_oid, column.modifier, relation.types, options)


def shown_codec(relation: Relation, column: Column, options: PostgresOptions) -> Codec:
    """Return the codec of a column's values as rows show them."""
    codec = codec_of(relation, column, options)
    transform = _transform(relation, column, options) if _transforms(options) else None
    return codec if transform is None else transform.shown(codec)


def plan_look(relation: Relation, options: PostgresOptions) -> object:
    """Return what relation versions that look alike must have in common beside their columns."""
    try:
        # Only a converter knows what it makes of a column.
        return relation.oid if options.converters else plan_columns(relation, options)
    except SourceStateError:
        return relation.oid


def shows_as_stored(relation: Relation, column: Column, options: PostgresOptions) -> bool:
    """Tell whether rows show a column's values as the table has them."""
    if options.converters:
        return False
    return not _transforms(options) or _transform(relation, column, options) is None


def _key_field(relation: Relation, index: int, options: PostgresOptions, shown: bool) -> Field:
    column = relation.columns[index]
    # As in Debezium: nothing is known of a column that the filters leave out.
    optional = not shown or (column.optional and column.name not in relation.key)
    return Field(index, adjusted_field_name(column.name, options.field_name_adjustment_mode), optional)


def _check_names(relation: Relation, fields: Sequence[Field]) -> None:
    seen: dict[str, int] = {}
    for field in fields:
        if field.name in seen:
            first, second = (relation.columns[index].name for index in (seen[field.name], field.column))
            raise SourceStateError(
                f"The columns '{first}' and '{second}' of {relation.schema}.{relation.table} both get the name "
                f"'{field.name}' by 'field.name.adjustment.mode'.",
                "Set it to avro_unicode or none, or rename one of them.",
            )
        seen[field.name] = field.column


def _full_name(relation: Relation, column: Column) -> str:
    return f"{relation.schema}.{relation.table}.{column.name}"


def _transform(relation: Relation, column: Column, options: PostgresOptions) -> Transform | None:
    """Return what becomes of a column's values: the strictest of what matches it."""
    name = _full_name(relation, column)
    kind = source_type(column, relation.types)
    mask = _first(options.column_mask, name)
    if mask is not None:
        return Mask(mask.length, kind.text)
    for rules, serialized in ((options.column_hash, True), (options.column_hash_v2, False)):
        for rule in rules:
            if matches(rule.columns, name):
                return Hash(rule.algorithm, options.salt_of(rule), serialized, kind.length, kind.text)
    cut = _first(options.column_truncate, name)
    if cut is not None:
        return Truncation(cut.length, kind.length > cut.length)
    if matches(options.column_propagate_source_type, name) or matches(
        options.datatype_propagate_source_type, f"{relation.schema}.{relation.table}.{kind.name}"
    ):
        return Told(_parameters(column, kind))
    return None


def _transforms(options: PostgresOptions) -> bool:
    return bool(
        options.column_mask
        or options.column_hash
        or options.column_hash_v2
        or options.column_truncate
        or options.column_propagate_source_type
        or options.datatype_propagate_source_type
    )


def _first(rules: Sequence[LengthRule], name: str) -> LengthRule | None:
    return next((rule for rule in rules if matches(rule.columns, name)), None)


def _parameters(column: Column, kind: SourceType) -> tuple[tuple[str, str], ...]:
    prefix = "__debezium.source.column"
    return (
        (f"{prefix}.type", kind.name.upper()),
        (f"{prefix}.length", str(kind.length)),
        (f"{prefix}.scale", str(kind.scale)),
        (f"{prefix}.name", column.name),
    )
