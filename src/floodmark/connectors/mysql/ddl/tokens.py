"""Splitting the text of a statement into tokens, as MySQL and MariaDB do.

General SQL parsers fail on many statements about tables that the servers accept (measured on the corpus in the
tests), so these statements have a small grammar of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.errors import DdlError

WORD = "word"
"""A keyword or an identifier without quotes; ``value`` is in upper case."""
NAME = "name"
"""An identifier in quotes; ``value`` is what they hold."""
STRING = "string"
NUMBER = "number"
BITS = "bits"
"""A hexadecimal or binary literal; ``value`` is its bytes in hexadecimal digits."""
SIGN = "sign"
"""Any other single character."""
END = "end"

_PATTERN = r"""
    (?P<space>\s+|\#[^\n]*|--(?=[\s\x00-\x1f]|$)[^\n]*)
  | (?P<open>/\*(?:!|M!)(?P<version>\d{{5,6}})?)
  | (?P<comment>/\*.*?\*/)
  | (?P<bits>[xX]'(?P<hex>[0-9a-fA-F]*)'|0x(?P<zerohex>[0-9a-fA-F]+)(?![\w$])
            |[bB]'(?P<bin>[01]*)'|0b(?P<zerobin>[01]+)(?![\w$]))
  | (?P<name>{name})
  | (?P<string>[nN]?{string})
  | (?P<number>(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?(?![\w$]))
  | (?P<word>[\w$\x80-\U0010ffff]+)
  | (?P<close>\*/)
  | (?P<sign>[^'"`])
"""
_ESCAPED = r"(?:[^{0}\\]|\\.|{0}{0})*"
_PLAIN = r"(?:[^{0}]|{0}{0})*"


def _compile(ansi_quotes: bool, no_backslash: bool, brackets: bool) -> re.Pattern[str]:
    inside = _PLAIN if no_backslash else _ESCAPED
    single = "'" + inside.format("'") + "'"
    double = '"' + (_PLAIN if ansi_quotes or no_backslash else _ESCAPED).format('"') + '"'
    name = "`(?:[^`]|``)*`" + (f"|{double}" if ansi_quotes else "") + (r"|\[(?:[^\]]|\]\])*\]" if brackets else "")
    string = f"(?:{single})" if ansi_quotes else f"(?:{single}|{double})"
    return re.compile(_PATTERN.format(name=name, string=string), re.VERBOSE | re.DOTALL)


_SCANNERS = {modes: _compile(*modes) for modes in product((False, True), repeat=3)}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_MEANS = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}

FIRST_SKIPPED_BY_MARIADB = 50700
"""MariaDB skips versioned comments from this version of MySQL up to its own version numbers."""
FIRST_OF_MARIADB = 100000


@dataclass(frozen=True, slots=True)
class Token:
    """A token.

    Attributes:
        value: its meaning: a word in upper case, the content of quotes.
        text: as it is written in the statement.
        start: where it begins in the statement, in characters.
    """

    kind: str
    value: str
    text: str
    start: int


def tokenize(text: str, session: Session, server: Server) -> list[Token]:
    """Return the tokens of a statement, followed by one of kind ``END``.

    Raises:
        DdlError: something in quotes or a comment does not end.
    """
    return [*scan(text, session, server), Token(END, "", "", len(text))]


def first_word(text: str, session: Session, server: Server) -> str:
    """Return the first word of a statement in upper case, after comments; empty if it doesn't begin with a word.

    The rest isn't scanned, so the length of the statement doesn't matter.
    """
    try:
        for token in scan(text, session, server):
            if token.kind == WORD:
                return token.value
            if token.value not in ("(", ";"):
                break
    except DdlError:
        return ""
    return ""


def scan(text: str, session: Session, server: Server) -> Iterator[Token]:
    """Yield the tokens of a statement.

    Raises:
        DdlError: something in quotes or a comment does not end.
    """
    match = _SCANNERS[session.ansi_quotes, session.no_backslash_escapes, session.brackets].match
    at, end = 0, len(text)
    conditional = 0
    while at < end:
        found = match(text, at)
        if found is None:
            raise DdlError(f"What begins at character {at + 1} of a statement does not end: {text[at : at + 60]!r}.")
        kind = str(found.lastgroup)
        piece = found[0]
        if kind == "word":
            yield Token(WORD, piece.upper(), piece, at)
        elif kind == "sign":
            yield Token(SIGN, piece, piece, at)
        elif kind == "name":
            quote = piece[-1]
            yield Token(NAME, piece[1:-1].replace(quote + quote, quote), piece, at)
        elif kind == "string":
            yield Token(STRING, _unquoted(piece, session.no_backslash_escapes), piece, at)
        elif kind == "number":
            yield Token(NUMBER, piece, piece, at)
        elif kind == "bits":
            yield Token(BITS, _hexadecimal(found), piece, at)
        elif kind == "open":
            if not _executed(piece, found["version"], server):
                at = _end_of_comment(text, found.end())
                continue
            conditional += 1
        elif kind == "close":
            if not conditional:
                yield Token(SIGN, "*", "*", at)
                at += 1
                continue
            conditional -= 1
        at = found.end()


def _executed(opening: str, version: str | None, server: Server) -> bool:
    if opening.startswith("/*M!") and not server.mariadb:
        return False
    number = int(version or 0)
    if server.mariadb and FIRST_SKIPPED_BY_MARIADB <= number < FIRST_OF_MARIADB:
        return opening.startswith("/*M!")
    return number <= server.version


def _end_of_comment(text: str, at: int) -> int:
    depth = 1
    while depth:
        closing, opening = text.find("*/", at), text.find("/*", at)
        if closing < 0:
            raise DdlError(f"A comment of a statement does not end: {text[max(0, at - 10) : at + 60]!r}.")
        if 0 <= opening < closing:
            depth, at = depth + 1, opening + 2
        else:
            depth, at = depth - 1, closing + 2
    return at


def _unquoted(piece: str, no_backslash: bool) -> str:
    piece = piece.lstrip("nN")
    quote = piece[0]
    content = piece[1:-1].replace(quote + quote, quote)
    if no_backslash or "\\" not in content:
        return content
    return _ESCAPE.sub(lambda found: _MEANS.get(found[1], found[1]), content)


def _hexadecimal(found: re.Match[str]) -> str:
    digits = found["hex"] if found["hex"] is not None else found["zerohex"]
    if digits is None:
        bits = found["bin"] if found["bin"] is not None else found["zerobin"]
        digits = f"{int(bits or '0', 2):0{(len(bits) + 7) // 8 * 2}x}" if bits else ""
    return digits.upper() if len(digits) % 2 == 0 else "0" + digits.upper()
