"""What scanning gaps has found, as arrays in which machine code looks it up.

The gaps that are met in a state form a tree. A node has a text; the texts that follow it in different gaps are its
children, and each state has a node of its own with which its gaps begin, its *root*. What a gap holds is kept with the
node that ends it. The text of a node that ends a gap has the quote with which a literal begins.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo.scanner import LITERAL, NO_COLUMN, Form, Found, Scanner, State

T = TypeVar("T", bound=np.generic)

CHUNK = 32
"""How many bytes of a text are compared at once."""

# The fields of a node.
LENGTH, LABEL, STOPS = range(3)
"""How many bytes its text has, the chunk in which that begins, and whether it ends a gap, or a part of one."""
BYTES, CHILDREN = (3, 4), (5, 6)
"""The first bytes of two of its children, and these."""
AFTER, OPENED, FOUND, FOUND_END = range(7, 11)
"""The root of the state after the gap; where a value begins in it that goes on after it, or `NONE`; its values."""
AWAITED, HAS_LITERAL, SLOT = range(11, 14)
"""The slot of the value that comes next, or `NONE`; whether a literal follows; the slot of the value that this literal
is, as it seems, or else of the only null that the gap has, or `NONE`."""
_FIELDS = 16

NONE = -1
NO_NODE = 0
"""The node that isn't there, and the state after a gap that isn't known."""
FAILED = -1
"""The state after a gap with which a statement can't be read."""
OF_AWAITED = -2
"""The slot of a value that is that of the value that was awaited before the gap."""
MOST = 1 << 14
"""How many nodes are kept. A table with more has gaps that hardly come again."""
_ANY_COLUMN = -2
"""In place of the column of ``set`` whose value is awaited, so that one state is enough for all columns."""
_QUOTE = b"'"


class Growing(Generic[T]):
    """An array that grows along its first axis.

    Attributes:
        array: with more rows than were added.
        count: how many were added.
    """

    def __init__(self, dtype: type[T], *shape: int) -> None:
        self.array: NDArray[T] = np.zeros((64, *shape), dtype)
        self.count = 0

    def add(self, rows: NDArray[T]) -> int:
        """Add rows, and return the number of the first."""
        first, self.count = self.count, self.count + len(rows)
        if self.count > len(self.array):
            more = np.zeros((max(self.count, 2 * len(self.array)), *self.array.shape[1:]), self.array.dtype)
            more[:first] = self.array[:first]
            self.array = more
        self.array[first : self.count] = rows
        return first


