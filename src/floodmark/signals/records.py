"""Signals: requests to a running capture, with Debezium's types and fields.

A signal is three texts, whichever channel delivers it. ``parse_signal`` turns it into an action. A snapshot that was
requested can be converted to JSON data and back, since the offset stores those that have not begun.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, Self

from floodmark.config.patterns import Pattern, PatternError
from floodmark.config.table_names import SCHEMA_AND_TABLE, TableNames
from floodmark.connectors.contract.captured_table import CapturedTable
from floodmark.errors import SignalError
from floodmark.json_data import Json, damaged_checkpoint, stored_object
from floodmark.logger import get_logger
from floodmark.packing import pack_names, unpack_names

log = get_logger(__name__)

WINDOW_OPEN = "snapshot-window-open"
WINDOW_CLOSE = "snapshot-window-close"
EVERYTHING = ".*"
INCREMENTAL = "incremental"
BLOCKING = "blocking"
SHOWN = 80
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
MOST_CHARACTERS = 1 << 20
"""How long a signal's data may be."""
MOST_NAME_CHARACTERS = 1000
"""How long its id and type may be: the id comes back in notifications and in offsets."""
MOST_PATTERNS = 10_000
MOST_LOGGED = 20
TABLES = "data-collections"
MESSAGE_CURE = 'Give an object, such as {"message": "at {}"}.'
DATA_CURE = 'Give an object, such as {"data-collections": ["public\\\\.orders"]}.'
SIGNAL_CURE = 'Write {"id": "…", "type": "…", "data": {…}} on one line.'


@dataclass(frozen=True)
class Signal:
    """One signal as a channel delivers it.

    Attributes:
        id: names the signal; its snapshot's notifications carry it.
        type: what is requested, such as ``execute-snapshot``.
        data: a JSON object as text; may be empty.
        place: what distinguishes it from every other signal of its channel, if the id doesn't.
        millis: when it was sent, as far as its channel knows, milliseconds since the epoch.
    """

    id: str
    type: str
    data: str = ""
    place: str = ""
    millis: int = 0

    @property
    def receipt(self) -> str:
        """The text by which an offset remembers the signal."""
        return self.place or self.id

    def to_json(self) -> dict[str, str]:
        """Return the signal as JSON data."""
        return {"id": self.id, "type": self.type, "data": self.data}

    @classmethod
    def from_json(cls, content: Mapping[str, str]) -> Self:
        """Return the signal that ``to_json``, or a row of the signal table, described; ``millis`` is optional."""
        return cls(content["id"], content["type"], content["data"], millis=int(content.get("millis") or 0))


def in_order_of_time(channels: Iterable[Sequence[Signal]]) -> list[Signal]:
    """Return the signals that channels delivered, in the order in which they were sent.

    Args:
        channels: the signals of each channel, whose order is kept.
    """
    timed = []
    for signals in channels:
        # A time that goes back within a channel is raised, so that sorting keeps the channel's order.
        latest = 0
        for signal in signals:
            latest = max(latest, signal.millis)
            timed.append((latest, signal))
    return [signal for _, signal in sorted(timed, key=lambda one: one[0])]


@dataclass(frozen=True)
class Condition:
    """Limits the tables that a pattern matches to the rows that satisfy a SQL predicate."""

    tables: str
    filter: str


@dataclass(frozen=True)
class ExecuteSnapshot:
    """Take a snapshot of some tables.

    Attributes:
        tables: regular expressions of the names, as ``schema.table``.
        blocking: whether streaming waits for it.
        conditions: the first that matches a table counts.
        surrogate_key: the column to cut the tables by, instead of their key.
        owed: whether the tables are new, so that only this snapshot delivers their rows.
    """

    TYPE: ClassVar[str] = "execute-snapshot"

    id: str
    tables: tuple[str, ...]
    blocking: bool = False
    conditions: tuple[Condition, ...] = ()
    surrogate_key: str | None = None
    owed: bool = False

    def filter_of(self, table: str, names: TableNames = SCHEMA_AND_TABLE) -> str | None:
        """Return the predicate for a table's rows, if it has one.

        Args:
            table: its name.
            names: how users may write it.

        Raises:
            SignalError: an earlier version accepted a regular expression that can't be used.
        """
        for condition in self.conditions:
            try:
                pattern = Pattern(condition.tables, ignore_case=True)
            except PatternError as exc:
                raise SignalError(f"Signal '{self.id}': '{condition.tables}' can't be matched: {exc}.") from None
            if any(map(pattern.fullmatch, names.of(table))):
                return condition.filter
        return None

    def to_json(self) -> dict[str, Json]:
        """Return the action as JSON data."""
        return {
            "type": self.TYPE,
            "id": self.id,
            "tables": pack_names(self.tables),
            "blocking": self.blocking,
            "conditions": [[condition.tables, condition.filter] for condition in self.conditions],
            "surrogate_key": self.surrogate_key,
            "owed": self.owed,
        }

    @classmethod
    def from_json(cls, content: Json) -> Self:
        """Return the action that ``to_json`` described.

        Raises:
            CheckpointError: it described something else.
        """
        action = stored_object(content, "A requested snapshot")
        return cls(
            action.text("id"),
            unpack_names(action.value("tables")),
            action.flag("blocking"),
            tuple(map(_stored_condition, action.items("conditions"))),
            action.optional_text("surrogate_key"),
            action.flag("owed", False),
        )


