"""Plans which columns of a structure events hold, their names, and the transforms of their values.

The plan is made once for each structure version, and is the same for the log and for snapshots.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from floodmark.changes.structure import SourceType, Structure
from floodmark.changes.transforms import Hash, Mask, SchemaParameters, Transform, Truncation
from floodmark.codecs.codec import Codec
from floodmark.codecs.conversions import converted, load_converters
from floodmark.config.columns import LengthRule
from floodmark.config.common import CommonOptions
from floodmark.config.model import matches
from floodmark.errors import SourceStateError
from floodmark.events.names import adjusted_field_name
from floodmark.events.topics import table_key_fields
from floodmark.extensions.converter import SourceColumn


class Field(NamedTuple):
    """A field of a row or of a key.

    Attributes:
        column: the index of the structure's column.
        name: its name in events.
        optional: whether it may be null.
        transform: changes its values; None: they stay as they are.
    """

    column: int
    name: str
    optional: bool
    transform: Transform | None = None


@dataclass(frozen=True)
class ColumnPlan:
    """The fields of the events of one structure version.

    Attributes:
        row: the fields of a row.
        key: the fields of a key; empty if there is none.
        constants: names and values of the fields that come after the key's columns.
    """

    row: tuple[Field, ...]
    key: tuple[Field, ...]
    constants: tuple[tuple[str, str], ...] = ()


def plan_columns(structure: Structure, options: CommonOptions) -> ColumnPlan:
    """Return the plan of a structure version.

    Raises:
        SourceStateError: two columns get the same name.
    """
    indices = {column.name: index for index, column in enumerate(structure.columns)}
    every, hides, mode = options.has_all_columns, _transforms(options), options.field_name_adjustment_mode
    row = [
        Field(
            index,
            adjusted_field_name(column.name, mode),
            column.optional and column.name not in structure.key,
            _transform(structure, index, options) if hides else None,
        )
        for index, column in enumerate(structure.columns)
        if every or options.has_column(_full_name(structure, column.name))
    ]
    shown = {field.column for field in row}
    names = event_key(structure.schema, structure.table, list(indices), structure.key, options)
    key = [_key_field(structure, indices[name], options, indices[name] in shown) for name in names]
    if mode != "none":
        _check_names(structure, row)
        _check_names(structure, key)
    constants = table_key_fields(options, structure.schema, structure.table)
    return ColumnPlan(tuple(row), tuple(key), constants)


def event_key(
    schema: str, table: str, columns: Sequence[str], key: Sequence[str], options: CommonOptions
) -> Sequence[str]:
    """Return the columns that make the key of a table's events: by ``message.key.columns``, else the table's own."""
    patterns = options.message_key_columns
    chosen = [name for pattern in patterns for name in columns if pattern.fullmatch(f"{schema}.{table}.{name}")]
    return list(dict.fromkeys(chosen)) or key


def read_columns(
    schema: str, table: str, columns: Sequence[str], key: Sequence[str], options: CommonOptions
) -> Collection[str]:
    """Return the columns of a table that a snapshot must read: those that events hold, and all keys."""
    if options.has_all_columns:
        return columns
    needed = {*key, *event_key(schema, table, columns, key, options)}
    return [name for name in columns if name in needed or options.has_column(f"{schema}.{table}.{name}")]


def codec_of(structure: Structure, column: int, options: CommonOptions) -> Codec:
    """Return the codec of a column: a converter's if one handles it, else the type's."""
    return _converted(structure, column, options) or structure.codec(column, options)


def _converted(structure: Structure, column: int, options: CommonOptions) -> Codec | None:
    """Return the codec of the converter that handles a column; None if none does."""
    if not options.converters:
        return None
    kind, one = structure.source_type(column), structure.columns[column]
    described = SourceColumn(
        structure.schema, structure.table, one.name, kind.name, kind.length, kind.scale, one.optional
    )
    return converted(described, load_converters(options), options.unavailable_value_placeholder)


def shown_codec(structure: Structure, column: int, options: CommonOptions) -> Codec:
    """Return the codec of a column's values as rows show them, with its transform."""
    codec = codec_of(structure, column, options)
    transform = _transform(structure, column, options) if _transforms(options) else None
    return codec if transform is None else transform.shown(codec)


