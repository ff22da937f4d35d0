"""Where the connector keeps its offsets and its schema history: the command that takes them over."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from floodmark.cli.convert.draft import Draft

KAFKA = "kafka://"
_FILE_STORE = "org.apache.kafka.connect.storage.FileOffsetBackingStore"
_SECURITY = ("security.", "sasl.", "ssl.")
_HISTORY = "schema.history.internal"
_FORMER_HISTORY = "database.history"
_NOT_READ = "Offsets in {} can't be read: docs/from-debezium.md, 'Without the offset', says what to do."


def import_command(
    draft: Draft,
    pipeline: str,
    properties: Mapping[str, str],
    name: str | None,
    worker: Mapping[str, str] | None,
    worker_path: Path | None,
) -> str | None:
    """Return the command that lets the pipeline go on from a connector's offset; None, with a note, if there is none.

    Args:
        draft: the pipeline file.
        pipeline: its path.
        properties: the connector's; Debezium Server's include those of its store.
        name: the connector's name in Kafka Connect; None: Debezium Server runs it.
        worker: the worker's properties; None: they aren't known, or there is no worker.
        worker_path: the file that they come from.
    """
    if draft.spec.name == "oracle":
        draft.notes.append("Positions of Oracle can't be taken over: docs/from-debezium.md, 'Without the offset'.")
        return None
    offsets = _offsets(draft, properties, name, worker)
    if offsets is None:
        return None
    words = ["floodmark", "offsets", "import", pipeline, "--debezium", offsets]
    if draft.spec.option_model.knows(_HISTORY) and (history := _history(draft, properties)):
        words += ["--history", history]
    if name is not None:
        words += ["--connector-name", name]
    if worker_path is not None and any(setting.startswith(_SECURITY) for setting in worker or {}):
        words += ["--store-settings", str(worker_path)]
    return " ".join(map(_word, words))


def _offsets(
    draft: Draft, properties: Mapping[str, str], name: str | None, worker: Mapping[str, str] | None
) -> str | None:
    if name is None or any(setting.startswith("offset.storage") for setting in properties):
        # Debezium's engine has its store among the connector's properties, too.
        return _offsets_of_server(draft, properties)
    if worker is None:
        draft.notes.append(
            "The offsets are in the topic offset.storage.topic of the workers: give their file with --worker."
        )
        return f"{KAFKA}BROKERS/TOPIC"
    topic = properties.get("offsets.storage.topic", worker.get("offset.storage.topic"))
    if topic is not None:
        return f"{KAFKA}{worker['bootstrap.servers']}/{topic}"
    file = worker.get("offset.storage.file.filename")
    if file is None:
        draft.notes.append("The worker's file has neither offset.storage.topic nor offset.storage.file.filename.")
    return file


def _offsets_of_server(draft: Draft, properties: Mapping[str, str]) -> str | None:
    kind = properties.get("offset.storage", _FILE_STORE).rpartition(".")[2]
    if kind == "FileOffsetBackingStore":
        return properties.get("offset.storage.file.filename", "data/offsets.dat")
    if kind == "KafkaOffsetBackingStore":
        brokers = properties.get("bootstrap.servers", "BROKERS")
        return f"{KAFKA}{brokers}/{properties.get('offset.storage.topic', 'TOPIC')}"
    if kind == "JdbcOffsetBackingStore":
        url = properties.get("offset.storage.jdbc.connection.url", properties.get("offset.storage.jdbc.url", "URL"))
        draft.notes.append("Give the database's login and table with --store-settings: docs/from-debezium.md.")
        return url
    draft.notes.append(_NOT_READ.format(kind))
    return None


def _history(draft: Draft, properties: Mapping[str, str]) -> str | None:
    found = {
        name.replace(_FORMER_HISTORY, _HISTORY, 1): value
        for name, value in properties.items()
        if name.startswith((_FORMER_HISTORY, _HISTORY))
    }
    file = found.get(f"{_HISTORY}.file.filename")
    topic = found.get(f"{_HISTORY}.kafka.topic")
    kind = found.get(_HISTORY, "KafkaSchemaHistory").rpartition(".")[2].replace("Database", "Schema")
    if kind == "FileSchemaHistory" and file is not None:
        return file
    if kind == "KafkaSchemaHistory" and topic is not None:
        return f"{KAFKA}{found.get(f'{_HISTORY}.kafka.bootstrap.servers', 'BROKERS')}/{topic}"
    draft.notes.append(
        f"The schema history ({kind}) can't be read: without --history the import takes the tables' structures of now."
    )
    return None


def _word(word: str) -> str:
    """Quote a word of the command; the shell is to fill in what refers to its variables."""
    return f'"{word}"' if "${" in word else shlex.quote(word)