def _stored_condition(content: Json) -> Condition:
    match content:
        case [str(tables), str(text)]:
            return Condition(tables, text)
    raise damaged_checkpoint("the condition of a requested snapshot is not two texts")


@dataclass(frozen=True)
class StopSnapshot:
    """Stop the running incremental snapshot, or take some tables out of it.

    Attributes:
        tables: regular expressions of their names; empty: all.
    """

    TYPE: ClassVar[str] = "stop-snapshot"

    id: str
    tables: tuple[str, ...] = ()


@dataclass(frozen=True)
class _WithoutData:
    """An action that has nothing but a type and an id."""

    TYPE: ClassVar[str]

    id: str


@dataclass(frozen=True)
class PauseSnapshot(_WithoutData):
    """Pause the running incremental snapshot."""

    TYPE: ClassVar[str] = "pause-snapshot"


@dataclass(frozen=True)
class ResumeSnapshot(_WithoutData):
    """Go on with the paused incremental snapshot."""

    TYPE: ClassVar[str] = "resume-snapshot"


@dataclass(frozen=True)
class WindowOpened(_WithoutData):
    """The watermark that Debezium writes before it reads a chunk."""

    TYPE: ClassVar[str] = WINDOW_OPEN


@dataclass(frozen=True)
class WindowClosed(_WithoutData):
    """The watermark that Debezium writes after it has read a chunk."""

    TYPE: ClassVar[str] = WINDOW_CLOSE


@dataclass(frozen=True)
class LogMessage:
    """Write a line to the log."""

    TYPE: ClassVar[str] = "log"

    id: str
    message: str

    def text(self, offset: object) -> str:
        """Return the line: the first ``{}`` in the message is replaced by the offset."""
        return self.message.replace("{}", str(offset), 1)


Action = ExecuteSnapshot | StopSnapshot | PauseSnapshot | ResumeSnapshot | WindowOpened | WindowClosed | LogMessage

_ACTIONS: dict[str, type[Action]] = {
    action.TYPE: action
    for action in (
        ExecuteSnapshot,
        StopSnapshot,
        PauseSnapshot,
        ResumeSnapshot,
        LogMessage,
        WindowOpened,
        WindowClosed,
    )
}
TYPES = tuple(name for name in _ACTIONS if name not in (WINDOW_OPEN, WINDOW_CLOSE))
"""The types that users send."""


def expand(patterns: Sequence[str], tables: Iterable[str], names: TableNames = SCHEMA_AND_TABLE) -> list[str]:
    """Return the tables that patterns match, as Debezium lists them.

    They are in the order of the patterns, each once. A pattern that matches none is returned itself, as the name of
    an unknown table, which is reported instead of being ignored.

    Args:
        patterns: regular expressions of names.
        tables: the names of the tables.
        names: how users may write them.
    """
    known = {written: table for table in tables for written in names.of(table)}
    found: dict[str, None] = {}
    for pattern in patterns:
        found.update(dict.fromkeys(_matching(pattern, known) or [pattern]))
    return list(found)


def _matching(text: str, tables: Mapping[str, str]) -> list[str]:
    """Return the tables that match; none for a pattern that can't be used, which an earlier version accepted.

    Args:
        text: the pattern.
        tables: names, by the texts that may stand for them.
    """
    try:
        pattern = Pattern(text)
    except PatternError:
        return []
    if pattern.literal is not None:
        # New tables are requested by their names, of which there may be ten thousand.
        return [tables[pattern.literal]] if pattern.literal in tables else []
    return [table for written, table in tables.items() if pattern.fullmatch(written)]


