"""Every message of ``docs/mistakes.md`` is what is said, and says what a user needs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support import mistakes

PAGE = Path(__file__).parents[2] / "docs" / "mistakes.md"
LEAST = 100
INTERNAL = re.compile(
    r"pydantic|Value error|[Ii]nput should|Traceback|\bNone\b(?! has| is)|<class|object at|/tmp|SecretStr"
)


@pytest.fixture(scope="module")
def found() -> list[tuple[str, str]]:
    return [row for _, rows in mistakes.messages() for row in rows]


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text(encoding="utf-8") == mistakes.render(), (
        "run python -m tests.support.mistakes docs/mistakes.md"
    )


def test_there_are_many(found: list[tuple[str, str]]) -> None:
    assert len(found) >= LEAST
    assert len(set(found)) == len(found)


def test_messages_are_whole_sentences_of_ours(found: list[tuple[str, str]]) -> None:
    for written, message in found:
        assert message[0].isupper() or message.startswith(("topic.prefix", "spark.jars")), message
        assert message.endswith((".", "?")) or "pip install" in message, message
        assert INTERNAL.search(message) is None, message
        assert "\n" not in written + message


def test_a_message_names_what_was_written(found: list[tuple[str, str]]) -> None:
    """Options and keys are named in it, so that they can be found in a long file."""
    for written, message in found:
        name = re.match(r"`([\w.]+)[=:]", written)
        if name is not None and not message.startswith(("The checkpoint", "The sink")):
            key = name[1].split(".with.salt")[0]
            known = key in message or key.rsplit(".", 1)[0] in message or key.lower() in message
            assert known or "<" in message or "exclude each other" in message, (written, message)


def test_what_is_no_mistake_is_found() -> None:
    with pytest.raises(AssertionError, match="is no mistake"):
        mistakes.option("slot.name=x").message()
