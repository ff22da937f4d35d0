"""What goes through statements byte by byte, as machine code.

numba compiles the functions when the module is imported, which takes seconds, and keeps the code on disk: in
``NUMBA_CACHE_DIR`` if that is set, else beside this file, or in the user's cache. To import numba takes a moment, too,
so this module is imported only where statements are read.

Texts are read where they are, by their address, in *words* of eight bytes whose first byte is the lowest of the number.
Bytes are found in a word by arithmetic (Henry S. Warren, "Hacker's Delight", 6-1). A word may begin at any byte, but it
must not end after the text, which `_word` sees to; what is written has room for a word more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

import numba
import numpy as np
from llvmlite import ir
from numba.extending import intrinsic
from numpy.typing import NDArray

from floodmark.connectors.oracle.redo import steps
from floodmark.connectors.oracle.redo.kinds import CALLS, NEXT_NATIONAL_TEXT, Kind
from floodmark.connectors.oracle.redo.scanner import Form

P = ParamSpec("P")
R = TypeVar("R")

Word = Any
"""A ``np.uint64``: to mixing it with other numbers, machine code would give floating point."""
Number = Any
"""An integer of 64 bits, or an address."""
Numbers = NDArray[np.int64]
Table = NDArray[np.int32]
Bytes = NDArray[np.uint8]

WORD = 8
"""How many bytes a word has."""

# Why reading stops.
READ, UNKNOWN_GAP, UNREADABLE, FULL = range(4)
"""All is read; a gap must be scanned; a statement can't be read; the room for a slot's texts is full."""

# What is kept of a place in a statement.
ROW, ROOT, AT, OPENED, AWAITED, REASON = range(6)
"""The statement; the state; where the gap begins, or `NONE` before the statement; where a value begins that goes on;
the slot of the value that is awaited; what reading stopped at, a node or a slot."""
PLACE = 6

_QUOTE, _PARENTHESIS = ord("'"), ord(")")
_ONE, _THREE, _EIGHT, _TOP, _BYTE, _QUOTE_WORD = (np.uint64(number) for number in (1, 3, 8, 56, 255, _QUOTE))
_ONES, _HIGHS, _QUOTES = (np.uint64(0x0101010101010101 * number) for number in (0x01, 0x80, _QUOTE))
_LITERAL, _EXPRESSION, _NULL = int(Form.LITERAL), int(Form.EXPRESSION), int(Form.NULL)
_NO_KIND, _TEXT, _OTHER = int(Kind.NONE), int(Kind.TEXT), int(Kind.OTHER)
_MORE = _LITERAL - _NULL
_NONE, _NO_NODE, _FAILED, _OF_AWAITED, _START = (
    steps.NONE,
    steps.NO_NODE,
    steps.FAILED,
    steps.OF_AWAITED,
    steps.Steps.START,
)
_CHUNK, _LENGTH, _LABEL, _STOPS = steps.CHUNK, steps.LENGTH, steps.LABEL, steps.STOPS
(_BYTE_1, _BYTE_2), (_CHILD_1, _CHILD_2) = steps.BYTES, steps.CHILDREN
_AFTER, _OPENED, _FOUND, _FOUND_END = steps.AFTER, steps.OPENED, steps.FOUND, steps.FOUND_END
_AWAITED, _HAS_LITERAL, _SLOT = steps.AWAITED, steps.HAS_LITERAL, steps.SLOT

MASKS = np.where(np.arange(_CHUNK) < np.arange(_CHUNK + 1)[:, None], np.uint8(255), np.uint8(0))
"""By length: which bytes of a chunk a text has, as bytes of which all bits are set or none is."""

_CALLS = np.array([list(name.ljust(_CHUNK, b"\0")) for name in CALLS], np.uint8)
_CALL_LENGTHS = np.array([len(name) for name in CALLS])
_CALL_KINDS = np.array(list(CALLS.values()), np.uint8)
_NEXT = np.frombuffer(NEXT_NATIONAL_TEXT, np.uint8)

_types = numba.types
_int = _types.int64


def compiled(signature: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Return what makes machine code of a function.

    Args:
        signature: the types of its arguments and its result.
    """

    def decorate(function: Callable[P, R]) -> Callable[P, R]:
        try:
            found: Callable[P, R] = numba.njit(signature, nogil=True, cache=True)(function)
        except (RuntimeError, OSError):
            # There is no folder to keep it in, or no room there, so each process compiles it.
            found = numba.njit(signature, nogil=True)(function)
        return found

    return decorate


def inlined(function: Callable[P, R]) -> Callable[P, R]:
    """Return a function that becomes a part of those which call it."""
    found: Callable[P, R] = numba.njit(forceinline=True)(function)
    return found


