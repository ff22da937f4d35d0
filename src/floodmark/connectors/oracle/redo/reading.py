"""Where statements of a block are being read, and what of them is known so far."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from floodmark.codecs.arrays import offsets_of
from floodmark.connectors.oracle.redo import kernels
from floodmark.connectors.oracle.redo.steps import NONE, STOPS, Steps
from floodmark.connectors.oracle.redo.values import WORD, with_word

Numbers = NDArray[np.int64]

_LINE = 64
"""How many bytes the processor's cache keeps together."""
_GAP_WITH_NAMES = re.compile(rb"""(?:[^'"]|"[^"]*(?:"|\Z))*""")
"""A gap, in whose names quotes may stand."""
_CLOSED_LITERALS = re.compile(rb"""(?:[^'"]|"[^"]*(?:"|\Z)|'(?:[^']|'')*+')*+""")
"""A statement whose literals all have an end."""


class Buffers:
    """The texts of all slots, while statements are read.

    Args:
        room: shape (slots,): how many bytes are expected of each.

    Attributes:
        outs: shape (slots,): the addresses at which they go on.
        limits: the same: those after which there is no room for more.
    """

    def __init__(self, room: Numbers) -> None:
        ends = np.cumsum(room + WORD)
        shared = np.empty(int(ends[-1]) if len(ends) else 0, np.uint8)
        bounds = zip((ends - room - WORD).tolist(), ends.tolist(), strict=True)
        self._data = [shared[begin:end] for begin, end in bounds]
        self._begins = shared.ctypes.data + ends - room - WORD
        self.outs = self._begins.copy()
        self.limits = self._begins + room

    @property
    def sizes(self) -> Numbers:
        """How many bytes each slot has, shape (slots,)."""
        return self.outs - self._begins

    def grow(self, slot: int, more: int) -> None:
        """Make room for so many bytes more in a slot, and at least for as much again."""
        size = int(self.sizes[slot])
        room = 2 * size + more
        data = np.empty(room + WORD, np.uint8)
        data[:size] = self._data[slot][:size]
        self._data[slot], self._begins[slot] = data, data.ctypes.data
        self.outs[slot], self.limits[slot] = self._begins[slot] + size, self._begins[slot] + room

    def data(self) -> list[NDArray[np.uint8]]:
        """Return the text of each slot."""
        return [data[:size] for data, size in zip(self._data, self.sizes.tolist(), strict=True)]


class Reading:
    """Reads statements until something is in the way.

    Args:
        statements: the block, which isn't empty.
        room: shape (slots,): how many bytes of text are expected of each slot.

    Attributes:
        forms: shape (slots, at least so many as statements): see ``Statements``.
        lengths: the same.
        buffers: the texts.
    """

    def __init__(self, statements: pa.StringArray, room: Numbers) -> None:
        self._text = with_word(statements.buffers()[2] or pa.py_buffer(b""))
        self._bounds = offsets_of(statements).view()
        self._bounds.flags.writeable = False
        # A row that takes a power of two bytes would share few lines of the cache with all others.
        width = (-(-len(statements) // _LINE) | 1) * _LINE
        self.forms = np.zeros((len(room), width), np.uint8)
        self.lengths = np.zeros((len(room), width), np.int32)
        self.buffers = Buffers(room)
        self._place = np.zeros(kernels.PLACE, np.int64)
        self._place[kernels.AT] = NONE

    @property
    def row(self) -> int:
        """The number of the statement that is read."""
        return int(self._place[kernels.ROW])

    def go_on(self, steps: Steps, stop: int) -> int:
        """Read statements, and return why it stops (``kernels.READ`` …).

        Args:
            steps: by which the statements are read.
            stop: the number of the first one that isn't.
        """
        buffers = self.buffers
        arrays = steps.nodes.array, steps.ends.array, steps.children.array
        labels, masks = steps.labels.array.ctypes.data, kernels.MASKS.ctypes.data
        status: int = kernels.read(
            self._place,
            self._text.address,
            self._text.size,
            self._bounds,
            stop,
            *arrays,
            labels,
            steps.found.array,
            masks,
            self.forms,
            self.lengths,
            buffers.outs,
            buffers.limits,
        )
        return status

    def gap(self, with_names: bool) -> tuple[int, bytes, bool]:
        """Return the gap where reading has stopped: the state before it, its text, and whether it is the last.

        Args:
            with_names: whether names in it may have quotes.
        """
        rest = self._rest(int(self._place[kernels.AT]))
        if with_names:
            found = _GAP_WITH_NAMES.match(rest)
            end = len(rest) if found is None else found.end()
        else:
            end = rest.find(b"'") if b"'" in rest else len(rest)
        return int(self._place[kernels.ROOT]), rest[:end], end == len(rest)

    def _rest(self, at: int) -> bytes:
        """Return the statement from a place in the text on."""
        return bytes(memoryview(self._text)[at : int(self._bounds[self.row + 1])])

    def error(self, steps: Steps) -> str:
        """Return why the statement can't be read."""
        if not _CLOSED_LITERALS.fullmatch(self._rest(int(self._bounds[self.row]))):
            return "A statement of SQL_REDO has a text literal without an end."
        node = int(self._place[kernels.REASON])
        return steps.error(node, not steps.nodes.array[node, STOPS])

    def begin_again(self) -> None:
        """Forget what is known of the statement, which is then read from its beginning on."""
        self.buffers.outs -= self.lengths[:, self.row]
        self.lengths[:, self.row] = 0
        self.forms[:, self.row] = 0
        self._place[kernels.AT] = NONE

    def skip(self) -> None:
        """Go on with the next statement, without any value of this one."""
        self.begin_again()
        self._place[kernels.ROW] += 1

    def grow(self) -> None:
        """Make room in the slot for which there is none, and read the statement again."""
        self.begin_again()
        begin, end = self._bounds[self.row : self.row + 2].tolist()
        self.buffers.grow(int(self._place[kernels.REASON]), end - begin)
