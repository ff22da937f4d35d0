r"""Converters: addresses of mail by their domain alone, and amounts as whole cents.

Use them with::

    converters=mail,money
    mail.type=domains      mail.columns=shop\.customers\.e?mail
    money.type=cents       money.columns=.*\.(price|total)
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from floodmark import Conversion, Converter, SourceColumn


class _OfColumns(Converter):
    """Converts the columns that the option ``columns``, a regular expression, matches."""

    def configure(self, options: Mapping[str, str]) -> None:
        """Remember the columns."""
        self.columns = re.compile(options["columns"], re.IGNORECASE)

    def converter_for(self, column: SourceColumn) -> Conversion | None:
        """Take the columns that match."""
        return self.conversion(column) if self.columns.fullmatch(column.full_name) else None

    def conversion(self, column: SourceColumn) -> Conversion | None:
        """Return how a column that matches is shown."""
        raise NotImplementedError


class Domains(_OfColumns):
    """Shows the domain of an address: ``ann@example.org`` is ``example.org``."""

    def conversion(self, column: SourceColumn) -> Conversion | None:
        """Take columns of text."""
        if column.type_name not in ("text", "varchar"):
            return None
        return Conversion("string", lambda text: pc.replace_substring_regex(text, "^.*@", ""), "example.Domain", 1)


class Cents(_OfColumns):
    """Shows ``numeric`` columns of at most two decimals as int64, without the point."""

    def conversion(self, column: SourceColumn) -> Conversion | None:
        """Take columns whose values all fit."""
        if column.type_name != "numeric" or column.length > 18 or column.scale > 2:
            return None

        def convert(text: pa.StringArray) -> pa.Array:
            amounts = text.cast(pa.decimal128(20, 2)).cast(pa.string())
            return pc.replace_substring(amounts, ".", "").cast(pa.int64())

        return Conversion("int64", convert, parameters={"unit": "cent"})
