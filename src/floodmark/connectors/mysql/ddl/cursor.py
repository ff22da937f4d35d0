"""A cursor over the tokens of a statement, which moves forward as the grammar consumes them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from floodmark.connectors.mysql.ddl.temporal_literals import Clock, time_zone
from floodmark.connectors.mysql.ddl.tokens import END, NAME, NUMBER, SIGN, STRING, WORD, Token, tokenize
from floodmark.connectors.mysql.structures.charsets import charset_name, collation_name
from floodmark.connectors.mysql.structures.session import Server, Session
from floodmark.errors import DdlError

_SHOWN = 60
_OUTSIDE = re.compile("[\U00010000-\U0010ffff]")


def words(text: str) -> frozenset[str]:
    """Return a set of keywords."""
    return frozenset(text.split())


class Cursor:
    """The tokens of a statement and the next one of them.

    Attributes:
        text: the statement.
        at: number of the next token.
    """

    def __init__(self, text: str, session: Session, server: Server) -> None:
        self.text = text
        self.session = session
        self.server = server
        self.tokens: Sequence[Token] = tokenize(text, session, server)
        self.at = 0

    @property
    def clock(self) -> Clock:
        """How times in literals are converted."""
        zone = time_zone(self.session.time_zone or "SYSTEM", self.server.time_zone)
        return Clock(self.session.other_fractions == self.server.mariadb, zone, self.server.mariadb)

    @property
    def next(self) -> Token:
        """The next token."""
        return self.tokens[self.at]

    def ahead(self, count: int) -> Token:
        """Return a token after the next one; the last one if there are not so many."""
        return self.tokens[min(self.at + count, len(self.tokens) - 1)]

    def take(self) -> Token:
        """Consume the next token and return it."""
        token = self.tokens[self.at]
        if token.kind != END:
            self.at += 1
        return token

    def skip(self, count: int) -> None:
        """Skip some tokens, or go to the end if there are not so many."""
        self.at = min(self.at + count, len(self.tokens) - 1)

    def sees(self, *words: str) -> bool:
        """Return whether these words (or signs) come next."""
        at, last = self.at, len(self.tokens) - 1
        for word in words:
            token = self.tokens[at]
            if token.value != word or token.kind not in (WORD, SIGN):
                return False
            at = min(at + 1, last)
        return True

    def sees_any(self, words: frozenset[str]) -> bool:
        """Return whether one of these words (or signs) comes next."""
        token = self.next
        return token.kind in (WORD, SIGN) and token.value in words

    def accept(self, *words: str) -> bool:
        """Consume these words if all of them come next; return whether they did."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str | None:
        """Consume one of these words and return it; None if none of them comes next."""
        token = self.next
        if token.kind in (WORD, SIGN) and token.value in words:
            self.at += 1
            return token.value
        return None

    def expect(self, *words: str) -> None:
        """Consume words that must come next."""
        for word in words:
            if not self.accept(word):
                self.fail(word)

    def at_end(self) -> bool:
        """Return whether nothing follows but a semicolon."""
        return self.next.kind == END or (self.sees(";") and self.ahead(1).kind == END)

    def is_name(self) -> bool:
        """Return whether an identifier may come next."""
        return self.next.kind in (WORD, NAME)

    def name(self) -> str:
        """Consume the identifier that comes next and return it."""
        token = self.next
        if token.kind not in (NAME, WORD):
            self.fail("a name")
        self.at += 1
        # Names are in utf8mb3, to which the server converts them.
        return _OUTSIDE.sub("?", token.value if token.kind == NAME else token.text)

    def table_name(self) -> tuple[str, str]:
        """Consume the name of a table; return its database and its name."""
        if self.accept("."):
            return self.session.database, self._fold(self.name())
        first = self.name()
        if self.accept("."):
            return self._fold(first), self._fold(self.name())
        return self._fold(self.session.database), self._fold(first)

    def database_name(self) -> str:
        """Consume the name of a database and return it."""
        return self._fold(self.name())

    def column_name(self) -> str:
        """Consume the name of a column, which may follow that of its table, and return it."""
        found = self.name()
        while self.accept("."):
            found = self.name()
        return found

    def number(self) -> int:
        """Consume a whole number and return it."""
        token = self.next
        if token.kind != NUMBER or not token.value.isdigit():
            self.fail("a number")
        self.at += 1
        return int(token.value)

    def size(self) -> int:
        """Consume a number and return it without its fraction, which the servers cut off."""
        token = self.next
        whole, _, fraction = token.value.partition(".")
        if token.kind != NUMBER or not (whole + fraction).isdigit():
            self.fail("a number")
        self.at += 1
        return int(whole or "0")

    def string(self) -> str:
        """Consume a text in quotes, or a name, and return it; several texts in a row are one."""
        if self.next.kind == WORD and self.next.text.startswith("_") and self.ahead(1).kind == STRING:
            self.at += 1
        if self.next.kind != STRING:
            # A name without quotes, or a text in double quotes, which ANSI_QUOTES makes a name.
            return self.name()
        parts = []
        while self.next.kind == STRING:
            parts.append(self.take().value)
        return "".join(parts)

    def charset(self) -> str:
        """Consume the name of a character set and return it as the servers print it."""
        return charset_name(self.string(), self.session.utf8)

    def collation(self) -> str:
        """Consume the name of a collation and return it as the servers print it."""
        return collation_name(self.string(), self.session.utf8)

    def in_parentheses(self) -> str:
        """Consume what is in parentheses and return its text without them."""
        begin = self.next.start
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            if token.kind == END:
                self.fail(")")
            if token.kind == SIGN:
                depth += (token.value == "(") - (token.value == ")")
        return self.text[begin + 1 : self.tokens[self.at - 1].start].strip()

    def slice(self, first: int, last: int) -> str:
        """Return the text from one token up to and including another, given by their numbers."""
        end = self.tokens[last]
        return self.text[self.tokens[first].start : end.start + len(end.text)]

    def statement(self) -> str:
        """Return the statement without comments around it and without a semicolon at its end."""
        last = len(self.tokens) - 2
        while last > 0 and self.tokens[last].value == ";" and self.tokens[last].kind == SIGN:
            last -= 1
        return self.slice(0, last)

    def skip_settings(self) -> None:
        """Skip settings that hold for the statement alone (MariaDB): ``SET STATEMENT … FOR``."""
        while self.accept("SET", "STATEMENT"):
            while not self.at_end() and self.take().value != "FOR":
                pass

    def skip_item(self) -> None:
        """Skip to the comma, the parenthesis or the end that closes an item of a list."""
        while self.next.kind != END and not self.sees(",") and not self.sees(")"):
            if self.sees("("):
                self.in_parentheses()
            else:
                self.at += 1

    def fail(self, wanted: str) -> NoReturn:
        """Raise an error about the next token."""
        token = self.next
        found = "its end" if token.kind == END else f"'{self.text[token.start : token.start + _SHOWN]}'"
        raise DdlError(f"Expected {wanted} at character {token.start + 1} of the statement, found {found}.")

    def _fold(self, name: str) -> str:
        return name.lower() if self.server.fold_names else name
