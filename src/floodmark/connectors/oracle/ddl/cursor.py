"""A cursor over the tokens of a statement, which moves forward as the grammar consumes them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn

from floodmark.connectors.oracle.ddl.tokens import END, NAME, NUMBER, SIGN, STRING, WORD, Token, tokenize
from floodmark.errors import DdlError

_SHOWN = 60


def words(text: str) -> frozenset[str]:
    """Return a set of keywords."""
    return frozenset(text.split())


class Cursor:
    """The tokens of a statement and the next one of them.

    Args:
        text: the statement.
        owner: the schema of names that have none.

    Attributes:
        at: number of the next token.
    """

    def __init__(self, text: str, owner: str) -> None:
        self.text = text
        self.owner = owner
        self.tokens: Sequence[Token] = tokenize(text)
        self.at = 0

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

    def sees(self, *words: str) -> bool:
        """Return whether these words (or signs) come next."""
        for count, word in enumerate(words):
            token = self.ahead(count)
            if token.value != word or token.kind not in (WORD, SIGN):
                return False
        return True

    def sees_any(self, words: frozenset[str]) -> bool:
        """Return whether one of these words (or signs) comes next."""
        return self.next.kind in (WORD, SIGN) and self.next.value in words

    def accept(self, *words: str) -> bool:
        """Consume these words if all of them come next; return whether they did."""
        if not self.sees(*words):
            return False
        self.at += len(words)
        return True

    def accept_any(self, *words: str) -> str | None:
        """Consume one of these words and return it; None if none of them comes next."""
        return next((word for word in words if self.accept(word)), None)

    def expect(self, *words: str) -> None:
        """Consume words that must come next."""
        for word in words:
            if not self.accept(word):
                self.fail(word)

    def at_end(self) -> bool:
        """Return whether nothing follows but a semicolon."""
        return self.next.kind == END or (self.sees(";") and self.ahead(1).kind == END)

    def at_end_of_item(self) -> bool:
        """Return whether the item of a list ends here, or the statement."""
        return self.at_end() or self.sees(",") or self.sees(")")

    def is_name(self) -> bool:
        """Return whether an identifier may come next."""
        return self.next.kind in (WORD, NAME)

    def name(self) -> str:
        """Consume the identifier that comes next and return it as the dictionary has it."""
        if not self.is_name():
            self.fail("a name")
        return self.take().value

    def table_name(self) -> tuple[str, str]:
        """Consume the name of a table; return its schema and its name."""
        first = self.name()
        return (first, self.name()) if self.accept(".") else (self.owner, first)

    def column_name(self) -> str:
        """Consume the name of a column, which may follow that of its table, and return it."""
        found = self.name()
        while self.accept("."):
            found = self.name()
        return found

    def column_names(self) -> list[str]:
        """Consume names of columns in parentheses and return them."""
        self.expect("(")
        names = [self.column_name()]
        while self.accept(","):
            names.append(self.column_name())
        self.expect(")")
        return names

    def number(self) -> int:
        """Consume a whole number, which may have a sign, and return it."""
        minus = self.accept_any("-", "+") == "-"
        token = self.next
        if token.kind != NUMBER or not token.value.isdigit():
            self.fail("a number")
        self.at += 1
        return -int(token.value) if minus else int(token.value)

    def string(self) -> str:
        """Consume a text in quotes and return it."""
        if self.next.kind != STRING:
            self.fail("a text")
        return self.take().value

    def skip_parentheses(self) -> None:
        """Skip what is in parentheses."""
        self.expect("(")
        depth = 1
        while depth:
            token = self.take()
            if token.kind == END:
                self.fail(")")
            if token.kind == SIGN:
                depth += (token.value == "(") - (token.value == ")")

    def skip_until(self, stops: frozenset[str]) -> None:
        """Skip to one of these words, or to what ends the item of a list."""
        while not self.at_end_of_item() and not self.sees_any(stops):
            self.skip_one()

    def skip_one(self) -> None:
        """Skip a token, or what is in parentheses."""
        if self.sees("("):
            self.skip_parentheses()
        else:
            self.take()

    def skip_rest(self) -> None:
        """Skip everything."""
        self.at = len(self.tokens) - 1

    def slice(self, first: int, last: int) -> str:
        """Return the text from one token up to and including another, given by their numbers."""
        end = self.tokens[last]
        return self.text[self.tokens[first].start : end.start + len(end.text)]

    def fail(self, wanted: str) -> NoReturn:
        """Raise an error about the next token."""
        token = self.next
        found = "its end" if token.kind == END else f"'{self.text[token.start : token.start + _SHOWN]}'"
        raise DdlError(f"Expected {wanted} at character {token.start + 1} of the statement, found {found}.")
