"""Regular expressions that match in linear time, whatever the expression and the text.

Names of tables come from the source, and expressions from signals as well as from options: with either, Python's ``re``
can be made to search practically without end. RE2 can't. Expressions keep Python's syntax and meaning: Python's own
parser parses them, and the result is written in RE2's syntax. What RE2 does not have, as it would take more than linear
time, is refused: lookaround, references to groups, conditions on groups, atomic groups and possessive repetitions.

RE2's syntax: https://github.com/google/re2/wiki/Syntax
"""

from __future__ import annotations

import re
import re._constants as sre  # type: ignore[import-not-found]
import re._parser as sre_parser  # type: ignore[import-not-found]
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

import re2

MOST_CHARACTERS = 65_536
"""The maximum length of an expression."""
MOST_BYTES = 16 << 20
"""How much memory RE2 may use for a compiled expression."""

_REFUSED = {
    sre.ASSERT: "lookahead and lookbehind ('(?=…)', '(?<=…)')",
    sre.ASSERT_NOT: "negative lookahead and lookbehind ('(?!…)', '(?<!…)')",
    sre.FAILURE: "negative lookahead ('(?!)')",
    sre.GROUPREF: "references to groups ('\\1', '(?P=name)')",
    sre.GROUPREF_EXISTS: "conditions on groups ('(?(1)…)')",
    sre.ATOMIC_GROUP: "atomic groups ('(?>…)')",
    sre.POSSESSIVE_REPEAT: "possessive repetitions ('*+', '++', '?+')",
}
CURE = "name what is to match instead, or leave the rest out with an option for exclusion"

_WORDS, _DIGITS, _SPACES = "_\\p{L}\\p{N}", "\\p{Nd}", "\\s\\v\\x{1c}-\\x{1f}\\x{85}\\p{Z}"
_ASCII_SPACES = "\\s\\v"
_CATEGORIES = {
    sre.CATEGORY_DIGIT: (_DIGITS, "\\d"),
    sre.CATEGORY_SPACE: (_SPACES, _ASCII_SPACES),
    sre.CATEGORY_WORD: (_WORDS, "\\w"),
}
_NEGATED = {
    sre.CATEGORY_NOT_DIGIT: sre.CATEGORY_DIGIT,
    sre.CATEGORY_NOT_SPACE: sre.CATEGORY_SPACE,
    sre.CATEGORY_NOT_WORD: sre.CATEGORY_WORD,
}


_Value: TypeAlias = Any
"""What an item of a parsed expression holds, numbers or items as its kind has it; Python's parser has no types."""
_Item: TypeAlias = tuple[int, _Value]
"""An item of a parsed expression: its kind, one of the parser's named numbers, and what it holds."""


class _Match(Protocol):
    """A match, as RE2's module returns it."""

    def start(self) -> int:
        """Return where it begins."""

    def end(self) -> int:
        """Return where it ends."""

    def group(self, number: int) -> str | None:
        """Return what a group matched."""


class _Program(Protocol):
    """A compiled expression, as RE2's module returns it."""

    @property
    def groups(self) -> int:
        """How many groups it has."""

    @property
    def groupindex(self) -> Mapping[str, int]:
        """The groups' numbers by their names."""

    def search(self, text: str) -> _Match | None:
        """Return the first match."""

    def fullmatch(self, text: str) -> _Match | None:
        """Return the match of the whole text."""


class PatternError(ValueError):
    """An expression is wrong, or can't be matched in linear time."""


@dataclass(frozen=True)
class Pattern:
    """A regular expression.

    Attributes:
        pattern: in the syntax of Python's ``re``.
        ignore_case: whether upper and lower case are the same.
        literal: the only text that matches, in lower case if case is ignored; None if that isn't known.

    Raises:
        PatternError: the expression is wrong, or has something that RE2 doesn't have.
    """

    pattern: str
    ignore_case: bool = False
    literal: str | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        _program(self.pattern, self.ignore_case)
        # Lists of a thousand names are common, and comparing them is faster.
        unescaped = re.sub(r"\\([._$-])", r"\1", self.pattern)
        literal = unescaped if re.fullmatch(r"(?a)(?:[\w-]|\\[._$-])+", self.pattern) else None
        object.__setattr__(self, "literal", literal.lower() if literal and self.ignore_case else literal)

    def fullmatch(self, text: str) -> bool:
        """Return whether the whole text matches."""
        if self.literal is not None and text.isascii():
            return (text.lower() if self.ignore_case else text) == self.literal
        return _matches(self.pattern, self.ignore_case, text)

    def replace_first(self, text: str, replacement: Sequence[str | int]) -> str:
        """Replace the first match.

        Args:
            text: what is searched.
            replacement: texts, and numbers of groups whose matches are inserted.
        """
        found = _program(self.pattern, self.ignore_case).search(text)
        if found is None:
            return text
        parts = [part if isinstance(part, str) else found.group(part) or "" for part in replacement]
        return text[: found.start()] + "".join(parts) + text[found.end() :]

    def group(self, name: str) -> int:
        """Return the number of a group.

        Raises:
            PatternError: there is no such group.
        """
        program = _program(self.pattern, self.ignore_case)
        number = int(name) if name.isdecimal() else program.groupindex.get(name, -1)
        if not 0 <= number <= program.groups:
            raise PatternError(f"invalid group reference: there is no group '{name}'")
        return number


# With thousands of tables the same names are matched with each micro-batch.
@lru_cache(maxsize=1 << 16)
def _matches(pattern: str, ignore_case: bool, text: str) -> bool:
    return _program(pattern, ignore_case).fullmatch(text) is not None


