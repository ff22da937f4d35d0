"""Splits conditions into tokens. What a dialect may read in more than one way is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NoReturn

from floodmark.connectors.predicates.dialect import Dialect
from floodmark.errors import ConditionError

Kind = Literal["word", "name", "text", "bytes", "number", "sign", "end"]

MOST_CHARACTERS = 65_536
MOST_TOKENS = 20_000

_BLANK = re.compile(r"[ \t\r\n\f]+")
_WORD = re.compile(r"[A-Za-z_\u0080-\U0010ffff][A-Za-z0-9_$\u0080-\U0010ffff]*")
_NUMBER = re.compile(r"(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGN = re.compile(r"<=>|<>|!=|<=|>=|::|[-+*/%<>=(),.;]")
_HEX = re.compile(r"0[xX]([0-9A-Fa-f]+)(?![A-Za-z0-9_$\u0080-\U0010ffff])|[xX]'([0-9A-Fa-f]*)'")
_SIGNS = re.compile(r"[-+*/<>=~!@#%^&|?:]+")
_KNOWN_SIGNS = re.compile(r"(?:(?:<=>|<>|!=|<=|>=|::|[-+*/%<>=])[-+]*)?")
_MYSQL_ESCAPES = {"0": "\0", "b": "\b", "n": "\n", "r": "\r", "t": "\t", "Z": "\x1a", "%": "\\%", "_": "\\_"}


@dataclass(frozen=True)
class Token:
    """A piece of a condition.

    Attributes:
        text: a word or sign as it was written; of quoted text, its content.
    """

    kind: Kind
    text: str

    @property
    def word(self) -> str:
        """The word in upper case; empty if the token is not a word of ASCII letters."""
        return self.text.upper() if self.kind == "word" and self.text.isascii() else ""


def refuse(what: str, instead: str = "") -> NoReturn:
    """Refuse a condition.

    Raises:
        ConditionError: always.
    """
    raise ConditionError(f"it has {what}, which a signal's condition must not have{f': {instead}' if instead else ''}")


def tokens(text: str, dialect: Dialect) -> list[Token]:
    """Return the tokens of a condition, followed by one that marks its end.

    Raises:
        ConditionError: the text has something that no condition may have.
    """
    if len(text) > MOST_CHARACTERS:
        raise ConditionError(f"it is longer than {MOST_CHARACTERS} characters")
    if "\0" in text:
        refuse("a NUL character")
    if any("\ud800" <= letter <= "\udfff" for letter in text):
        refuse("half of a surrogate pair")
    found: list[Token] = []
    at = 0
    while at < len(text):
        passed = _after_blank(text, at, dialect)
        if passed > at:
            at = passed
            continue
        token, at = _token(text, at, dialect)
        found.append(token)
        if len(found) > MOST_TOKENS:
            raise ConditionError(f"it has more than {MOST_TOKENS} words and signs")
    return [*found, Token("end", "")]


def _after_blank(text: str, at: int, dialect: Dialect) -> int:
    """Return where blanks or a comment end; ``at`` if there are none."""
    blank = _BLANK.match(text, at)
    if blank is not None:
        return blank.end()
    mysql = dialect.double_quoted_text
    if text.startswith("/*", at):
        if mysql and text[at + 2 : at + 3] in ("!", "+", "M"):
            refuse("a comment that the server reads ('/*!', '/*+')", "leave it out")
        return _block_end(text, at, dialect.nested_comments)
    # In MySQL, two minus signs begin a comment only if a blank follows.
    if text.startswith("--", at) and (not mysql or text[at + 2 : at + 3] in ("", " ", "\t", "\n", "\r")):
        return _line_end(text, at)
    return _line_end(text, at) if mysql and text[at] == "#" else at


def _line_end(text: str, at: int) -> int:
    end = text.find("\n", at)
    return len(text) if end < 0 else end + 1


def _block_end(text: str, at: int, nested: bool) -> int:
    depth, at = 1, at + 2
    while depth:
        opened, closed = text.find("/*", at) if nested else -1, text.find("*/", at)
        if closed < 0:
            refuse("a comment that doesn't end")
        inner = 0 <= opened < closed
        depth += 1 if inner else -1
        at = (opened if inner else closed) + 2
    return at


def _token(text: str, at: int, dialect: Dialect) -> tuple[Token, int]:
    mysql = dialect.double_quoted_text
    first = text[at]
    if first == "'" or (first == '"' and mysql):
        value, end = _quoted(text, at, dialect.backslashes)
        return Token("text", value), end
    if first == ("`" if mysql else '"'):
        value, end = _quoted(text, at, False)
        if not value:
            refuse("a name without a letter")
        return Token("name", value), end
    if mysql and (number := _HEX.match(text, at)):
        digits = number[1] or number[2] or ""
        return Token("bytes", digits.zfill(len(digits) + len(digits) % 2)), number.end()
    if number := _NUMBER.match(text, at):
        if _WORD.match(text, number.end()):
            refuse(f"'{text[at : number.end() + 8]}'", "put a blank between a number and a word")
        return Token("number", number[0]), number.end()
    if word := _WORD.match(text, at):
        end = word.end()
        if text[end : end + 1] == "'" or (end < len(text) and text[end] in '"&' and text[end + 1 : end + 2] in "'\""):
            refuse(f"the prefix '{word[0]}' of a quoted text", "write the text between plain single quotes")
        return Token("word", word[0]), end
    sign = _SIGN.match(text, at)
    run = _run_of_signs(text, at)
    if sign is None or (run and not _KNOWN_SIGNS.fullmatch(run)):
        if first == "$":
            refuse("a text between dollar signs, or a parameter ('$')", "write the text between single quotes")
        refuse(f"'{run or first}'", "compare with =, <>, <, <=, >, >=, LIKE, IN, BETWEEN and IS NULL")
    return Token("sign", sign[0]), sign.end()


def _run_of_signs(text: str, at: int) -> str:
    """Return consecutive signs, up to a comment: servers read as many as they can as one operator."""
    found = _SIGNS.match(text, at)
    return re.split(r"/\*|--", found[0])[0] if found is not None else ""


def _quoted(text: str, at: int, backslashes: bool) -> tuple[str, int]:
    """Return the text between quotes, and where it ends."""
    quote = text[at]
    parts: list[str] = []
    at += 1
    while True:
        end = at
        while end < len(text) and text[end] != quote and not (backslashes and text[end] == "\\"):
            end += 1
        parts.append(text[at:end])
        if end >= len(text) or (text[end] == "\\" and end + 1 >= len(text)):
            refuse("a quoted text that doesn't end")
        if text[end] == "\\":
            following = text[end + 1]
            meant = _MYSQL_ESCAPES.get(following, following)
            if meant == "\0":
                refuse("a NUL character")
            parts.append(meant)
            at = end + 2
        elif text[end + 1 : end + 2] == quote:
            parts.append(quote)
            at = end + 2
        else:
            return "".join(parts), end + 1
