"""Scans a statement of SQL_REDO, of which it gets only what is outside of text literals.

LogMiner writes three kinds of statements, for one row each::

    insert into "S"."T"("A","B") values ('1',TO_DATE('2026-01-02', 'YYYY-MM-DD'));
    update "S"."T" set "A" = '2', "B" = NULL where "A" = '1' and "B" IS NULL;
    delete from "S"."T" where "A" = '1' and "B" = HEXTORAW('00ff');

A literal is anything between two quotes. A *gap* is what lies between two literals, before the first or after the last.
Statements of a table differ in their literals, but hardly in their gaps, so each gap is scanned once for each state in
which it is met.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Literal

from floodmark.errors import DecodeError

Clause = Literal["start", "set", "where", "values", "end"]
Awaits = Literal["name", "operator", "value", "separator"]


class Side(IntEnum):
    """Whose values they are: the row's before or after the change."""

    OLD = 0
    NEW = 1


class Form(IntEnum):
    """The form in which a statement has a value."""

    ABSENT = 0
    NULL = 1
    UNSUPPORTED = 2
    """LogMiner can't show values of the column's type."""
    LITERAL = 3
    """Text between quotes, of which each that is inside stands for two."""
    EXPRESSION = 4
    """Anything else, such as a function's call."""


BEFORE_GAP = -1
"""Where an expression begins: in an earlier gap."""
LITERAL = -2
"""Where a value begins: it is the literal before the gap."""
NO_COLUMN = -1
"""The column of what is no value of the table, such as ``ROWID``."""

_HEADS = {"insert into ": "insert", "update ": "update", "delete from ": "delete"}
_SET, _WHERE, _VALUES = " set ", " where ", " values "
_IS_NULL = "IS NULL"
_WORDS = {"NULL": Form.NULL, "Unsupported Type": Form.UNSUPPORTED}
_FIRST_WORD = "Unsupported"
_IGNORED_NAME = "ORA_ARCHIVE_STATE"
"""A column that Oracle adds to tables with row archival."""


@dataclass(frozen=True)
class State:
    """Where in a statement the scanner is, when it gets a gap.

    Attributes:
        clause: the part of the statement.
        awaits: what comes next in it; a value may have begun.
        column: whose value it is, by its place in the table.
        begun: whether a value that isn't only a literal has begun.
        depth: how many parentheses are open in it.
        columns: with ``values``, the columns of those that follow.
        literal: whether the value is the literal before the gap, as it seems.
    """

    clause: Clause = "start"
    awaits: Awaits = "name"
    column: int = NO_COLUMN
    begun: bool = False
    depth: int = 0
    columns: tuple[int, ...] = ()
    literal: bool = False


@dataclass(frozen=True)
class Found:
    """A value that ends in a gap, or after the literal before it.

    Attributes:
        side: of the change.
        column: its place in the table, or `NO_COLUMN`.
        form: how the statement has it.
        begin: where it begins in the gap, or one of `BEFORE_GAP` and `LITERAL`.
        end: where it ends in the gap; not used with `LITERAL`.
    """

    side: Side
    column: int
    form: Form
    begin: int
    end: int


@dataclass(frozen=True)
class Step:
    """What a gap holds, or a part of it that ends behind a value without a literal.

    Attributes:
        found: the values that end in it.
        state: after it.
        length: how many bytes it has.
        is_part: whether it is a part of a gap.
        begin: where a value begins in it that goes on after it, and be it with the literal; None if there is none.
        error: why the statement can't be read; None if it can.
    """

    found: tuple[Found, ...]
    state: State
    length: int
    is_part: bool = False
    begin: int | None = None
    error: str | None = None


class Scanner:
    """Scans statements of one table. Places in them are counted in bytes of UTF-8.

    Args:
        columns: the names of the table's columns, in their order.
        numbered: whether ``COL 1`` names the first one, too, and so on: LogMiner writes numbers if it doesn't know the
            table as it was.
    """

    def __init__(self, columns: Sequence[str], numbered: bool = False) -> None:
        numbers = {f"COL {place}": place - 1 for place in range(1, len(columns) + 1)} if numbered else {}
        self._columns = {**numbers, **{_characters(name.encode()): place for place, name in enumerate(columns)}}

    def step(self, state: State, gap: bytes, last: bool, whole: bool = False) -> Step:
        """Scan a gap, or a part of it.

        Args:
            state: that before it.
            gap: the text between two literals, without their quotes.
            last: whether the statement ends with it.
            whole: whether it isn't scanned in parts.
        """
        try:
            return _Gap(self._columns, state, _characters(gap), last, whole).scan()
        except DecodeError as error:
            return Step((), replace(state, clause="end"), len(gap), error=error.what)