def plan_key(structure: Structure, options: CommonOptions) -> object:
    """Return what structure versions of a layout group must have in common besides their columns."""
    try:
        # Only a converter knows what it makes of a column.
        return structure.number if options.converters else plan_columns(structure, options)
    except SourceStateError:
        return structure.number


def shows_as_stored(structure: Structure, column: int, options: CommonOptions) -> bool:
    """Return whether rows show a column's values as the table has them."""
    if options.converters:
        return False
    return not _transforms(options) or _transform(structure, column, options) is None


def hidden_columns(structure: Structure, names: Collection[str], options: CommonOptions) -> frozenset[str]:
    """Return the columns of a table whose values its events leave out, mask, cut or convert.

    Args:
        structure: the known columns; all others are hidden if the options hide any.
        names: the names of all columns.
        options: the source's options.
    """
    if options.has_all_columns and not _transforms(options) and not options.converters:
        return frozenset()
    listed = [column.name for column in structure.columns]
    key = event_key(structure.schema, structure.table, listed, structure.key, options)
    shown = {
        name
        for index, name in enumerate(listed)
        if (name in key or options.has_column(_full_name(structure, name)))
        and isinstance(_transform(structure, index, options), SchemaParameters | None)
        and _converted(structure, index, options) is None
    }
    return frozenset(names) - shown


def _key_field(structure: Structure, index: int, options: CommonOptions, shown: bool) -> Field:
    column = structure.columns[index]
    # As in Debezium, a column that the filters leave out counts as optional.
    optional = not shown or (column.optional and column.name not in structure.key)
    return Field(index, adjusted_field_name(column.name, options.field_name_adjustment_mode), optional)


def _check_names(structure: Structure, fields: Sequence[Field]) -> None:
    seen: dict[str, int] = {}
    for field in fields:
        if field.name in seen:
            first, second = (structure.columns[index].name for index in (seen[field.name], field.column))
            raise SourceStateError(
                f"The columns '{first}' and '{second}' of {structure.schema}.{structure.table} both get the name "
                f"'{field.name}' by 'field.name.adjustment.mode'.",
                "Set it to avro_unicode or none, or rename one of them.",
            )
        seen[field.name] = field.column


def _full_name(structure: Structure, column: str) -> str:
    return f"{structure.schema}.{structure.table}.{column}"


def _transform(structure: Structure, column: int, options: CommonOptions) -> Transform | None:
    """Return the transform of a column's values: the strictest one that matches; None if none does."""
    own = structure.columns[column].name
    name = _full_name(structure, own)
    kind = structure.source_type(column)
    mask = _first(options.column_mask, name)
    if mask is not None:
        return Mask(mask.length, kind.text)
    for rules, serialized in ((options.column_hash, True), (options.column_hash_v2, False)):
        for rule in rules:
            if matches(rule.columns, name):
                return Hash(rule.algorithm, options.salt_of(rule), serialized, kind.length, kind.text)
    cut = _first(options.column_truncate, name)
    if cut is not None:
        return Truncation(cut.length, not 0 <= kind.length <= cut.length)
    if matches(options.column_propagate_source_type, name) or matches(
        options.datatype_propagate_source_type, f"{structure.schema}.{structure.table}.{kind.name}"
    ):
        return SchemaParameters(_parameters(own, kind, structure.comment(column, options)))
    return None


def _transforms(options: CommonOptions) -> bool:
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


def _parameters(column: str, kind: SourceType, comment: str) -> tuple[tuple[str, str], ...]:
    prefix = "__debezium.source.column"
    numbers = [("length", kind.length)] if kind.length >= 0 else []
    if kind.scale >= 0 or kind.rounded:
        numbers.append(("scale", kind.scale))
    return (
        (f"{prefix}.type", kind.name.upper()),
        *((f"{prefix}.{name}", str(number)) for name, number in numbers),
        *(((f"{prefix}.comment", comment),) if comment else ()),
        (f"{prefix}.name", column),
    )
