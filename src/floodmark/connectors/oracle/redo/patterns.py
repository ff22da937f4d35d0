"""Clauses of statements in which each column is null or has a value, and nothing else differs.

A *pattern* is a whole insert or delete, or an update from its first condition on. The values of a column have the same
form in most statements of a table, such as a literal or a call of TO_DATE, so two texts are possible for each column.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product

import pyarrow as pa

from floodmark.connectors.oracle.redo.scanner import BEFORE_GAP, LITERAL, NO_COLUMN, Form, Found, Scanner, Side, State

GROUP = 4
"""Of so many columns, each combination of nulls and values is kept as one text."""
_EMPTY = b"''"
"""A literal without its content."""
_IS_NULL = b"IS NULL"
_EQUALS = b" = "
_WHERE = b" where "


@dataclass(frozen=True)
class Text:
    """How a value is written: with literals, or as something that is always the same, such as ``NULL``.

    Attributes:
        text: without the content of literals.
        form: the value's.
    """

    text: bytes
    form: Form

    @cached_property
    def literals(self) -> int:
        """How many it has."""
        return self.text.count(_EMPTY)

    @cached_property
    def rest(self) -> int:
        """How long it is from the closing quote of the last literal on."""
        return len(self.text) - self.text.rindex(_EMPTY) - 1

    @cached_property
    def call(self) -> int:
        """How long it is before the first literal."""
        return self.text.index(_EMPTY)


@dataclass(frozen=True)
class Item:
    """A column in a pattern.

    Attributes:
        side: of the value.
        column: its place in the table, or `NO_COLUMN`.
        lead: the text before the value, from the end of the value before it on.
        bare: the value without a literal.
        value: that with literals.
        bare_equals: what is between the column's name and the bare value.
        equals: the same for the other one.
    """

    side: Side
    column: int
    lead: bytes
    bare: Text
    value: Text
    bare_equals: bytes
    equals: bytes

    @cached_property
    def length(self) -> int:
        """How long the text is without a literal."""
        return len(self.text(False))

    @cached_property
    def more(self) -> int:
        """By how much it is longer with the value."""
        return len(self.text(True)) - self.length

    def text(self, present: bool) -> bytes:
        """Return the text with the value, or without a literal."""
        if present:
            return self.lead + self.equals + self.value.text
        return self.lead + self.bare_equals + self.bare.text


@dataclass(frozen=True)
class Pattern:
    """A clause's text.

    Attributes:
        update: whether it is only the end of a statement, after `` where ``.
        items: the columns.
        tail: the text after the last value.
    """

    update: bool
    items: tuple[Item, ...]
    tail: bytes

    @property
    def groups(self) -> int:
        """How many groups of columns there are."""
        return -(-len(self.items) // GROUP)

    @cached_property
    def texts(self) -> pa.StringArray:
        """The texts of the groups, shape (groups * 2 ** GROUP,): bit by bit, whether a column has a value."""
        found = []
        for first in range(0, len(self.items), GROUP):
            items = self.items[first : first + GROUP]
            tail = self.tail if first + GROUP >= len(self.items) else b""
            combinations = product((False, True), repeat=GROUP)
            found += [b"".join(map(Item.text, items, reversed(bits))) + tail for bits in combinations]
        return pa.array(found, pa.binary()).view(pa.string())


class Learner:
    """Finds patterns in statements of one table.

    Args:
        scanner: the table's.
    """

    def __init__(self, scanner: Scanner) -> None:
        self._scanner = scanner
        self._values: dict[int, Text] = {}
        """By column, the value with literals that was met last."""

    def pattern(self, gaps: Sequence[bytes]) -> Pattern | None:
        """Return the pattern of a statement; None if it has none, or can't be read.

        Args:
            gaps: what is outside of its literals, without quotes.
        """
        text = _EMPTY.join(gaps)
        spans = self._spans(gaps)
        if not spans:
            return None
        side = spans[-1][0].side
        own = [one for one in spans if one[0].side == side]
        update = len(own) < len(spans)
        if update:
            at = spans[-len(own) - 1][2]
            if side is not Side.OLD or own != spans[-len(own) :] or not text.startswith(_WHERE, at):
                return None
            at += len(_WHERE)
        else:
            at = 0
        items: list[Item] = []
        for found, begin, end in own:
            item = self._item(found, text[at:begin], text[begin:end], not items)
            if item is None:
                return None
            items.append(item)
            at = end
        columns = [item.column for item in items if item.column != NO_COLUMN]
        if len(set(columns)) < len(columns):
            return None
        pattern = Pattern(update, tuple(items), text[at:])
        return pattern if all(self._holds(pattern, present) for present in (False, True)) else None

    def _spans(self, gaps: Sequence[bytes]) -> list[tuple[Found, int, int]]:
        """Return the values, and where each begins and ends in the text with empty literals; none of an unknown one."""
        state, opened, at, spans = State(), 0, 0, []
        for number, gap in enumerate(gaps):
            step = self._scanner.step(state, gap, number == len(gaps) - 1)
            if step.error is not None:
                return []
            for one in step.found:
                begin, end = at + one.begin, at + one.end
                if one.begin == LITERAL:
                    begin, end = at - len(_EMPTY), at
                elif one.begin == BEFORE_GAP:
                    begin = opened
                elif gap.startswith(_IS_NULL, one.begin) and one.begin == one.end:
                    end += len(_IS_NULL)
                spans.append((one, begin, end))
            if step.begin is not None:
                opened = at + step.begin
            state, at = step.state, at + len(gap) + len(_EMPTY)
        return spans

    def _item(self, found: Found, lead: bytes, value: bytes, first: bool) -> Item | None:
        """Return a column; None if it isn't written as LogMiner does."""
        equals = bare_equals = b""
        bare = Text(b"NULL", Form.NULL)
        if _EMPTY in lead:
            return None
        if found.side is Side.OLD:
            equals, bare_equals, bare = _EQUALS, b" ", Text(_IS_NULL, Form.NULL)
            between = bare_equals if value == _IS_NULL else equals
            if not lead.endswith(between) or not (first or lead.startswith((b" and ", b" or "))):
                return None
            lead = lead[: -len(between)]
        elif not first and lead != b",":
            return None
        shown = Text(value, found.form)
        if shown.literals:
            self._values[found.column] = shown
        elif value != _IS_NULL:
            bare, bare_equals = shown, equals
        usual = self._values.get(found.column, Text(_EMPTY, Form.LITERAL))
        return Item(found.side, found.column, lead, bare, usual, bare_equals, equals)

    def _holds(self, pattern: Pattern, present: bool) -> bool:
        """Return whether the scanner finds in a statement what the pattern says."""
        text = b"".join(item.text(present) for item in pattern.items) + pattern.tail
        if pattern.update:
            text = b"delete from T" + _WHERE + text
        found = [(one.side, one.column, one.form) for one, _, _ in self._spans(text.split(_EMPTY))]
        return found == [
            (item.side, item.column, item.value.form if present else item.bare.form) for item in pattern.items
        ]
