"""The options that select and transform the columns of events, and name fields, keys and topics."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, SecretStr, model_validator

from floodmark.config.java_patterns import Renaming
from floodmark.config.model import (
    OWN,
    Options,
    Patterns,
    SecretFamily,
    Words,
    family_prefix,
    matches,
    option,
    patterns_in,
)
from floodmark.config.patterns import Pattern, PatternError

SALT = "column.mask.salt.<name>"
CONVERTER_OPTIONS = "<converter>.<option>"
UNLIMITED = 1 << 31

Adjustment = Literal["none", "avro", "avro_unicode"]

_ALGORITHMS = {
    "md5": "md5",
    "sha": "sha1",
    "sha1": "sha1",
    "sha-1": "sha1",
    **{f"sha-{bits}": f"sha{bits}" for bits in (224, 256, 384, 512)},
    **{f"sha-512/{bits}": f"sha512_{bits}" for bits in (224, 256)},
    **{f"sha3-{bits}": f"sha3_{bits}" for bits in (224, 256, 384, 512)},
}
"""Java's names of the algorithms, in lower case, and Python's."""

_HASH = re.compile(r"(column\.mask\.hash\.(?:v2\.)?[^.]+\.with\.salt\.)(.+)", re.IGNORECASE)
_KEY_RULE = re.compile(r"\s*([^:]+):([^:,]+(?:,[^:,]+)*)\s*")


@dataclass(frozen=True)
class LengthRule:
    """Columns and the length that their values are cut to, or masked with."""

    length: int
    columns: tuple[Pattern, ...]


@dataclass(frozen=True)
class HashRule:
    """Columns and how their values are hashed.

    Attributes:
        algorithm: Python's name.
        salt: the salt or its name, as the option's name has it.
        exact: whether its case is certain: Spark drops the case of option names.
    """

    algorithm: str
    salt: SecretStr
    exact: bool
    columns: tuple[Pattern, ...]


def _as_lengths(value: object) -> object:
    if not isinstance(value, dict):
        return value
    rules = []
    for length, columns in value.items():
        if not length.isdecimal() or int(length) >= UNLIMITED:
            raise ValueError(f"'{length}' is not a number of characters")
        rules.append(LengthRule(int(length), patterns_in(columns)))
    return tuple(rules)


def _as_hashes(value: object) -> object:
    if not isinstance(value, dict):
        return value
    rules = []
    for name, columns in value.items():
        algorithm, found, salt = re.fullmatch(r"(?is)([^.]*)(\.with\.salt\.)?(.*)", name).groups()  # type: ignore[union-attr]
        if not found or not salt:
            raise ValueError("the option's name must end in <algorithm>.with.salt.<salt>")
        known = _ALGORITHMS.get(algorithm.lower())
        if known is None:
            raise ValueError(f"the algorithm '{algorithm}' is none of {', '.join(_ALGORITHMS).upper()}")
        exact = name != name.lower() or salt.upper() == salt
        rules.append(HashRule(known, SecretStr(salt), exact, patterns_in(columns)))
    return tuple(rules)


def _as_keys(value: object) -> object:
    if not isinstance(value, str):
        return value
    rules: list[Pattern] = []
    for item in value.split(";"):
        parts = _KEY_RULE.fullmatch(item)
        if parts is None:
            raise ValueError(f"'{item}' is not of the form <table>:<column>,<column>")
        for column in parts[2].split(","):
            rules += patterns_in(f"{parts[1]}.{column.strip()}")
    return tuple(rules)


Lengths = Annotated[tuple[LengthRule, ...], BeforeValidator(_as_lengths)]
Hashes = Annotated[tuple[HashRule, ...], BeforeValidator(_as_hashes)]
KeyColumns = Annotated[tuple[Pattern, ...], BeforeValidator(_as_keys)]
"""Regular expressions of columns, in the order of the keys."""


class ColumnOptions(Options):
    """Options of columns, keys and names; the same for every database."""

    column_include_list: Patterns = option(
        "column.include.list",
        (),
        "Regular expressions of the columns that events hold, as `schema.table.column`; all if empty. A key keeps its "
        "columns.",
    )
    column_exclude_list: Patterns = option(
        "column.exclude.list",
        (),
        "Regular expressions of the columns that events leave out, as `schema.table.column`. A key keeps its columns.",
    )
    skip_messages_without_change: bool = option(
        "skip.messages.without.change",
        False,
        "Whether updates are left out that change no column of the event. Needs the replica identity `FULL`.",
    )
    column_truncate: Lengths = option(
        "column.truncate.to.<length>.chars",
        (),
        "Columns whose texts are cut to this length.",
    )
    column_mask: Lengths = option(
        "column.mask.with.<length>.chars",
        (),
        "Columns whose texts, NULL too, are replaced by so many `*`.",
    )
    column_hash_v2: Hashes = option(
        "column.mask.hash.v2.<algorithm>.with.salt.<salt>",
        (),
        "Columns whose texts are replaced by a hash (`SHA-256`, …) of salt and text, in hexadecimal.",
        secret=True,
    )
    column_hash: Hashes = option(
        "column.mask.hash.<algorithm>.with.salt.<salt>",
        (),
        "The same with the hash that Debezium had first: of salt and the text as Java serialises it.",
        secret=True,
    )
    column_salts: SecretFamily = option(
        SALT,
        {},
        "The salt that `with.salt.<name>` stands for. Spark drops the case of option names, so a salt with letters "
        "must be given here.",
        OWN,
    )
    column_propagate_source_type: Patterns = option(
        "column.propagate.source.type",
        (),
        "Columns, as `schema.table.column`, whose type, length, scale and name are added to their schema's parameters.",
    )
    datatype_propagate_source_type: Patterns = option(
        "datatype.propagate.source.type",
        (),
        "The same for all columns of some types, as `schema.table.type`.",
    )
    message_key_columns: KeyColumns = option(
        "message.key.columns",
        (),
        "Columns that make the key of some tables: `<table>:<column>,<column>;…`, where the table is a regular "
        "expression.",
    )
    schema_name_adjustment_mode: Adjustment = option(
        "schema.name.adjustment.mode",
        "none",
        "What becomes of characters in schemas' names that Avro does not allow: nothing, `_`, or `_uXXXX`.",
    )
    field_name_adjustment_mode: Adjustment = option(
        "field.name.adjustment.mode", "none", "The same for the names of columns in events and keys."
    )
    topic_naming_strategy: Literal[
        "io.debezium.schema.SchemaTopicNamingStrategy",
        "io.debezium.schema.DefaultTopicNamingStrategy",
        "io.debezium.schema.SchemaUnicodeTopicNamingStrategy",
        "io.debezium.schema.DefaultUnicodeTopicNamingStrategy",
        "io.debezium.schema.SchemaRegexTopicNamingStrategy",
        "io.debezium.schema.DefaultRegexTopicNamingStrategy",
    ] = option(
        "topic.naming.strategy",
        "io.debezium.schema.SchemaTopicNamingStrategy",
        "How topics are called: `Schema…` as prefix, schema and table, `Default…` as prefix and table; `…Unicode…` "
        "writes characters that Kafka does not allow as `_uXXXX`, `…Regex…` replaces by `topic.regex`.",
    )
    topic_regex: str | None = option(
        "topic.regex", None, "With a `Regex` strategy: what a whole topic must match to get another name."
    )
    topic_replacement: str | None = option(
        "topic.replacement", None, "With a `Regex` strategy: the topic's new name; `$1` is the first group."
    )
    topic_key_enforce_uniqueness: bool = option(
        "topic.key.enforce.uniqueness",
        True,
        "With a `Regex` strategy: whether keys get a field that distinguishes the tables of a topic.",
    )
    topic_key_field_name: str = option(
        "topic.key.field.name", "__dbz__physicalTableIdentifier", "With a `Regex` strategy: the name of that field."
    )
    topic_key_field_regex: str | None = option(
        "topic.key.field.regex",
        None,
        "With a `Regex` strategy: what a topic must match for the field to hold `topic.key.field.replacement`, not the "
        "topic's first name.",
    )
    topic_key_field_replacement: str | None = option(
        "topic.key.field.replacement", None, "With a `Regex` strategy: the field's value; `$1` is the first group."
    )
    topic_cache_size: int = option("topic.cache.size", 10_000, "No effect: a name is made once a table.", ge=1)
    converters: Words = option("converters", (), "Names of converters, in the order in which they are tried.")
    converter_options: SecretFamily = option(
        CONVERTER_OPTIONS,
        {},
        "`<converter>.type`: entry point (group `floodmark.converters`) of a converter; what else begins with its name "
        "is passed to it.",
        "`<converter>.type` is a Java class",
    )

    @classmethod
    def _family(cls, key: str, options: Mapping[str, str]) -> tuple[str, str]:
        names = next((value for name, value in options.items() if name.lower() == "converters"), "")
        owner, _, rest = key.partition(".")
        if rest and owner.lower() in (name.strip().lower() for name in names.split(",")):
            return CONVERTER_OPTIONS, key.lower()
        return super()._family(key, options)

    @model_validator(mode="after")
    def _check_columns(self) -> Self:
        if self.column_include_list and self.column_exclude_list:
            raise ValueError(
                "Options 'column.include.list' and 'column.exclude.list' exclude each other: give only one."
            )
        for rule in (*self.column_hash, *self.column_hash_v2):
            if not rule.exact and rule.salt.get_secret_value().lower() not in self._salts():
                raise ValueError(
                    "The salt of an option 'column.mask.hash.…' is not certain, since Spark drops the case of option "
                    f"names: give it as '{SALT}' and write this name in its place."
                )
        for name in self.converters:
            if f"{name.lower()}.type" not in self.converter_options:
                raise ValueError(f"Option '{name}.type' is required, since 'converters' has '{name}'.")
        return self

    @model_validator(mode="after")
    def _check_topics(self) -> Self:
        for regex, replacement in (
            ("topic.regex", "topic.replacement"),
            ("topic.key.field.regex", "topic.key.field.replacement"),
        ):
            given = getattr(self, regex.replace(".", "_"))
            if given and not getattr(self, replacement.replace(".", "_")):
                raise ValueError(f"Option '{replacement}' is required with '{regex}'.")
            by = getattr(self, replacement.replace(".", "_")) or ""
            try:
                Renaming(given or "", by)
            except PatternError as exc:
                raise ValueError(f"Options '{regex}' ({given}) and '{replacement}' ({by}) are wrong: {exc}.") from None
        if "Regex" in self.topic_naming_strategy and not self.topic_regex:
            raise ValueError("Option 'topic.regex' is required with this 'topic.naming.strategy'.")
        return self

    def _salts(self) -> dict[str, str]:
        return {name.lower(): salt.get_secret_value() for name, salt in self.column_salts.items()}

    def salt_of(self, rule: HashRule) -> SecretStr:
        """Return the salt of a rule, which has it or its name."""
        written = rule.salt.get_secret_value()
        return SecretStr(self._salts().get(written.lower(), written))

    def has_column(self, name: str) -> bool:
        """Return whether events hold a column, ``schema.table.column``."""
        if self.column_include_list:
            return matches(self.column_include_list, name)
        return not matches(self.column_exclude_list, name)

    @property
    def shapes_columns(self) -> bool:
        """Whether tables with the same columns may have events with different layouts."""
        return any(getattr(self, name) != field.default for name, field in ColumnOptions.model_fields.items())

    @property
    def has_all_columns(self) -> bool:
        """Whether no column is left out."""
        return not (self.column_include_list or self.column_exclude_list)

    def converter_settings(self, name: str) -> dict[str, str]:
        """Return a converter's options by their names in lower case, without the converter's name."""
        prefix = f"{name.lower()}."
        return {
            key.removeprefix(prefix): value.get_secret_value()
            for key, value in self.converter_options.items()
            if key.startswith(prefix)
        }


def in_small_letters(given: Mapping[str, str]) -> dict[str, str]:
    """Return options whose names keep their meaning in lower case, as Spark passes them on: salts are named."""
    result: dict[str, str] = {}
    for key, value in given.items():
        parts = _HASH.fullmatch(key)
        prefix = family_prefix(SALT)
        if parts is None or any(name.lower() == prefix + parts[2].lower() for name in given):
            result[key] = value
            continue
        name = f"salt_{len(result)}"
        result[parts[1] + name] = value
        result[prefix + name] = parts[2]
    return result
