"""Regular expressions and replacements in Java's syntax, as far as ``patterns`` has what they mean."""

from __future__ import annotations

import re
import re._parser as sre_parser  # type: ignore[import-not-found]
import warnings
from dataclasses import dataclass, field

from floodmark.config.patterns import Pattern, PatternError

_GROUP = re.compile(r"(\\.)|\(\?<(?![=!])", re.DOTALL)
_ASCII_CLASS = re.compile(r"\\[dDsSwW]")
_FLAGS = re.compile(r"\(\?([a-zA-Z]+)\)")
_REFERENCE = re.compile(r"\\(.)|\$(\d+)|\$\{(\w+)\}|([$\\])", re.DOTALL)

_OTHERWISE = "which Java reads as sets of sets: write one set"


def java_pattern(text: str) -> Pattern:
    r"""Return the pattern of a regular expression as Java reads it: ``\w``, ``\d`` and ``\s`` are ASCII's.

    Raises:
        PatternError: the expression is wrong, can't be matched in linear time, or Java reads it otherwise.
    """
    named = _GROUP.sub(lambda found: found[1] or "(?P<", text)
    with warnings.catch_warnings():
        warnings.simplefilter("error", FutureWarning)
        try:
            sre_parser.parse(named)
        except FutureWarning:
            raise PatternError(f"it has '[', '&&', '--', '||' or '~~' within '[…]', {_OTHERWISE}") from None
        except (re.error, RecursionError, OverflowError):
            # Pattern reports it.
            return Pattern(named)
    if not _ASCII_CLASS.search(named):
        return Pattern(named)
    flags = _FLAGS.match(named)
    return Pattern(f"(?a{flags[1]}){named[flags.end() :]}" if flags else f"(?a){named}")


def java_replacement(pattern: Pattern, text: str) -> list[str | int]:
    """Parse a replacement with Java's ``$1``, ``${name}`` and escapes for ``Pattern.replace_first``.

    Raises:
        PatternError: the replacement names a group that the pattern doesn't have, or isn't complete.
    """
    parts: list[str | int] = []
    end = 0
    for found in _REFERENCE.finditer(text, 0):
        escaped, number, name, alone = found.groups()
        if alone is not None:
            raise PatternError(f"in the replacement '{alone}' must be followed by a group, or be '\\\\{alone}'")
        parts.append(text[end : found.start()])
        if number is not None:
            parts += _numbered(pattern, number)
        else:
            parts.append(escaped if escaped is not None else pattern.group(name))
        end = found.end()
    return [*parts, text[end:]]


def _numbered(pattern: Pattern, digits: str) -> list[str | int]:
    """Return the group of the longest number that is one, and the digits behind it."""
    for end in range(len(digits), 1, -1):
        try:
            return [pattern.group(digits[:end]), digits[end:]]
        except PatternError:
            continue
    return [pattern.group(digits[0]), digits[1:]]


@dataclass(frozen=True)
class Renaming:
    """Replaces a regular expression's first match in names that the whole of it matches, as Java's ``replaceFirst``.

    Attributes:
        regex: in Java's syntax.
        replacement: in Java's syntax.

    Raises:
        PatternError: one of them is wrong.
    """

    regex: str
    replacement: str
    _pattern: Pattern = field(init=False, repr=False, compare=False)
    _parts: list[str | int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        pattern = java_pattern(self.regex)
        object.__setattr__(self, "_pattern", pattern)
        object.__setattr__(self, "_parts", java_replacement(pattern, self.replacement))

    def __call__(self, name: str) -> str | None:
        """Return a name's replacement; None if the expression doesn't match it."""
        return self._pattern.replace_first(name, self._parts) if self._pattern.fullmatch(name) else None