def asked_tables(
    action: ExecuteSnapshot, tables: Sequence[CapturedTable], names: TableNames = SCHEMA_AND_TABLE
) -> dict[str, list[CapturedTable]]:
    """Return the tables of a requested snapshot, by the names that their events have, in the order of the patterns.

    An unknown name is logged, and returned without tables. A condition for none of the tables is logged.

    Args:
        action: the request.
        tables: all captured tables.
        names: how users may write them.
    """
    published: dict[str, list[CapturedTable]] = {}
    for table in tables:
        published.setdefault(table.published, []).append(table)
    asked = {name: published.get(name, []) for name in expand(action.tables, sorted(published), names)}
    report_unknown(action.id, [name for name, found in asked.items() if not found], names)
    known = [name for name, found in asked.items() if found]
    useless = [one.tables for one in action.conditions if known and expand([one.tables], known, names) == [one.tables]]
    report_unknown(action.id, [text for text in useless if text not in known], names, "signal_condition_has_no_effect")
    return asked


def report_unknown(
    signal: str, patterns: Sequence[str], names: TableNames, event: str = "signal_matches_no_table"
) -> None:
    """Log that patterns of a signal match no table.

    Args:
        signal: its id.
        patterns: the patterns.
        names: how users may write names.
        event: what is logged.
    """
    for text in patterns[:MOST_LOGGED]:
        why = {"reason": names.mistake(text)} if names.mistake(text) else {}
        log.warning(event, signal=signal, table=text[:MOST_NAME_CHARACTERS], **why)
    if len(patterns) > MOST_LOGGED:
        log.warning(event, signal=signal, others=len(patterns) - MOST_LOGGED)


def parse_signal(signal: Signal) -> Action:
    """Return the action that a signal requests.

    Raises:
        SignalError: the type is not known, or the data is not what the type needs.
    """
    _check_size(signal)
    kind = _ACTIONS.get(signal.type)
    if kind is None:
        close = difflib.get_close_matches(signal.type.lower(), TYPES, n=1)
        cure = f"Did you mean '{close[0]}'?" if close else f"Known: {', '.join(TYPES)}."
        raise SignalError(f"Signal '{signal.id}' has the unknown type '{signal.type}'.", cure)
    if issubclass(kind, WindowOpened | WindowClosed):
        return kind(signal.id)
    data = _Data(signal)
    if kind is LogMessage:
        return LogMessage(signal.id, data.required_text("message"))
    if kind is ExecuteSnapshot:
        return _execute(signal.id, data)
    if kind is StopSnapshot:
        if data.snapshot_type() == BLOCKING:
            raise data.wrong("type", "only an incremental snapshot can be stopped")
        return StopSnapshot(signal.id, data.patterns())
    assert issubclass(kind, PauseSnapshot | ResumeSnapshot)
    return kind(signal.id)


def _check_size(signal: Signal) -> None:
    """Refuse texts that are too long for logs, notifications and offsets, and control characters."""
    for field, text, most in (
        ("id", signal.id, MOST_NAME_CHARACTERS),
        ("type", signal.type, MOST_NAME_CHARACTERS),
        ("data", signal.data, MOST_CHARACTERS),
    ):
        if len(text) > most:
            raise SignalError(f"Signal {signal.id[:SHOWN]!r}: the field '{field}' has more than {most} characters.")
    if _CONTROL.search(signal.id + signal.type):
        raise SignalError(
            f"Signal {signal.id[:SHOWN]!r} ({signal.type[:SHOWN]!r}) has control characters in its id or type."
        )


def _execute(name: str, data: _Data) -> ExecuteSnapshot:
    blocking = data.snapshot_type() == BLOCKING
    tables = data.patterns()
    if not tables:
        raise data.wrong(TABLES, "it must be a list of regular expressions of tables, and not empty")
    old = data.text("additional-condition")
    # As in Debezium, the old form wins, and only incremental snapshots have it.
    conditions = (Condition(EVERYTHING, old),) if old and not blocking else data.conditions()
    return ExecuteSnapshot(name, tables, blocking, conditions, data.text("surrogate-key"))