@lru_cache(maxsize=4096)
def _program(pattern: str, ignore_case: bool) -> _Program:
    """Return RE2's program for an expression."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = MOST_BYTES
    try:
        program: _Program = re2.compile(_in_re2(pattern, ignore_case), options)
    except re2.error as exc:
        reason = exc.args[0].decode() if exc.args and isinstance(exc.args[0], bytes) else str(exc)
        raise PatternError(f"it is too large or repeats too often ({reason})") from None
    return program


def _in_re2(pattern: str, ignore_case: bool) -> str:
    """Return an expression in RE2's syntax."""
    if len(pattern) > MOST_CHARACTERS:
        raise PatternError(f"it is longer than {MOST_CHARACTERS} characters")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            tree = sre_parser.parse(pattern, re.IGNORECASE if ignore_case else 0)
        names = {number: name for name, number in tree.state.groupdict.items()}
        return _Writer(names).sequence(tree, tree.state.flags)
    except RecursionError:
        raise PatternError("it is nested too deeply") from None
    except (re.error, OverflowError) as exc:
        raise PatternError(str(exc)) from None


class _Writer:
    """Writes expressions that Python's parser has parsed in RE2's syntax.

    Args:
        names: the groups' names by their numbers.
    """

    def __init__(self, names: dict[int, str]) -> None:
        self._names = names

    def sequence(self, items: Iterable[_Item], flags: int) -> str:
        """Write items one after the other, each so that a repetition can follow it."""
        return "".join(self._item(kind, value, flags) for kind, value in items)

    def _item(self, kind: int, value: _Value, flags: int) -> str:
        if kind in _REFUSED:
            raise PatternError(f"it has {_REFUSED[kind]}, which can't be matched in linear time: {CURE}")
        if kind is sre.LITERAL:
            return _cased(_character(value), flags)
        if kind is sre.NOT_LITERAL:
            return _cased(f"[^{_character(value)}]", flags)
        if kind is sre.ANY:
            return "(?s:.)" if flags & re.DOTALL else "(?-s:.)"
        if kind is sre.IN:
            return _cased(_class(value, flags), flags)
        if kind is sre.AT:
            return _place(value, flags)
        if kind is sre.BRANCH:
            return f"(?:{'|'.join(self.sequence(item, flags) for item in value[1])})"
        if kind is sre.SUBPATTERN:
            group, added, removed, inner = value
            text = self.sequence(inner, (flags | added) & ~removed)
            name = self._names.get(group)
            return f"(?P<{name}>{text})" if name is not None else f"(?:{text})" if group is None else f"({text})"
        if kind in (sre.MAX_REPEAT, sre.MIN_REPEAT):
            low, high, inner = value
            most = "" if high is sre.MAXREPEAT else high
            lazy = "?" if kind is sre.MIN_REPEAT else ""
            return f"(?:(?:{self.sequence(inner, flags)}){{{low},{most}}}{lazy})"
        raise PatternError(f"it has what is not known here ({kind})")


def _cased(text: str, flags: int) -> str:
    return f"(?i:{text})" if flags & re.IGNORECASE else f"(?-i:{text})"


def _character(code: int) -> str:
    if 0xD800 <= code <= 0xDFFF:
        raise PatternError("it holds half of a surrogate pair")
    return f"\\x{{{code:x}}}"


def _class(items: Sequence[_Item], flags: int) -> str:
    """Write a class of characters."""
    negated = bool(items) and items[0][0] is sre.NEGATE
    listed = items[1:] if negated else items
    # A category is several classes in RE2, so a negated one can't be a member of a class, only an alternative to it.
    outside = [_NEGATED[value] for kind, value in listed if kind is sre.CATEGORY and value in _NEGATED]
    inside = [_member(kind, value, flags) for kind, value in listed if not (kind is sre.CATEGORY and value in _NEGATED)]
    parts = [f"[{''.join(inside)}]"] if inside else []
    parts += [f"[^{_category(value, flags)}]" for value in outside]
    if not negated:
        return parts[0] if len(parts) == 1 else f"(?:{'|'.join(parts)})"
    if not outside:
        return f"[^{''.join(inside)}]"
    if len(outside) == 1 and not inside:
        return f"[{_category(outside[0], flags)}]"
    raise PatternError("it has a negated class with '\\W', '\\D' or '\\S' and more in it: write it otherwise")


def _member(kind: int, value: _Value, flags: int) -> str:
    if kind is sre.LITERAL:
        return _character(value)
    if kind is sre.RANGE:
        return _range(*value)
    return _category(value, flags)


def _range(low: int, high: int) -> str:
    # RE2 has no surrogates, and no text has them.
    if low < 0xD800 <= high:
        rest = _range(0xE000, high) if high > 0xDFFF else ""
        return f"{_character(low)}-\\x{{d7ff}}{rest}"
    return f"{_character(max(low, 0xE000) if low >= 0xD800 else low)}-{_character(high)}"


def _category(value: int, flags: int) -> str:
    return _CATEGORIES[value][bool(flags & re.ASCII)]


def _place(value: int, flags: int) -> str:
    """Write an anchor, such as the end of the text. RE2's word boundaries know only ASCII's letters."""
    if value is sre.AT_BEGINNING:
        return "(?m:^)" if flags & re.MULTILINE else "\\A"
    if value is sre.AT_END:
        return "(?m:$)" if flags & re.MULTILINE else "\\z"
    return {
        sre.AT_BEGINNING_STRING: "\\A",
        sre.AT_END_STRING: "\\z",
        sre.AT_BOUNDARY: "\\b",
        sre.AT_NON_BOUNDARY: "\\B",
    }[value]
