"""Options of Kafka Connect's own transforms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import ClassVar, Literal, NamedTuple, Self, TypeAlias, cast, get_args

from pydantic import model_validator

from floodmark.config.java_patterns import Renaming
from floodmark.config.model import Options, Words, option
from floodmark.config.transforms.renaming import checked_renaming

_STEP = re.compile(r"(?:`(.*?)(?<!\\)`|((?!`)[^.]*))(?=\.|\Z)", re.DOTALL)
"""A name of a path: a backtick ends one only before a dot or at the end, and not behind a backslash."""
NULLS = "Whether nulls of fields with a default become the default."


class RegexRouterOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.RegexRouter``."""

    regex: str = option("regex", ..., "A regular expression that must match the whole topic.")
    replacement: str = option("replacement", ..., "What its first match in the topic is replaced by.")

    @model_validator(mode="after")
    def _check_regex(self) -> Self:
        self.renaming  # noqa: B018
        return self

    @property
    def renaming(self) -> Renaming:
        """What becomes of topics."""
        return checked_renaming("regex", self.regex, "replacement", self.replacement)


class InsertedField(NamedTuple):
    """A field that is added.

    Attributes:
        name: its name.
        optional: whether its schema lets it be null.
    """

    name: str
    optional: bool

    @classmethod
    def parse(cls, text: str) -> InsertedField:
        """Return the field that a name means, with ``!`` behind it if it isn't optional, or ``?`` if it is."""
        return cls(text[:-1], text.endswith("?")) if text.endswith(("?", "!")) else cls(text, True)


class InsertFieldOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.InsertField``."""

    topic_field: str = option("topic.field", "", "The field that gets the topic.")
    partition_field: str = option("partition.field", "", "The field for the partition, which is null.")
    timestamp_field: str = option("timestamp.field", "", "The field for the record's time, which is null.")
    static_field: str = option("static.field", "", "The field that gets `static.value`.")
    static_value: str | None = option("static.value", None, "The value of `static.field`.")
    replace_null_with_default: bool = option("replace.null.with.default", True, NULLS)

    refused: ClassVar[Mapping[str, str]] = {"offset.field": "only records that a sink gets have offsets"}

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        if not (self.topic_field or self.partition_field or self.timestamp_field or self.static_field):
            raise ValueError("Option 'topic.field' or 'static.field' is required: else no field is added.")
        if self.static_field and self.static_value is None:
            raise ValueError("Option 'static.value' is required with 'static.field'.")
        for name, field in (("partition.field", self.partition_field), ("timestamp.field", self.timestamp_field)):
            if field.endswith("!"):
                raise ValueError(
                    f"Option '{name}' has the value '{field}', which is not allowed: "
                    "records of a source have neither a partition nor a time yet, so that the field is null."
                )
        return self


class ReplaceFieldOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.ReplaceField``."""

    exclude: Words = option("exclude", (), "Fields that are left out; comes before `include`.")
    include: Words = option("include", (), "Fields that are kept; without it, all are.")
    renames: Words = option("renames", (), "Fields that get other names: `<field>:<name>`.")
    replace_null_with_default: bool = option("replace.null.with.default", True, NULLS)

    refused: ClassVar[Mapping[str, str]] = {
        "blacklist": "it is called 'exclude' since Kafka 2.6",
        "whitelist": "it is called 'include' since Kafka 2.6",
    }

    @model_validator(mode="after")
    def _check_renames(self) -> Self:
        for text in self.renames:
            if text.count(":") != 1 or not all(part.strip() for part in text.split(":")):
                raise ValueError(f"Option 'renames' is wrong: '{text}' is not of the form <field>:<name>.")
        return self

    @property
    def new_names(self) -> Mapping[str, str]:
        """The new names of fields by their former ones."""
        return dict(text.split(":") for text in self.renames)


class MaskFieldOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.MaskField``."""

    fields: Words = option("fields", ..., "Fields whose values are replaced.")
    replacement: str | None = option(
        "replacement", None, "What replaces them; without it, 0, `false` or an empty text."
    )
    replace_null_with_default: bool = option("replace.null.with.default", True, NULLS)

    @model_validator(mode="after")
    def _check_replacement(self) -> Self:
        _not_empty("fields", self.fields)
        if self.replacement == "":
            raise ValueError("Option 'replacement' must not be empty.")
        return self


class ValueToKeyOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.ValueToKey``."""

    fields: Words = option("fields", ..., "Fields of the value that make the key.")
    replace_null_with_default: bool = option("replace.null.with.default", True, NULLS)

    @model_validator(mode="after")
    def _check_fields(self) -> Self:
        _not_empty("fields", self.fields)
        if len(set(self.fields)) < len(self.fields):
            raise ValueError(f"Option 'fields' has a name twice: {', '.join(self.fields)}.")
        return self


class ExtractFieldOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.ExtractField``."""

    field: str = option("field", ..., "The field that takes the place of the whole.")
    field_syntax_version: Literal["V1", "V2"] = option(
        "field.syntax.version",
        "V1",
        "With `V2`, `<field>.<field>` names a field within another; names may be in backticks.",
    )
    replace_null_with_default: bool = option("replace.null.with.default", True, NULLS)

    @model_validator(mode="after")
    def _check_path(self) -> Self:
        self.path  # noqa: B018
        return self

    @property
    def path(self) -> Sequence[str]:
        """The names of the field and of those that it is within."""
        if self.field_syntax_version == "V1":
            return (self.field,)
        parts: list[str] = []
        rest = f".{self.field}"
        while rest:
            found = _STEP.match(rest, 1)
            if found is None:
                raise ValueError(
                    f"Option 'field' ({self.field}) is wrong: a name that begins with a backtick has no end."
                )
            quoted, plain = found.groups()
            parts.append(plain if quoted is None else quoted.replace("\\`.", "`."))
            rest = rest[found.end() :]
        return tuple(parts)


class HoistFieldOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.HoistField``."""

    field: str = option("field", ..., "The only field of the structure that takes the place of the whole.")


CastType: TypeAlias = Literal["int8", "int16", "int32", "int64", "float32", "float64", "boolean", "string"]
"""The types that values can be cast to."""


class CastOptions(Options):
    """Options of ``org.apache.kafka.connect.transforms.Cast``."""

    spec: Words = option("spec", ..., "`<field>:<type>`, or a type for the whole.")
    replace_null_with_default: bool = option("replace.null.with.default", True, NULLS)

    @model_validator(mode="after")
    def _check_spec(self) -> Self:
        _not_empty("spec", self.spec)
        for text in self.spec:
            name, _, kind = text.rpartition(":")
            if kind.strip().lower() not in get_args(CastType) or ":" in name:
                raise ValueError(
                    f"Option 'spec' is wrong: '{text}' is neither <field>:<type> nor a type, "
                    f"which must be one of {', '.join(get_args(CastType))}."
                )
        if len(self.spec) > 1 and not all(":" in text for text in self.spec):
            raise ValueError("Option 'spec' is wrong: a type for the whole must be the only one.")
        return self

    @property
    def whole(self) -> CastType | None:
        """The type of the whole; None: fields are cast."""
        (first, *_) = self.spec
        return None if ":" in first else cast(CastType, first.strip().lower())

    @property
    def types(self) -> Mapping[str, CastType]:
        """The types by the fields' names; with one for the whole there are none."""
        pairs = (text.split(":") for text in self.spec if ":" in text)
        return {name.strip(): cast(CastType, kind.strip().lower()) for name, kind in pairs}


def _not_empty(name: str, words: Sequence[str]) -> None:
    if not words:
        raise ValueError(f"Option '{name}' must not be empty.")