def read_signal(text: str, default_id: str = "") -> Signal:
    """Return the signal that a JSON object ``{"id": …, "type": …, "data": {…}}`` describes.

    Args:
        text: the object.
        default_id: the signal's id if the object has none; empty: it must have one.

    Raises:
        SignalError: the text is no such object.
    """
    where = f"The signal {text[: 10 * SHOWN].strip()[:SHOWN]!r}"
    if len(text) > MOST_CHARACTERS:
        raise SignalError(f"{where} has more than {MOST_CHARACTERS} characters.", SIGNAL_CURE)
    content = _json_object(text, where, SIGNAL_CURE)
    name, kind, data = (content.get(field) for field in ("id", "type", "data"))
    name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    name = default_id if name is None else name
    if not isinstance(name, str) or not isinstance(kind, str) or not (name and kind):
        raise SignalError(f"{where} lacks the texts 'id' and 'type'.", SIGNAL_CURE)
    if not isinstance(data, str):
        try:
            data = "" if data is None else json.dumps(data)
        except RecursionError:
            raise SignalError(f"{where} is nested too deeply.", SIGNAL_CURE) from None
    if not all(map(_is_unicode, (name, kind, data))):
        raise SignalError(f"{where} holds half of a surrogate pair.", SIGNAL_CURE)
    found = Signal(name, kind, data)
    _check_size(found)
    return found


class _Data:
    """Reads the fields of a signal's data."""

    def __init__(self, signal: Signal) -> None:
        self._signal = signal
        where = f"The data of signal '{signal.id}' ({signal.type})"
        cure = MESSAGE_CURE if signal.type == LogMessage.TYPE else DATA_CURE
        self._fields = _json_object(signal.data, where, cure) if signal.data.strip() else {}

    def wrong(self, field: str, reason: str) -> SignalError:
        """Return the error for an invalid field."""
        where = f"Signal '{self._signal.id}' ({self._signal.type})"
        close = [] if field in self._fields else difflib.get_close_matches(field, self._fields, n=1)
        cure = f"Its data has '{close[0]}': write '{field}'." if close else DATA_CURE if field == TABLES else ""
        return SignalError(f"{where}: the field '{field}' is wrong: {reason}.", cure)

    def text(self, field: str) -> str | None:
        """Return a text; None if it is missing or blank."""
        value = self._fields.get(field)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.wrong(field, "it must be a text")
        return self._sound(field, value) if value.strip() else None

    def required_text(self, field: str) -> str:
        """Return a required text."""
        value = self.text(field)
        if value is None:
            raise self.wrong(field, "it must be a text, and not empty")
        return value

    def snapshot_type(self) -> str:
        """Return ``incremental`` or ``blocking``."""
        value = (self.text("type") or INCREMENTAL).lower()
        if value not in (INCREMENTAL, BLOCKING):
            raise self.wrong("type", f"it must be {INCREMENTAL} or {BLOCKING}, not '{value[:SHOWN]}'")
        return value

    def patterns(self) -> tuple[str, ...]:
        """Return the regular expressions of the tables."""
        return tuple(self._pattern(TABLES, item) for item in self._list(TABLES))

    def conditions(self) -> tuple[Condition, ...]:
        """Return the conditions on the tables' rows."""
        field = "additional-conditions"
        found = []
        for item in self._list(field):
            text = item.get("filter") if isinstance(item, dict) else None
            if not isinstance(item, dict) or not isinstance(text, str) or not text.strip():
                raise self.wrong(field, "each must be an object with the texts 'data-collection' and 'filter'")
            found.append(Condition(self._pattern(field, item.get("data-collection")), self._sound(field, text)))
        return tuple(found)

    def _list(self, field: str) -> Sequence[Json]:
        value = self._fields.get(field)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.wrong(field, "it must be a list")
        if len(value) > MOST_PATTERNS:
            raise self.wrong(field, f"it has more than {MOST_PATTERNS} items")
        return value

    def _pattern(self, field: str, value: Json) -> str:
        if not isinstance(value, str) or not value.strip():
            raise self.wrong(field, "a regular expression of tables must be a text, and not empty")
        pattern = self._sound(field, value.strip())
        try:
            Pattern(pattern)
        except PatternError as exc:
            raise self.wrong(field, f"'{pattern}' is not a regular expression that can be used: {exc}") from None
        return pattern

    def _sound(self, field: str, value: str) -> str:
        if not _is_unicode(value):
            raise self.wrong(field, "it holds half of a surrogate pair")
        return value


def _json_object(text: str, where: str, cure: str) -> dict[str, Json]:
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise SignalError(f"{where} is not JSON: {exc}.", cure) from None
    if not isinstance(content, dict):
        raise SignalError(f"{where} is not a JSON object.", cure)
    return content


def _is_unicode(text: str) -> bool:
    """Return whether a text can be encoded; JSON's escapes can produce one that can't."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
