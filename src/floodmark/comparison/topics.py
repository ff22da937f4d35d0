"""Compares topics that Debezium has written with those that Floodmark has written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from floodmark.comparison.differences import Covered, Difference, Differences, Place, Side, compare, settled
from floodmark.comparison.events import Shown, Texts, shown
from floodmark.comparison.positions import Positions
from floodmark.comparison.records import Reading, Records
from floodmark.debezium.topics import Topic, topics_of
from floodmark.errors import ComparisonError


@dataclass(frozen=True)
class Comparison:
    """What a comparison has found.

    Attributes:
        topics: by what the topics' names have in place of the ``*``; empty where there is none.
        only: topics that one side has alone.
        covered: the part of the log that was compared.
        examples: the first differences of each topic, with what they say.
    """

    topics: Mapping[str, Differences]
    only: Mapping[Side, Sequence[str]]
    covered: Covered
    examples: Mapping[str, list[Shown]] = field(default_factory=dict)

    @property
    def compared(self) -> int:
        """How many changes were compared."""
        return sum(one.compared for one in self.topics.values())

    @property
    def equal(self) -> bool:
        """Whether all that was compared is equal."""
        return not any(self.only.values()) and all(one.equal for one in self.topics.values())


def compare_topics(theirs: str, ours: str, settings: Mapping[str, str], limit: int = 20) -> Comparison:
    """Compare what both have written of the changes that both cover.

    Args:
        theirs: Debezium's topics: ``kafka://<brokers>/<topic>``, whose last character may be a ``*`` for all topics
            whose names begin so.
        ours: Floodmark's.
        settings: further ones of the clients, by librdkafka's names.
        limit: how many differences of a topic are returned, at most.

    Raises:
        ComparisonError: there are no events, or none that can be compared.
        ConfigError: a URI has another form.
        ConnectError: brokers can't be reached.
        OffsetError: a topic isn't there.
    """
    uris: Mapping[Side, str] = {"theirs": theirs, "ours": ours}
    names = {side: topics_of(uri, settings) for side, uri in uris.items()}
    if any(uri.endswith("*") for uri in uris.values()) and not all(uri.endswith("*") for uri in uris.values()):
        raise ComparisonError(
            "One side is several topics, the other is one.", "Write a * at the end of both, or of neither."
        )
    both = sorted(names["theirs"].keys() & names["ours"].keys())
    if not both:
        raise ComparisonError(
            f"No topic of {theirs} has the same rest of its name as one of {ours}.",
            "Write the topics' prefix before the *, with the dot behind it.",
        )
    read = {side: {name: _Topic(some[name], settings) for name in both} for side, some in names.items()}
    _prove_events(read)
    left, right = settled(*([read[side][name].records for name in both] for side in ("theirs", "ours")))
    covered = Covered.of(left, right)
    found = {name: compare(one, other, covered, limit) for name, one, other in zip(both, left, right, strict=True)}
    examples = {name: _examples({side: read[side][name] for side in read}, one.found) for name, one in found.items()}
    only = {side: sorted(some.keys() - set(both)) for side, some in names.items()}
    return Comparison(found, only, covered, examples)


class _Topic:
    """A topic's records, read once."""

    def __init__(self, uri: str, settings: Mapping[str, str]) -> None:
        self._topic = Topic(uri, settings)
        reading = Reading(uri.rpartition("/")[2])
        parts = []
        for messages in self._topic.batches():
            keys, values = ([getattr(one, name)() for one in messages] for name in ("key", "value"))
            partition, offset = ([getattr(one, name)() for one in messages] for name in ("partition", "offset"))
            columns = pa.array(keys, pa.binary()), pa.array(values, pa.binary())
            parts.append(reading.read(*columns, np.array(partition, np.int32), np.array(offset, np.int64)))
        self.records = Records.concat(parts) if parts else reading.none()
        self.positions: Positions | None = reading.positions
        self.connector = reading.connector

    def texts(self, places: Sequence[Place]) -> dict[Place, Texts]:
        """Return keys and values of records; those that are gone are left out."""
        found: dict[Place, Texts] = {}
        for messages in self._topic.batches(places) if places else ():
            for one in messages:
                found[one.partition() or 0, one.offset() or 0] = _text(one.key()), _text(one.value())
        return found


def _text(content: str | bytes | None) -> str | None:
    return content.decode() if isinstance(content, bytes) else content


def _prove_events(read: Mapping[Side, Mapping[str, _Topic]]) -> None:
    """Raise an error unless both sides have events of one connector."""
    connectors = {side: {one.connector for one in some.values()} - {""} for side, some in read.items()}
    for side, found in connectors.items():
        if not found:
            whose = "Debezium's" if side == "theirs" else "Floodmark's"
            raise ComparisonError(
                f"{whose} topics have no events with a source block: there is nothing that tells where they were in "
                "the log.",
                "Compare what is written without transforms that take rows out of their envelopes.",
            )
    if len(set.union(*connectors.values())) > 1:
        named = " and ".join(sorted(set.union(*connectors.values())))
        raise ComparisonError(f"The events are of different connectors: {named}.", "Compare those of one database.")


def _examples(topics: Mapping[Side, _Topic], found: Sequence[Difference]) -> list[Shown]:
    positions = next(one.positions for one in topics.values() if one.positions is not None) if found else None
    if positions is None:
        return []
    read = {
        side: topic.texts([one.places[side] for one in found if side in one.places]) for side, topic in topics.items()
    }
    gone: Texts = (None, None)
    return [
        shown(one, {side: read[side].get(place, gone) for side, place in one.places.items()}, positions)
        for one in found
    ]