@intrinsic  # type: ignore[untyped-decorator]
def _load(_: object, address: object) -> tuple[object, Callable[..., object]]:
    """Return the word at an address."""
    del address

    def code(_context: object, builder: Any, _signature: object, arguments: Any) -> object:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()), align=1)

    return _types.uint64(_int), code


@intrinsic  # type: ignore[untyped-decorator]
def _store(_: object, address: object, word: object) -> tuple[object, Callable[..., object]]:
    """Write a word to an address."""
    del address, word

    def code(context: Any, builder: Any, _signature: object, arguments: Any) -> object:
        builder.store(arguments[1], builder.inttoptr(arguments[0], ir.IntType(64).as_pointer()), align=1)
        return context.get_dummy_value()

    return _types.void(_int, _types.uint64), code


@intrinsic  # type: ignore[untyped-decorator]
def _byte(_: object, address: object) -> tuple[object, Callable[..., object]]:
    """Return the byte at an address."""
    del address

    def code(_context: object, builder: Any, _signature: object, arguments: Any) -> object:
        return builder.load(builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()), align=1)

    return _types.uint8(_int), code


@intrinsic  # type: ignore[untyped-decorator]
def _same_chunk(_: object, address: object, other: object, mask: object) -> tuple[object, Callable[..., object]]:
    """Return whether two chunks have the same bits where a mask has any."""
    del address, other, mask

    def code(_context: object, builder: Any, _signature: object, arguments: Any) -> object:
        pointer = ir.VectorType(ir.IntType(8), _CHUNK).as_pointer()
        one, two, wanted = (builder.load(builder.inttoptr(each, pointer), align=1) for each in arguments)
        number = ir.IntType(8 * _CHUNK)
        different = builder.bitcast(builder.and_(builder.xor(one, two), wanted), number)
        return builder.icmp_unsigned("==", different, ir.Constant(number, 0))

    return _types.boolean(_int, _int, _int), code


@inlined
def _word(text: Number, size: Number, at: Number) -> Word:
    """Return the word at a byte of a text, with zeros after the text's end."""
    over = at + WORD - size
    if over <= 0:
        return _load(text + at)
    return _load(text + size - WORD) >> (np.uint64(over) << _THREE)


@inlined
def _quotes(word: Word) -> Word:
    """Return a bit for each quote in a word, and perhaps others after the first."""
    others = word ^ _QUOTES
    return (others - _ONES) & ~others & _HIGHS


@inlined
def _first(bits: Word) -> Number:
    """Return the number of the first byte that has a bit; if there is none, that of the last."""
    # A bit for each byte up to that one; their sum is in the highest byte.
    below = (bits ^ (bits - _ONE)) & _ONES
    return np.int64((below * _ONES) >> _TOP) - 1


@inlined
def _quote(text: Number, size: Number, at: Number, end: Number) -> Number:
    """Return where the next quote is from a byte on, or else the end."""
    while at < end:
        bits = _quotes(_word(text, size, at))
        if bits:
            return min(at + _first(bits), end)
        at += WORD
    return end


@inlined
def _closing_quote(text: Number, size: Number, at: Number, end: Number) -> Number:
    """Return where a literal ends whose content begins at a byte; two quotes stand for one in it."""
    at = _quote(text, size, at, end)
    while at + 1 < end and _byte(text + at + 1) == _QUOTE:
        at = _quote(text, size, at + 2, end)
    return at


@inlined
def _is(text: Number, size: Number, at: Number, label: Number, length: Number, masks: Number) -> bool:
    """Return whether a label stands at a byte of a text that isn't shorter."""
    done = 0
    while True:
        rest = min(length - done, _CHUNK)
        if at + done + _CHUNK <= size:
            if not _same_chunk(text + at + done, label + done, masks + rest * _CHUNK):
                return False
        else:
            for place in range(done, done + rest):
                if _byte(text + at + place) != _byte(label + place):
                    return False
        done += _CHUNK
        if done >= length:
            return True


@inlined
def _copy(text: Number, size: Number, begin: Number, end: Number, out: Number) -> Number:
    """Copy bytes, and up to seven more; return where the copy ends."""
    for place in range(0, end - begin, WORD):
        _store(out + place, _word(text, size, begin + place))
    return out + end - begin


@inlined
def _copy_unescaped(text: Number, size: Number, begin: Number, end: Number, out: Number) -> Number:
    """Copy the content of a literal, with one quote for two."""
    while begin < end:
        quote = _quote(text, size, begin, end)
        out = _copy(text, size, begin, min(quote + 1, end), out)
        begin = quote + 2
    return out


