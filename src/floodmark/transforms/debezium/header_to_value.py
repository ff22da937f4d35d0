"""Puts headers into values, as ``io.debezium.transforms.HeaderToValue`` does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

from floodmark.config.transforms.debezium import HeaderToValueOptions
from floodmark.config.transforms.settings import TransformSettings
from floodmark.transforms.failures import failure
from floodmark.transforms.records import Header, Records, is_null
from floodmark.transforms.structs import NULL, Member, Struct


class HeaderToValue:
    """The transform.

    Args:
        settings: its name and its options.
    """

    def __init__(self, settings: TransformSettings) -> None:
        self._settings = settings
        self._options = options = cast(HeaderToValueOptions, settings.options)
        # The first field counts where a header is named twice.
        pairs = [*zip(options.headers, options.fields, strict=True)]
        self._paths = {name: field.split(".") for name, field in reversed(pairs)}

    def __call__(self, records: Records) -> Sequence[Records]:
        """Return records with the headers in their values.

        Raises:
            SourceStateError: a value is no structure, or has no place for a header.
        """
        value = records.value
        found = [header for header in records.headers if header.name in self._paths]
        if is_null(value) or not found:
            return (records,)
        if not isinstance(value, Struct):
            raise failure(self._settings, "fields", records, "their value is no structure any more")
        for header in found:
            value = self._extended(value, self._paths[header.name], header, records)
        headers = records.headers
        if self._options.operation == "move":
            headers = tuple(header for header in headers if header.name not in self._paths)
        return (replace(records, value=value, headers=headers),)

    def _extended(self, struct: Struct, path: Sequence[str], header: Header, records: Records) -> Struct:
        """Return structures with a header in the field that a path leads to."""
        name, *rest = path
        members = struct.with_defaults().members()
        for place, (known, schema, values) in enumerate(members):
            if known != name:
                continue
            if not rest:
                if schema["type"] != header.schema["type"]:
                    raise self._failure(header, records, f"the field '{name}' is of the type {schema['type']}")
                members[place] = name, schema, header.values
            elif isinstance(values, Struct) and values.values is not None:
                inner = self._extended(values, rest, header, records)
                members[place] = name, inner.schema, inner
            else:
                problem = "is null" if values == NULL or isinstance(values, Struct) else "is no structure"
                raise self._failure(header, records, f"the field '{name}' {problem}")
            return struct.with_members(members)
        return struct.with_members([*members, self._added(name, rest, header, records)])

    def _added(self, name: str, rest: Sequence[str], header: Header, records: Records) -> Member:
        """Return a field that a structure lacks."""
        if not rest:
            return name, header.schema, header.values
        if len(rest) > 1:
            raise self._failure(header, records, f"there is no field '{name}', and only one level can be added")
        inner = Struct({"type": "struct", "fields": []}, []).with_members([(rest[0], header.schema, header.values)])
        return name, {**inner.schema, "optional": True}, inner

    def _failure(self, header: Header, records: Records, problem: str) -> Exception:
        field = ".".join(self._paths[header.name])
        problem = f"the header '{header.name}' can't become '{field}': {problem}"
        return failure(self._settings, "fields", records, problem)