class Steps:
    """The steps of a table's statements. They are kept from block to block.

    The slot of a value is its column, and of a new one so many more as there are columns.

    Args:
        scanner: the table's.
        columns: how many it has.
        with_names: whether quotes in names don't begin literals.

    Attributes:
        with_names: the same.
        nodes: shape (nodes, 16): their fields (`LENGTH` …).
        ends: shape (nodes, 3): of gaps that end a statement, `AFTER`, `FOUND` and `FOUND_END`.
        children: shape (nodes, 256): the child that begins with each byte.
        labels: shape (chunks, 32): the nodes' texts, each from a chunk on.
        found: shape (values, 4): the slot of each value that isn't told by its node, its form, and where it begins and
            ends in the gap (``scanner.Found``).
    """

    START = 1
    """The root of the state before a statement."""

    def __init__(self, scanner: Scanner, columns: int, with_names: bool = False) -> None:
        self.with_names = with_names
        self._scanner = scanner
        self._columns = columns
        self._clear()

    def _clear(self) -> None:
        self._texts: list[bytes | None] = []
        """By node; None: no gap was met in the state whose root it is."""
        self._states: dict[int, State] = {}
        self._roots: dict[State, int] = {}
        self._errors: dict[tuple[int, bool], str] = {}
        self.nodes = Growing(np.int32, _FIELDS)
        self.ends = Growing(np.int32, 3)
        self.children = Growing(np.int32, 256)
        self.labels = Growing(np.uint8, CHUNK)
        self.found = Growing(np.int32, 4)
        # The node that isn't there.
        self._new(b"")
        self._root(State())

    def add(self, root: int, gap: bytes, last: bool) -> bool:
        """Scan a gap that isn't known in a state; return whether all that was known is forgotten instead.

        Args:
            root: the state's.
            gap: the text between two literals, without their quotes.
            last: whether the statement ends with it.
        """
        if self.nodes.count > MOST:
            self._clear()
            return True
        # Where a part begins, it isn't known whether that is within a name.
        step = self._scanner.step(self._states[root], gap, last, whole=self.with_names)
        ends = last and not step.is_part
        node = self._node(root, gap[: step.length] if last or step.is_part else gap + _QUOTE)
        after = FAILED if step.error is not None else self._root(step.state)
        if step.error is not None:
            self._errors[node, ends] = step.error
        # A literal is kept when it is read.
        found = [one for one in step.found if one.column != NO_COLUMN and one.begin != LITERAL]
        slot = awaited = self._awaited(step.state)
        if step.is_part:
            only_null = len(found) == 1 and found[0].form == Form.NULL
            slot = self._slot(found.pop()) if only_null else NONE
        elif not step.state.literal:
            slot = NONE
        values = [(self._slot(one), one.form, one.begin, one.end) for one in found]
        first = self.found.add(np.array(values, np.int32).reshape(-1, 4))
        if ends:
            self.ends.array[node] = after, first, first + len(values)
            return False
        opened = NONE if step.begin is None else step.begin
        self.nodes.array[node, STOPS] = True
        self.nodes.array[node, AFTER : SLOT + 1] = (
            *(after, opened, first, first + len(values)),
            *(awaited, not step.is_part, slot),
        )
        return False

    def error(self, node: int, last: bool) -> str:
        """Return why a statement can't be read.

        Args:
            node: that of the gap with which it can't.
            last: whether it ends with this gap.
        """
        return self._errors[node, last]

    def _slot(self, found: Found) -> int:
        return OF_AWAITED if found.column == _ANY_COLUMN else found.side * self._columns + found.column

    def _awaited(self, state: State) -> int:
        """Return the slot of the value that comes next, or that goes on; `NONE` if it isn't the table's."""
        if state.column == _ANY_COLUMN:
            return OF_AWAITED
        if state.column < 0:
            return NONE
        return state.column + (0 if state.clause == "where" else self._columns)

    def _root(self, state: State) -> int:
        if state.clause == "set":
            state = replace(state, column=_ANY_COLUMN)
        if state not in self._roots:
            root = self._new(b"")
            self._texts[root] = None
            self._roots[state], self._states[root] = root, state
        return self._roots[state]

    def _node(self, node: int, text: bytes) -> int:
        """Return the node that ends a text, and make it if there is none."""
        if self._texts[node] is None:
            self._write(node, text)
        while True:
            own = self._texts[node] or b""
            common = _common(own, text)
            if common < len(own):
                self._split(node, own, common)
            text = text[common:]
            if not text:
                return node
            child = int(self.children.array[node, text[0]])
            if child == NO_NODE:
                child = self._new(text)
                self._link(node, text[0], child)
                return child
            node = child

    def _split(self, node: int, text: bytes, length: int) -> None:
        """Leave a node only so much of its text; a child has the rest, and all that followed it."""
        rest = self._new(text[length:])
        self.nodes.array[rest, STOPS:] = self.nodes.array[node, STOPS:]
        self.ends.array[rest], self.children.array[rest] = self.ends.array[node], self.children.array[node]
        for last in (False, True):
            if (node, last) in self._errors:
                self._errors[rest, last] = self._errors.pop((node, last))
        self.nodes.array[node], self.ends.array[node], self.children.array[node] = 0, 0, NO_NODE
        self._write(node, text[:length])
        self._link(node, text[length], rest)

    def _link(self, node: int, byte: int, child: int) -> None:
        self.children.array[node, byte] = child
        for place_of_byte, place_of_child in zip(BYTES, CHILDREN, strict=True):
            if self.nodes.array[node, place_of_child] == NO_NODE:
                self.nodes.array[node, place_of_byte], self.nodes.array[node, place_of_child] = byte, child
                return

    def _new(self, text: bytes) -> int:
        self._texts.append(text)
        self.children.add(np.zeros((1, 256), np.int32))
        self.ends.add(np.zeros((1, 3), np.int32))
        node = self.nodes.add(np.zeros((1, _FIELDS), np.int32))
        self._write(node, text)
        return node

    def _write(self, node: int, text: bytes) -> None:
        self._texts[node] = text
        chunks = np.zeros((max(-(-len(text) // CHUNK), 1), CHUNK), np.uint8)
        chunks.reshape(-1)[: len(text)] = np.frombuffer(text, np.uint8)
        self.nodes.array[node, [LENGTH, LABEL]] = len(text), self.labels.add(chunks)


def _common(one: bytes, other: bytes) -> int:
    """Return how many bytes two texts begin with alike."""
    count = min(len(one), len(other))
    return next((place for place in range(count) if one[place] != other[place]), count)