_rows = _types.int32[:, ::1]


@compiled(
    _int(
        *(_types.int64[::1], _int, _int, _types.Array(_types.int32, 1, "C", readonly=True), _int),
        *(_rows, _rows, _rows, _int, _rows, _int),
        *(_types.uint8[:, ::1], _rows, _types.int64[::1], _types.int64[::1]),
    )
)
def read(
    place: Numbers,
    text: Number,
    size: Number,
    bounds: Table,
    stop: Number,
    nodes: Table,
    ends: Table,
    children: Table,
    labels: Number,
    found: Table,
    masks: Number,
    forms: Bytes,
    lengths: Table,
    outs: Numbers,
    limits: Numbers,
) -> Number:
    """Read statements, from a place on; return why it stops, with the place.

    Args:
        place: shape (`PLACE`,); `ROW` …
        text: the address of the statements' text.
        size: of the text, in bytes, at least a word.
        bounds: shape (statements + 1,): where each begins in it, and where the last one ends.
        stop: the statement not to read any more.
        nodes: of ``Steps``, as the next four; of the labels the address.
        ends: the same.
        children: the same.
        labels: the same.
        found: the same.
        masks: the address of `MASKS`.
        forms: shape (slots, statements): gets the form of each value.
        lengths: the same: gets how many bytes its text has.
        outs: shape (slots,): the addresses at which the texts go on.
        limits: the same: those after which there is no room for more.
    """
    row, root = np.uint64(place[ROW]), np.uint64(place[ROOT])
    at, opened, awaited = place[AT], place[OPENED], place[AWAITED]
    status, reason = READ, np.int64(0)
    while row < np.uint64(stop):
        last = np.int64(bounds[row + _ONE])
        if at < 0:
            at, root = np.int64(bounds[row]), np.uint64(_START)
        # The gap.
        node, after, is_end = root, at, False
        while node != np.uint64(_NO_NODE):
            length = np.int64(nodes[node, _LENGTH])
            label = labels + _CHUNK * np.int64(nodes[node, _LABEL])
            if after + length > last or not _is(text, size, after, label, length, masks):
                node = np.uint64(_NO_NODE)
                break
            after += length
            if nodes[node, _STOPS]:
                break
            if after == last:
                is_end = True
                break
            byte = np.int32(_byte(text + after))
            # Most have two at most, and which is next can't be foreseen, so nothing branches.
            child = nodes[node, _CHILD_1] * np.int32(byte == nodes[node, _BYTE_1])
            child |= nodes[node, _CHILD_2] * np.int32(byte == nodes[node, _BYTE_2])
            node = np.uint64(child) if child != _NO_NODE else np.uint64(children[node, np.uint64(byte)])
        if is_end:
            known, first, past = ends[node, 0], ends[node, 1], ends[node, 2]
        else:
            known, first, past = nodes[node, _AFTER], nodes[node, _FOUND], nodes[node, _FOUND_END]
        if known == _NO_NODE:
            status = UNKNOWN_GAP
            break
        if known == _FAILED:
            status, reason = UNREADABLE, np.int64(node)
            break
        # The values that end in it.
        for number in range(np.uint64(first), np.uint64(past)):
            slot, form = np.int64(found[number, 0]), np.uint8(found[number, 1])
            slot = awaited if slot == _OF_AWAITED else slot
            if slot < 0:
                continue
            # A column that stands twice has its last value.
            outs[slot] -= lengths[slot, row]
            lengths[slot, row] = 0
            forms[slot, row] = form
            if form >= _LITERAL:
                begin = opened if found[number, 2] < 0 else at + found[number, 2]
                end = at + found[number, 3]
                if outs[slot] + end - begin > limits[slot]:
                    status, reason = FULL, slot
                    break
                _copy(text, size, begin, end, outs[slot])
                lengths[slot, row] = end - begin
                outs[slot] += end - begin
        if status == FULL:
            break
        if is_end:
            row, at = row + _ONE, np.int64(_NONE)
            continue
        if nodes[node, _OPENED] >= 0:
            opened = at + nodes[node, _OPENED]
        root = np.uint64(known)
        if nodes[node, _AWAITED] != _OF_AWAITED:
            awaited = np.int64(nodes[node, _AWAITED])
        # The literal, or the null before what is next. As it can't be foreseen which, short ones don't branch.
        literal, slot = np.int64(nodes[node, _HAS_LITERAL]), np.int64(nodes[node, _SLOT])
        word = _word(text, size, after)
        count = _first(_quotes(word))
        following = (word >> ((np.uint64(count) << _THREE) + _EIGHT)) & _BYTE
        is_long = np.int64(count >= WORD - 1) + np.int64(after + count >= last)
        if literal * (is_long + np.int64(following == _QUOTE_WORD)):
            end = _closing_quote(text, size, after, last)
            if end >= last:
                status = UNREADABLE
                break
            at = end + 1
            if slot < 0:
                continue
            outs[slot] -= lengths[slot, row]
            lengths[slot, row] = 0
            forms[slot, row] = _LITERAL
            if outs[slot] + end - after > limits[slot]:
                status, reason = FULL, slot
                break
            if _quote(text, size, after, end) < end:
                out = _copy_unescaped(text, size, after, end, outs[slot])
            else:
                out = _copy(text, size, after, end, outs[slot])
            lengths[slot, row] = out - outs[slot]
            outs[slot] = out
            continue
        count *= literal
        at = after + count + literal
        if slot < 0:
            continue
        out = outs[slot] - lengths[slot, row]
        lengths[slot, row] = 0
        forms[slot, row] = _NULL + _MORE * literal
        if out + count > limits[slot]:
            outs[slot] = out
            status, reason = FULL, slot
            break
        _store(out, word)
        lengths[slot, row] = count
        outs[slot] = out + count
    place[ROW], place[ROOT], place[AT] = np.int64(row), np.int64(root), at
    place[OPENED], place[AWAITED], place[REASON] = opened, awaited, reason
    return status


