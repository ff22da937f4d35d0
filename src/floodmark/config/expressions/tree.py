"""The syntax tree of an expression; of its text, only values are left."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Comparison: TypeAlias = Literal["=", "<>", "<", "<=", ">", ">=", "<=>"]
Arithmetic: TypeAlias = Literal["+", "-", "*", "/", "%"]
CastTarget: TypeAlias = Literal["STRING", "INT", "BIGINT", "DOUBLE", "BOOLEAN"]
"""The types that values can be cast to."""


@dataclass(frozen=True)
class Field:
    """A field of a record.

    Attributes:
        path: ``topic``, or ``key``, ``value`` or ``header`` and the names within.
    """

    path: tuple[str, ...]

    def __str__(self) -> str:
        """Return the field as it is written."""
        return ".".join(name if name.isidentifier() else f"`{name.replace('`', '``')}`" for name in self.path)


@dataclass(frozen=True)
class Constant:
    """A value: a text, a number, true, false or null.

    Attributes:
        value: of a number with a point, its text.
        kind: what it is in Spark.
    """

    value: str | int | float | bool | None
    kind: Literal["string", "int", "bigint", "decimal", "double", "boolean", "null"]


@dataclass(frozen=True)
class Compared:
    """Two values that are compared."""

    operator: Comparison
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Computed:
    """Two numbers that are computed with."""

    operator: Arithmetic
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Logical:
    """Conditions that are joined by AND or OR."""

    word: Literal["AND", "OR"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not:
    """A condition's opposite."""

    operand: Expression


@dataclass(frozen=True)
class Negative:
    """A number with the other sign."""

    operand: Expression


@dataclass(frozen=True)
class IsNull:
    """Whether a value is null."""

    operand: Expression


@dataclass(frozen=True)
class In:
    """Whether a value is one of several."""

    operand: Expression
    items: tuple[Expression, ...]


@dataclass(frozen=True)
class Like:
    """Whether a text has a form.

    Attributes:
        pattern: the pattern's characters, one or more any, as a regular expression.
    """

    operand: Expression
    pattern: str


@dataclass(frozen=True)
class Case:
    """The value of the first condition that is true.

    Attributes:
        branches: conditions with their values.
        otherwise: the value if none is true.
    """

    branches: tuple[tuple[Expression, Expression], ...]
    otherwise: Expression


@dataclass(frozen=True)
class Call:
    """A function of values."""

    name: Literal["CONCAT", "LOWER", "UPPER", "COALESCE", "SUBSTRING", "LENGTH", "TRIM"]
    arguments: tuple[Expression, ...]


@dataclass(frozen=True)
class Cast:
    """A value as another type."""

    operand: Expression
    target: CastTarget


Expression: TypeAlias = (
    Field | Constant | Compared | Computed | Logical | Not | Negative | IsNull | In | Like | Case | Call | Cast
)
