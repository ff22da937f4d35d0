"""How topics are made: ``topic.creation.*``, with the names and the meaning that they have in Kafka Connect.

KIP-158 describes them: https://cwiki.apache.org/confluence/display/KAFKA/KIP-158
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from floodmark.config.java_patterns import java_pattern
from floodmark.config.model import matches, split_list
from floodmark.config.patterns import Pattern, PatternError

TOPIC_CREATION = "topic.creation."
DEFAULT = "default"
_ENABLE, _GROUPS, _INCLUDE, _EXCLUDE = "enable", "groups", "include", "exclude"
_PARTITIONS, _REPLICATION = "partitions", "replication.factor"
_BROKERS_DEFAULT = -1
_MOST = {_PARTITIONS: (1 << 31) - 1, _REPLICATION: (1 << 15) - 1}
"""What the protocol's fields hold."""
_TRUTH = {"true": True, "false": False}


@dataclass(frozen=True)
class TopicSettings:
    """What a topic gets when it is made.

    Attributes:
        partitions: how many; -1: as many as the brokers' default.
        replication: of how many brokers each has a copy; -1: the brokers' default.
        config: the topic's configuration, by Kafka's names.
    """

    partitions: int
    replication: int
    config: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        numbers = [f"{_PARTITIONS}={self.partitions}", f"{_REPLICATION}={self.replication}"]
        return ", ".join([*numbers, *(f"{name}={value}" for name, value in self.config)])


@dataclass(frozen=True)
class TopicGroup:
    """Topics with the same settings.

    Attributes:
        name: the group's.
        include: what the topics' names match.
        exclude: what the names of others match, though they match ``include``.
        settings: what they get.
    """

    name: str
    include: tuple[Pattern, ...]
    exclude: tuple[Pattern, ...]
    settings: TopicSettings

    def has(self, topic: str) -> bool:
        """Return whether a topic is of the group."""
        return matches(self.include, topic) and not matches(self.exclude, topic)


@dataclass(frozen=True)
class TopicRules:
    """Which topics are made, and how.

    Attributes:
        groups: in the order of ``topic.creation.groups``: a topic is of the first that has it.
        default: what the others get.
    """

    groups: tuple[TopicGroup, ...]
    default: TopicSettings

    def settings(self, topic: str) -> TopicSettings:
        """Return what a topic gets."""
        return next((group.settings for group in self.groups if group.has(topic)), self.default)


def topic_rules(given: Mapping[str, str]) -> TopicRules | None:
    """Return how topics are made; None if they aren't: by ``enable=false``, or as nothing says how.

    Args:
        given: the options ``topic.creation.*``, by the rest of their names.

    Raises:
        ValueError: an option is wrong; the message names it, its value and what is allowed.
    """
    enabled = _enabled(given.get(_ENABLE, "true"))
    names = _group_names(given.get(_GROUPS, ""))
    settings: dict[str, dict[str, str]] = {name: {} for name in (*names, DEFAULT)}
    for option, value in given.items():
        if option not in (_ENABLE, _GROUPS):
            group = _group_of(option, settings)
            settings[group][option[len(group) + 1 :]] = value
    if not names and not settings[DEFAULT]:
        return None
    default = _default(settings[DEFAULT])
    groups = tuple(_group(name, settings[name], default) for name in names)
    return TopicRules(groups, default) if enabled else None


def _enabled(value: str) -> bool:
    if value.lower() not in _TRUTH:
        raise ValueError(f"Option '{TOPIC_CREATION}{_ENABLE}' is '{value}', but it must be true or false.")
    return _TRUTH[value.lower()]


def _group_names(value: str) -> list[str]:
    names = split_list(value)
    option = f"Option '{TOPIC_CREATION}{_GROUPS}' is '{value}', but"
    if DEFAULT in names:
        raise ValueError(f"{option} the group '{DEFAULT}' is always there: leave it out.")
    if len(set(names)) < len(names):
        raise ValueError(f"{option} each group must be named once.")
    return names


def _group_of(option: str, groups: Mapping[str, object]) -> str:
    """Return the group of an option; names of groups may have dots."""
    found = [name for name in groups if option.startswith(f"{name}.") and len(option) > len(name) + 1]
    if not found:
        raise ValueError(
            f"Option '{TOPIC_CREATION}{option}' is of no group: write {TOPIC_CREATION}{DEFAULT}.<setting>, or name its "
            f"group in {TOPIC_CREATION}{_GROUPS}."
        )
    return max(found, key=len)


def _default(given: Mapping[str, str]) -> TopicSettings:
    for name in (_PARTITIONS, _REPLICATION):
        if name not in given:
            raise ValueError(
                f"Option '{TOPIC_CREATION}{DEFAULT}.{name}' is required where topics are made: give a number, or -1 "
                "for the brokers' default."
            )
    for name in (_INCLUDE, _EXCLUDE):
        if name in given:
            raise ValueError(
                f"Option '{TOPIC_CREATION}{DEFAULT}.{name}' is not allowed: the group '{DEFAULT}' has all topics that "
                "no other group has."
            )
    return _settings(DEFAULT, given, None)


def _group(name: str, given: Mapping[str, str], default: TopicSettings) -> TopicGroup:
    include = _patterns(name, _INCLUDE, given)
    if not include:
        raise ValueError(
            f"Option '{TOPIC_CREATION}{name}.{_INCLUDE}' is required: give regular expressions that match the names of "
            "the group's topics."
        )
    return TopicGroup(name, include, _patterns(name, _EXCLUDE, given), _settings(name, given, default))


def _settings(group: str, given: Mapping[str, str], default: TopicSettings | None) -> TopicSettings:
    own = (_INCLUDE, _EXCLUDE, _PARTITIONS, _REPLICATION)
    return TopicSettings(
        _number(group, _PARTITIONS, given, default.partitions if default else _BROKERS_DEFAULT),
        _number(group, _REPLICATION, given, default.replication if default else _BROKERS_DEFAULT),
        tuple((name, value) for name, value in given.items() if name not in own),
    )


def _number(group: str, name: str, given: Mapping[str, str], default: int) -> int:
    text = given.get(name)
    if text is None:
        return default
    most = _MOST[name]
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number != _BROKERS_DEFAULT and not 1 <= number <= most:
        raise ValueError(
            f"Option '{TOPIC_CREATION}{group}.{name}' is '{text}', but it must be a whole number, 1 to {most}, or -1 "
            "for the brokers' default."
        )
    return number


def _patterns(group: str, name: str, given: Mapping[str, str]) -> tuple[Pattern, ...]:
    found: Sequence[str] = split_list(given.get(name, ""))
    try:
        return tuple(map(java_pattern, found))
    except PatternError as error:
        raise ValueError(
            f"Option '{TOPIC_CREATION}{group}.{name}' is '{given[name]}', which has no regular expression that can be "
            f"used: {error}."
        ) from None
