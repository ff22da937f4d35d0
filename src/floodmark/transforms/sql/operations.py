"""What operators and functions of Spark's SQL do with columns.

Where Spark would convert types by itself, which is easily overlooked, they refuse to.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from floodmark.codecs.arrays import Mask, as_mask, lengths_of, mapped
from floodmark.codecs.floats import java_number
from floodmark.config.expressions.tree import Arithmetic, CastTarget, Comparison
from floodmark.transforms.sql.columns import ARROW, SHOWN, Column, EvaluationError, Kind, nothing

_WHOLE: tuple[Kind, ...] = ("int", "bigint")
_FLOATING: tuple[Kind, ...] = ("float", "double")
_NUMBERS: tuple[Kind, ...] = (*_WHOLE, *_FLOATING, "decimal")
_INT = 1 << 31
_LONG = 1 << 63
_WIDEST = 76
_TRUE, _FALSE = pa.array(["t", "true", "y", "yes", "1"]), pa.array(["f", "false", "n", "no", "0"])
_BLANKS = "".join(map(chr, range(0x21))) + "\x7f"
_DOUBLE = r"^[+-]?(?:NaN|(?i:inf(?:inity)?)|(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)$"


def compare(operator: Comparison, left: Column, right: Column) -> Column:
    """Compare values. NaN equals itself and is above all numbers, as in Spark.

    Raises:
        EvaluationError: their types aren't such as can be compared.
    """
    if "null" in (left.kind, right.kind):
        if operator == "<=>":
            return Column("boolean", pc.and_(pc.is_null(left.values), pc.is_null(right.values)))
        return nothing(len(left.values))
    first, second = _alike(left, right)
    if operator != "<=>":
        return Column("boolean", _compared(operator, first, second))
    both = pc.and_(pc.is_null(first), pc.is_null(second))
    return Column("boolean", pc.or_(both, _compared("=", first, second).fill_null(False)))


def _alike(left: Column, right: Column) -> tuple[pa.Array, pa.Array]:
    """Return values of two columns in one type."""
    kinds = {left.kind, right.kind}
    if kinds <= set(_NUMBERS):
        if kinds & set(_FLOATING):
            return as_doubles(left), as_doubles(right)
        if "decimal" in kinds:
            scale = max(one.values.type.scale for one in (left, right) if one.kind == "decimal")
            wide = pa.decimal256(_WIDEST, scale)
            return left.values.cast(wide), right.values.cast(wide)
        return left.values, right.values
    if kinds in ({"string"}, {"boolean"}):
        return left.values, right.values
    shown = f"{SHOWN[left.kind]} and {SHOWN[right.kind]}"
    if "other" in kinds:
        raise EvaluationError(f"it compares {shown}, of which only IS NULL can be asked")
    raise EvaluationError(f"it compares {shown}: write CAST(… AS {SHOWN[right.kind]}), or another constant")


_FUNCTIONS: dict[str, Callable[[pa.Array, pa.Array], pa.Array]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}


def _compared(operator: Comparison, left: pa.Array, right: pa.Array) -> pa.Array:
    if pa.types.is_floating(left.type):
        first, second = pc.is_nan(left), pc.is_nan(right)
        odd = pc.or_(first, second)
        if pc.any(odd).as_py():
            # As numbers, NaN is 1 and all else is 0.
            ranks = first.cast(pa.int8()), second.cast(pa.int8())
            return pc.if_else(odd, _FUNCTIONS[operator](*ranks), _FUNCTIONS[operator](left, right))
    return _FUNCTIONS[operator](left, right)


def is_in(operand: Column, items: Sequence[Column]) -> Column:
    """Return whether values are among others; null if that depends on a null."""
    found: pa.Array = pa.repeat(pa.scalar(False), len(operand.values))
    for item in items:
        found = pc.or_kleene(found, compare("=", operand, item).values)
    return Column("boolean", found)


def compute(operator: Arithmetic, left: Column, right: Column) -> Column:
    """Compute with numbers.

    Raises:
        EvaluationError: they aren't numbers, the result is beyond their type, or the divisor is 0.
    """
    kinds = {left.kind, right.kind}
    if not kinds <= {"null", *_WHOLE, "double"}:
        wrong = next(one for one in (left, right) if one.kind not in ("null", *_WHOLE, "double"))
        raise EvaluationError(f"it computes with {SHOWN[wrong.kind]}: write CAST(… AS DOUBLE) if it is a number")
    if "null" in kinds:
        return nothing(len(left.values))
    if operator == "/" or "double" in kinds:
        return Column("double", _doubles(operator, as_doubles(left), as_doubles(right)))
    kind: Kind = "bigint" if "bigint" in kinds else "int"
    return Column(kind, _whole(operator, left.values, right.values, kind))


def _doubles(operator: Arithmetic, left: pa.Array, right: pa.Array) -> pa.Array:
    if operator in "/%":
        _refuse_zero(left, right)
        if operator == "/":
            return pc.divide(left, right)
        with np.errstate(invalid="ignore"):
            return _numpy(np.fmod, left, right)
    return {"+": pc.add, "-": pc.subtract, "*": pc.multiply}[operator](left, right)


def _whole(operator: Arithmetic, left: pa.Array, right: pa.Array, kind: Kind) -> pa.Array:
    if operator == "%":
        _refuse_zero(left, right)
        return _numpy(np.fmod, left, right)
    try:
        made = {"+": pc.add_checked, "-": pc.subtract_checked, "*": pc.multiply_checked}[operator](left, right)
    except pa.ArrowInvalid:
        raise EvaluationError(f"'{operator}' makes a number beyond {SHOWN[kind]}") from None
    return _within(made, kind, f"'{operator}' makes a number")


def _numpy(function: np.ufunc, left: pa.Array, right: pa.Array) -> pa.Array:
    absent = as_mask(pc.or_(pc.is_null(left), pc.is_null(right)))
    values = function(left.fill_null(0).to_numpy(), right.fill_null(1).to_numpy())
    return pa.array(values, left.type, mask=absent)


def _refuse_zero(left: pa.Array, right: pa.Array) -> None:
    # Where the dividend is null, Spark doesn't divide.
    if pc.any(pc.and_(pc.is_valid(left), pc.equal(right, 0))).as_py():
        raise EvaluationError("it divides by 0")


def _within(values: pa.Array, kind: Kind, what: str) -> pa.Array:
    limit = _INT if kind == "int" else _LONG
    if limit == _INT and pc.any(pc.or_(pc.less(values, -limit), pc.greater_equal(values, limit))).as_py():
        raise EvaluationError(f"{what} beyond {SHOWN[kind]}")
    return values


def negative(operand: Column) -> Column:
    """Return numbers with the other sign."""
    if operand.kind in ("decimal", "float"):
        return Column(operand.kind, pc.negate(operand.values))
    if operand.kind == "double":
        return Column("double", pc.negate(operand.values))
    return compute("-", Column("int", pa.repeat(pa.scalar(0, pa.int64()), len(operand.values))), operand)


def as_doubles(column: Column) -> pa.Array:
    """Return numbers as DOUBLE."""
    return column.values if column.kind == "double" else pc.cast(column.values, pa.float64(), safe=False)


def common_kind(kinds: Sequence[Kind], what: str) -> Kind:
    """Return the type that several values get.

    Raises:
        EvaluationError: they have none in common.
    """
    found = set(kinds) - {"null"}
    if not found:
        return "null"
    if len(found) == 1:
        return next(iter(found))
    if found <= set(_WHOLE):
        return "bigint"
    if found <= {"int", *_FLOATING} or found <= {*_WHOLE, "double"}:
        return "double"
    raise EvaluationError(f"{what} has values of the types {' and '.join(sorted(SHOWN[one] for one in found))}")


def as_kind(column: Column, kind: Kind) -> pa.Array:
    """Return values in a type that ``common_kind`` has returned for it."""
    if column.kind == kind:
        return column.values
    if column.kind == "null":
        return pa.nulls(len(column.values), ARROW.get(kind, pa.decimal128(38, 0)))
    return as_doubles(column) if kind == "double" else column.values


def cast_to(column: Column, target: CastTarget) -> Column:
    """Return values as another type.

    Raises:
        EvaluationError: one of them can't become that.
    """
    if column.kind == "other":
        raise EvaluationError(f"it casts {SHOWN['other']} to {target}")
    kinds: dict[CastTarget, Kind] = {
        "STRING": "string",
        "INT": "int",
        "BIGINT": "bigint",
        "DOUBLE": "double",
        "BOOLEAN": "boolean",
    }
    kind = kinds[target]
    if column.kind == "null":
        return Column(kind, pa.nulls(len(column.values), ARROW[kind]))
    if kind == "string":
        return Column(kind, _as_text(column))
    if kind == "boolean":
        return Column(kind, _as_boolean(column))
    if kind == "double":
        return Column(kind, _as_double(column))
    return Column(kind, _within(_as_whole(column, target), kind, f"CAST AS {target} has a number"))


def _as_text(column: Column) -> pa.StringArray:
    values = column.values
    if column.kind in _FLOATING:
        return pc.utf8_trim(java_number(values.cast(pa.string()), values.type), '"')
    if column.kind == "decimal" and values.type.scale > 0:
        # Arrow writes small decimals with an exponent.
        digits = pa.Array.from_buffers(pa.decimal128(38, 0), len(values), values.buffers(), offset=values.offset)
        text = digits.cast(pa.string())
        scale = values.type.scale
        padded = pc.utf8_lpad(pc.utf8_ltrim(text, "-"), scale + 1, "0")
        signs = pc.if_else(pc.starts_with(text, "-"), "-", "")
        whole, fraction = pc.utf8_slice_codeunits(padded, 0, -scale), pc.utf8_slice_codeunits(padded, -scale)
        return pc.binary_join_element_wise(signs, whole, ".", fraction, "")
    return values.cast(pa.string())


def _as_boolean(column: Column) -> pa.BooleanArray:
    if column.kind == "boolean":
        return column.values
    if column.kind != "string":
        return pc.not_equal(as_doubles(column), 0) if column.kind != "bigint" else pc.not_equal(column.values, 0)
    text = pc.utf8_lower(pc.utf8_trim(column.values, _BLANKS))
    true, false = pc.is_in(text, _TRUE), pc.is_in(text, _FALSE)
    _refuse_texts(column.values, pc.or_(true, false), "BOOLEAN")
    return pc.if_else(pc.is_valid(text), true, pa.scalar(None, pa.bool_()))


def _as_double(column: Column) -> pa.Array:
    if column.kind != "string":
        return column.values.cast(pa.int8()).cast(pa.float64()) if column.kind == "boolean" else as_doubles(column)
    text = pc.utf8_trim(column.values, _BLANKS)
    _refuse_texts(column.values, pc.match_substring_regex(text, _DOUBLE), "DOUBLE")
    return pc.utf8_ltrim(text, "+").cast(pa.float64())


def _as_whole(column: Column, target: CastTarget) -> pa.Array:
    values = column.values
    if column.kind in _WHOLE:
        return values
    if column.kind == "boolean":
        return values.cast(pa.int64())
    if column.kind in _FLOATING:
        whole = pc.trunc(as_doubles(column))
        limit = float(_INT if target == "INT" else _LONG)
        if pc.any(pc.invert(pc.and_(pc.greater_equal(whole, -limit), pc.less(whole, limit)))).as_py():
            raise EvaluationError(f"CAST AS {target} has a number beyond {target}")
        return whole.cast(pa.int64())
    try:
        if column.kind == "decimal":
            return pc.trunc(values).cast(pa.decimal128(38, 0)).cast(pa.int64())
        text = pc.utf8_trim(values, _BLANKS)
        _refuse_texts(values, pc.match_substring_regex(text, r"^[+-]?[0-9]{1,38}$"), target)
        return pc.utf8_ltrim(text, "+").cast(pa.decimal128(38, 0)).cast(pa.int64())
    except pa.ArrowInvalid:
        raise EvaluationError(f"CAST AS {target} has a number beyond {target}") from None


def _refuse_texts(text: pa.StringArray, right: pa.BooleanArray, target: CastTarget) -> None:
    wrong = text.filter(pc.and_(pc.is_valid(text), pc.invert(right.fill_null(False))))
    if len(wrong):
        raise EvaluationError(f"CAST AS {target} has the text '{wrong[0].as_py()[:50]}', which is none")


def texts_of(column: Column, what: str) -> pa.StringArray:
    """Return values that must be texts.

    Raises:
        EvaluationError: they are others.
    """
    if column.kind == "null":
        return pa.nulls(len(column.values), pa.string())
    if column.kind != "string":
        raise EvaluationError(f"{what} has {SHOWN[column.kind]}: write CAST(… AS STRING)")
    return column.values


def lower(text: pa.StringArray) -> pa.StringArray:
    """Return texts in lower case."""
    return mapped(pc.ascii_lower(text), text, _beyond_ascii(text), str.lower)


def upper(text: pa.StringArray) -> pa.StringArray:
    """Return texts in upper case."""
    return mapped(pc.ascii_upper(text), text, _beyond_ascii(text), str.upper)


def _beyond_ascii(text: pa.StringArray) -> Mask:
    """Return which texts have other letters, whose cases Arrow knows one by one only, not as ``ß`` and ``SS``."""
    beyond: Mask = lengths_of(text) != pc.utf8_length(text).fill_null(0).to_numpy()
    return beyond


def substring(text: pa.StringArray, position: int, length: int | None) -> pa.StringArray:
    """Return a part of texts.

    Args:
        text: shape (rows,).
        position: of its first character, from 1; below 0: from the end.
        length: None: up to the end.
    """
    if length is not None and length <= 0:
        return pc.if_else(pc.is_valid(text), "", text)
    start = max(position - 1, 0) if position >= 0 else position
    stop = None if length is None or (start < 0 and length >= -start) else start + length
    return pc.utf8_slice_codeunits(text, start, stop)
