"""Evaluates an expression on the fields of records, a column at a time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from floodmark.codecs.arrays import as_mask, valid
from floodmark.config.expressions.tree import (
    Call,
    Case,
    Cast,
    Compared,
    Computed,
    Constant,
    Expression,
    Field,
    In,
    IsNull,
    Like,
    Logical,
    Negative,
    Not,
)
from floodmark.transforms.records import Records
from floodmark.transforms.sql.columns import SHOWN, Column, EvaluationError, constant, field_column, nothing
from floodmark.transforms.sql.operations import (
    as_kind,
    cast_to,
    common_kind,
    compare,
    compute,
    is_in,
    lower,
    negative,
    substring,
    texts_of,
    upper,
)

At = NDArray[np.int64]
"""The numbers of the records for which something is evaluated, shape (rows,)."""


def evaluate(expression: Expression, records: Records) -> Column:
    """Return an expression's value for each record.

    Raises:
        EvaluationError: records lack a field, types don't fit, or a value isn't allowed, such as a divisor of 0.
    """
    return _Evaluation(records).value(expression, np.arange(records.rows))


class _Evaluation:
    """Evaluates for some records; what only some of them need isn't evaluated for the others, as in Spark."""

    def __init__(self, records: Records) -> None:
        self._records = records
        self._fields: dict[Field, Column] = {}

    def value(self, node: Expression, at: At) -> Column:
        """Return a node's value for some records."""
        match node:
            case Field():
                return self._field(node, at)
            case Constant():
                return constant(node, len(at))
            case Compared(operator, left, right):
                return compare(operator, self.value(left, at), self.value(right, at))
            case Computed(operation, left, right):
                return compute(operation, self.value(left, at), self.value(right, at))
            case Logical():
                return self._logical(node, at)
            case Not(operand):
                return Column("boolean", pc.invert(self._condition(operand, at)))
            case Negative(operand):
                return negative(self.value(operand, at))
            case IsNull(operand):
                return Column("boolean", pc.is_null(self.value(operand, at).values))
            case In(operand, items):
                return is_in(self.value(operand, at), [self.value(item, at) for item in items])
            case Like(operand, pattern):
                text = texts_of(self.value(operand, at), "LIKE")
                return Column("boolean", pc.match_substring_regex(text, pattern))
            case Case(branches, otherwise):
                return self._case(branches, otherwise, at)
            case Cast(operand, target):
                return cast_to(self.value(operand, at), target)
            case Call():
                return self._call(node, at)

    def _field(self, field: Field, at: At) -> Column:
        column = self._fields.get(field)
        if column is None:
            try:
                column = self._fields[field] = field_column(self._records, field)
            except EvaluationError:
                if len(at):
                    raise
                # A condition before, on the topic for example, has left out tables without the field.
                return nothing(0)
        return column if len(at) == self._records.rows else Column(column.kind, column.values.take(pa.array(at)))

    def _condition(self, node: Expression, at: At) -> pa.BooleanArray:
        column = self.value(node, at)
        if column.kind not in ("boolean", "null"):
            raise EvaluationError(f"a condition is {SHOWN[column.kind]}, and must be BOOLEAN")
        return column.values

    def _logical(self, node: Logical, at: At) -> Column:
        left = self._condition(node.left, at)
        decided = as_mask(pc.invert(left) if node.word == "AND" else left)
        rest = np.flatnonzero(~decided)
        right = self._condition(node.right, at[rest])
        join = pc.and_kleene if node.word == "AND" else pc.or_kleene
        if len(rest) == len(at):
            return Column("boolean", join(left, right))
        found = np.full(len(at), node.word == "OR")
        known = np.ones(len(at), bool)
        joined = join(left.take(pa.array(rest)), right)
        found[rest], known[rest] = as_mask(joined), valid(joined)
        return Column("boolean", pa.array(found, mask=~known))

    def _case(self, branches: Sequence[tuple[Expression, Expression]], otherwise: Expression, at: At) -> Column:
        rest = np.arange(len(at))
        pieces: list[tuple[At, Column]] = []
        for condition, value in branches:
            met = as_mask(self._condition(condition, at[rest]))
            pieces.append((rest[met], self.value(value, at[rest[met]])))
            rest = rest[~met]
        pieces.append((rest, self.value(otherwise, at[rest])))
        return _put_together(pieces, "CASE")

    def _coalesce(self, arguments: Sequence[Expression], at: At) -> Column:
        rest = np.arange(len(at))
        pieces: list[tuple[At, Column]] = []
        for number, argument in enumerate(arguments, 1):
            column = self.value(argument, at[rest])
            there = valid(column.values) if number < len(arguments) else np.ones(len(rest), bool)
            pieces.append((rest[there], Column(column.kind, column.values.filter(pa.array(there)))))
            rest = rest[~there]
        return _put_together(pieces, "COALESCE")

    def _call(self, node: Call, at: At) -> Column:
        if node.name == "COALESCE":
            return self._coalesce(node.arguments, at)
        texts = [texts_of(self.value(one, at), node.name) for one in node.arguments if node.name != "SUBSTRING"]
        match node.name:
            case "CONCAT":
                return Column("string", pc.binary_join_element_wise(*texts, ""))
            case "LOWER":
                return Column("string", lower(texts[0]))
            case "UPPER":
                return Column("string", upper(texts[0]))
            case "LENGTH":
                return Column("int", pc.utf8_length(texts[0]).cast(pa.int64()))
            case "TRIM":
                return Column("string", pc.utf8_trim(texts[0], " "))
            case _:
                text, *numbers = node.arguments
                position, *length = (cast(int, cast(Constant, one).value) for one in numbers)
                whole = texts_of(self.value(text, at), "SUBSTRING")
                return Column("string", substring(whole, position, length[0] if length else None))


def _put_together(pieces: Sequence[tuple[At, Column]], what: str) -> Column:
    """Return the values of all rows, of which each piece has some."""
    kind = common_kind([column.kind for _, column in pieces], what)
    if kind == "null":
        return nothing(sum(len(at) for at, _ in pieces))
    order = np.argsort(np.concatenate([at for at, _ in pieces]), kind="stable")
    if kind == "decimal":
        scales = {column.values.type.scale for _, column in pieces if column.kind == "decimal"}
        if len(scales) > 1:
            raise EvaluationError(f"{what} has decimals of several scales: write CAST(… AS DOUBLE)")
        decimal = pa.decimal128(38, scales.pop())
        arrays = [as_kind(column, kind).cast(decimal) for _, column in pieces]
    else:
        arrays = [as_kind(column, kind) for _, column in pieces]
    return Column(kind, pa.concat_arrays(arrays).take(pa.array(order)))