def _characters(text: bytes) -> str:
    """Return text with a character for each byte."""
    return text.decode("latin-1")


def _shown(characters: str) -> str:
    return characters.encode("latin-1").decode(errors="replace")


class _Gap:
    def __init__(self, columns: dict[str, int], state: State, text: str, last: bool, whole: bool) -> None:
        self._places = columns
        self._text = text
        self._last = last
        self._whole = whole
        self._at = 0
        self._found: list[Found] = []
        self._clause = state.clause
        self._awaits = state.awaits
        self._column = state.column
        self._depth = state.depth
        self._columns = state.columns
        self._literal = state.literal
        self._begin: int | None = BEFORE_GAP if state.begun else None

    def scan(self) -> Step:
        if self._clause == "start":
            self._head()
        if self._literal:
            self._after_literal()
        while self._at < len(self._text) and self._clause != "end":
            {"name": self._name, "operator": self._operator, "value": self._value, "separator": self._separator}[
                self._awaits
            ]()
            if self._is_behind_value():
                state = State(self._clause, self._awaits, self._column, columns=self._columns)
                return Step(tuple(self._found), state, self._at, is_part=True)
        if self._last:
            self._finish()
            return Step(tuple(self._found), State("end"), len(self._text))
        begun = self._begin is not None
        if self._clause == "end" or self._awaits != "value":
            raise self._error("no text literal")
        literal = not begun
        begin = len(self._text) if literal else self._begin
        state = State(self._clause, self._awaits, self._column, begun, self._depth, self._columns, literal)
        begun_here = None if begin == BEFORE_GAP else begin
        return Step(tuple(self._found), state, len(self._text), begin=begun_here)

    def _is_behind_value(self) -> bool:
        """Return whether a value that is no literal has just ended, and what stands between it and the next one."""
        if self._whole or self._clause == "end" or self._begin is not None or self._awaits not in ("name", "value"):
            return False
        return bool(self._found) and self._found[-1].begin != LITERAL

    def _head(self) -> None:
        head = next((one for one in _HEADS if self._text.startswith(one)), None)
        if head is None:
            raise self._error("'insert into', 'update' or 'delete from'")
        self._at = len(head)
        self._skip_table()
        kind = _HEADS[head]
        if kind == "insert":
            self._column_list()
            self._expect(_VALUES + "(", "'values'")
            self._clause, self._awaits = "values", "value"
            self._next_column()
            return
        self._clause = "set" if kind == "update" else "where"
        clause = _SET if kind == "update" else _WHERE
        # An alias may follow the table's name.
        found = self._text.find(clause, self._at)
        if found >= 0:
            self._at = found + len(clause)
        elif kind == "delete" and self._text[self._at :].strip() in ("", ";"):
            self._clause = "end"
        else:
            raise self._error(f"'{clause.strip()}'")

    def _skip_table(self) -> None:
        quoted = False
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == '"':
                quoted = not quoted
            elif char in " (" and not quoted:
                return
            self._at += 1
        if quoted:
            raise self._error("the end of the table's name")

    def _column_list(self) -> None:
        self._skip_spaces()
        self._expect("(", "the columns' names")
        places = []
        while True:
            places.append(self._place(self._quoted_name()))
            self._skip_spaces()
            if self._text.startswith(",", self._at):
                self._at += 1
                self._skip_spaces()
                continue
            self._expect(")", "the end of the columns' names")
            break
        self._columns = tuple(places)

    def _name(self) -> None:
        """Read a column's name, which an alias may stand before; ``ROWID`` and the like have no quotes."""
        begin = self._at
        while self._at < len(self._text) and self._text[self._at] not in '"=':
            self._at += 1
        if self._at == len(self._text):
            if self._text[begin:].strip() in ("", ";"):
                self._clause = "end"
                return
            raise self._error("a column's name")
        if self._text[self._at] == '"':
            self._column = self._place(self._quoted_name())
        else:
            self._column = NO_COLUMN
        self._awaits = "operator"

    def _operator(self) -> None:
        self._skip_spaces()
        if self._text.startswith("=", self._at):
            self._at += 1
            self._skip_spaces()
            self._awaits = "value"
        elif self._text.startswith(_IS_NULL, self._at):
            self._add(Form.NULL, self._at, self._at)
            self._at += len(_IS_NULL)
            self._awaits = "separator"
        else:
            raise self._error("'=' or 'IS NULL'")

    def _after_literal(self) -> None:
        """Decide whether the literal was the whole value."""
        rest = self._text[self._at :].lstrip(" ")
        self._literal = False
        if rest.startswith("||"):
            self._begin = BEFORE_GAP
            return
        self._add(Form.LITERAL, LITERAL, 0)
        self._awaits = "separator"

    def _value(self) -> None:
        """Read what isn't a literal, up to its end or that of the gap."""
        if self._begin is None:
            self._skip_spaces()
            if self._at == len(self._text):
                return
            self._begin = self._at
        while self._at < len(self._text):
            char = self._text[self._at]
            if char == "(":
                self._depth += 1
            elif char == ")" and self._depth:
                self._depth -= 1
            elif not self._depth and self._ends_value(char):
                self._end_value()
                return
            self._at += 1

    def _ends_value(self, char: str) -> bool:
        if char == ";" or (char == "," and self._clause in ("set", "values")):
            return True
        if char == ")":
            return self._clause == "values"
        if char != " ":
            return False
        assert self._begin is not None
        before = self._text[max(self._begin, 0) : self._at].rstrip(" ")
        after = self._text[self._at :].lstrip(" ")
        if before.endswith("||") or after.startswith("||"):
            return False
        return not (before == _FIRST_WORD and after.startswith("Type"))

    def _end_value(self) -> None:
        assert self._begin is not None
        text = self._text[self._begin : self._at] if self._begin >= 0 else ""
        form = _WORDS.get(text, Form.EXPRESSION)
        self._add(form, self._begin, self._at)
        self._begin = None
        self._awaits = "separator"

    def _separator(self) -> None:
        """Read what stands between two values, or after the last."""
        if self._clause == "values":
            self._skip_spaces()
            if self._text.startswith(",", self._at):
                self._at += 1
                self._next_column()
                self._awaits = "value"
            elif self._at < len(self._text):
                self._expect(")", "',' or ')'")
                self._clause = "end"
            return
        rest = self._text[self._at :]
        if self._clause == "set":
            if rest.startswith(","):
                self._at += 1
                self._awaits = "name"
                return
            if rest.startswith(_WHERE):
                self._at += len(_WHERE)
                self._clause, self._awaits = "where", "name"
                return
        else:
            for word in (" and ", " or "):
                if rest.startswith(word):
                    self._at += len(word)
                    self._awaits = "name"
                    return
        if rest.strip() in ("", ";"):
            self._clause = "end"
            return
        raise self._error("the next column")

    def _finish(self) -> None:
        if self._begin is not None:
            if self._depth:
                raise self._error("')'")
            self._end_value()
        if self._clause == "end" or (self._awaits == "separator" and self._clause != "values"):
            return
        raise self._error("more")

    def _next_column(self) -> None:
        if not self._columns:
            raise self._error("no more values than columns")
        self._column, self._columns = self._columns[0], self._columns[1:]

    def _quoted_name(self) -> str:
        end = self._text.find('"', self._at + 1) if self._text.startswith('"', self._at) else -1
        if end < 0:
            raise self._error("a column's name between double quotes")
        name = self._text[self._at + 1 : end]
        self._at = end + 1
        return name

    def _place(self, name: str) -> int:
        place = self._places.get(name, NO_COLUMN)
        if place == NO_COLUMN and name != _IGNORED_NAME:
            raise DecodeError(f"The table has no column '{_shown(name)}', which a statement of SQL_REDO names.")
        return place

    def _add(self, form: Form, begin: int, end: int) -> None:
        side = Side.OLD if self._clause == "where" else Side.NEW
        self._found.append(Found(side, self._column, form, begin, end))

    def _skip_spaces(self) -> None:
        while self._text.startswith(" ", self._at):
            self._at += 1

    def _expect(self, text: str, what: str) -> None:
        if not self._text.startswith(text, self._at):
            raise self._error(what)
        self._at += len(text)

    def _error(self, expected: str) -> DecodeError:
        seen = _shown(self._text[self._at : self._at + 20])
        return DecodeError(f"A statement of SQL_REDO has '{seen}' where {expected} was expected.")
