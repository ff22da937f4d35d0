"""The syntax tree of a condition; of its text, only values are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias


@dataclass(frozen=True)
class Column:
    """A column of the table, by its exact name."""

    name: str


@dataclass(frozen=True)
class Number:
    """A number without a sign, as it was written: digits, a point, an exponent."""

    text: str


@dataclass(frozen=True)
class Text:
    """A text."""

    value: str


@dataclass(frozen=True)
class Bytes:
    """Bytes that were written in hexadecimal digits."""

    digits: str


@dataclass(frozen=True)
class Constant:
    """``TRUE``, ``FALSE`` or ``NULL``."""

    word: Literal["TRUE", "FALSE", "NULL"]


@dataclass(frozen=True)
class Typed:
    """A value of a type, such as ``DATE '2026-01-01'``.

    Attributes:
        type: one of the dialect's, in upper case.
    """

    type: str
    value: str


@dataclass(frozen=True)
class Period:
    """MySQL's ``INTERVAL 3 DAY``.

    Attributes:
        amount: a number, perhaps negative, or a text such as ``1:30``.
        unit: one of the dialect's, in upper case.
    """

    amount: Expression
    unit: str


@dataclass(frozen=True)
class Negative:
    """A number with its sign changed."""

    operand: Expression


@dataclass(frozen=True)
class Binary:
    """Two values that are combined or compared.

    Attributes:
        operator: one of the dialect's.
    """

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not:
    """The opposite of a condition."""

    operand: Expression


@dataclass(frozen=True)
class Logical:
    """Conditions of which all, any, or (``XOR``) an odd number must hold."""

    word: Literal["AND", "OR", "XOR"]
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Is:
    """``IS [NOT] NULL`` and its like.

    Attributes:
        word: ``NULL``, ``TRUE``, ``FALSE`` or ``UNKNOWN``.
    """

    operand: Expression
    word: str
    negated: bool


@dataclass(frozen=True)
class Distinct:
    """``IS [NOT] DISTINCT FROM``: a comparison for which nulls are equal."""

    left: Expression
    right: Expression
    negated: bool


@dataclass(frozen=True)
class In:
    """Whether a value is one of several."""

    operand: Expression
    items: tuple[Expression, ...]
    negated: bool


@dataclass(frozen=True)
class Between:
    """Whether a value lies between two."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool


@dataclass(frozen=True)
class Like:
    """Whether a text matches a pattern with ``%`` and ``_``."""

    operand: Expression
    pattern: Expression
    escape: str | None
    ignore_case: bool
    negated: bool


@dataclass(frozen=True)
class Cast:
    """A value cast to another type.

    Attributes:
        type: one of the dialect's, in upper case.
        sizes: such as the digits of a decimal.
    """

    operand: Expression
    type: str
    sizes: tuple[int, ...] = ()


@dataclass(frozen=True)
class Call:
    """One of the dialect's functions, by its name in lower case."""

    name: str
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Extract:
    """``EXTRACT(YEAR FROM …)``.

    Attributes:
        field: one of the dialect's, in upper case.
    """

    field: str
    operand: Expression


Expression: TypeAlias = (
    Column
    | Number
    | Text
    | Bytes
    | Constant
    | Typed
    | Period
    | Negative
    | Binary
    | Not
    | Logical
    | Is
    | Distinct
    | In
    | Between
    | Like
    | Cast
    | Call
    | Extract
)


@dataclass(frozen=True)
class Query:
    """What a statement reads of the one table that it may read.

    Attributes:
        condition: on the rows; None: all.
        order: columns, and whether they descend.
        limit: the most rows; None: all.
    """

    condition: Expression | None
    order: tuple[tuple[Column, bool], ...] = ()
    limit: int | None = None