@inlined
def _stands(text: Number, at: Number, end: Number, wanted: Bytes) -> bool:
    """Return whether bytes stand in a text that ends somewhere."""
    if at + len(wanted) > end:
        return False
    same = True
    for number in range(len(wanted)):
        same &= _byte(text + at + number) == wanted[number]
    return same


@inlined
def _kind(text: Number, begin: Number, end: Number) -> Number:
    """Return the kind of a call, of which there is what stands up to the first quote."""
    for number in range(len(_CALLS)):
        if _CALL_LENGTHS[number] == end - begin and _stands(text, begin, end, _CALLS[number, : end - begin]):
            return np.int64(_CALL_KINDS[number])
    return np.int64(_OTHER)


@inlined
def _has_odd_quotes(text: Number, size: Number, at: Number, end: Number) -> bool:
    odd = False
    at = _quote(text, size, at, end)
    while at < end:
        odd = not odd
        at = _quote(text, size, at + 1, end)
    return odd


@inlined
def _copy_national(text: Number, size: Number, quote: Number, end: Number, out: Number) -> Number:
    """Copy what all literals of ``UNISTR('…') || UNISTR('…')`` say; return 0 if there is anything else.

    Args:
        text: the address of the text.
        size: of it.
        quote: where the first literal begins.
        end: of the calls.
        out: the address to copy to.
    """
    while True:
        closing = _closing_quote(text, size, quote + 1, end)
        out = _copy_unescaped(text, size, quote + 1, closing, out)
        if closing + 2 == end and _byte(text + closing + 1) == _PARENTHESIS:
            return out
        if not _stands(text, closing, end, _NEXT):
            return 0
        quote = closing + len(_NEXT) - 1


@compiled(_types.void(_int, _int, _types.int32[::1], _types.uint8[::1], _types.uint8[::1], _types.int32[::1], _int))
def contents(
    text: Number, size: Number, offsets: Table, forms: Bytes, kinds: Bytes, new_offsets: Table, out: Number
) -> None:
    """Write the contents of a column's values one after the other.

    Args:
        text: the address of the text of all values.
        size: of it, in bytes, at least a word.
        offsets: shape (values + 1,): where each begins in it, and where the last one ends.
        forms: shape (values,): of each.
        kinds: the same: gets what its content is (`Kind`).
        new_offsets: the same as the offsets, for what is written.
        out: the address to write to.
    """
    at = out
    for row in range(len(forms)):
        begin, end, kind = np.int64(offsets[row]), np.int64(offsets[row + 1]), np.int64(_NO_KIND)
        if forms[row] == _LITERAL:
            kind = np.int64(_TEXT)
        elif forms[row] == _EXPRESSION:
            quote = _quote(text, size, begin, end)
            kind = _kind(text, begin, min(quote + 1, end))
            if kind == _OTHER or _has_odd_quotes(text, size, quote, end):
                kind = np.int64(_OTHER)
            elif kind == _TEXT:
                after = _copy_national(text, size, quote, end, at)
                if after:
                    at, begin = after, end
                else:
                    kind = np.int64(_OTHER)
            elif quote < end:
                begin, end = quote + 1, _closing_quote(text, size, quote + 1, end)
        kinds[row] = kind
        at = _copy(text, size, begin, end, at)
        new_offsets[row + 1] = at - out
