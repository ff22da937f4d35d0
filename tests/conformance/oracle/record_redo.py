"""Record what Debezium's parser finds in generated statements: ``python -m tests.conformance.oracle.record_redo``."""

from __future__ import annotations

import json
import random
from pathlib import Path

from tests.conformance.oracle.redo_parser import debezium_values
from tests.conformance.oracle.redo_writer import COLUMNS, Writer

GOLDEN = Path(__file__).parents[1] / "goldens" / "oracle" / "redo.jsonl"
COUNT = 1500
SEED = 1


def main() -> None:
    """Write the golden file."""
    writer = Writer(random.Random(SEED))
    statements = [writer.statement() for _ in range(COUNT)]
    GOLDEN.parent.mkdir(parents=True, exist_ok=True)
    with GOLDEN.open("w", encoding="utf-8") as file:
        for statement, values in zip(statements, debezium_values(COLUMNS, statements), strict=True):
            if values is None:
                raise RuntimeError(f"Debezium doesn't parse {statement}")
            line = {"statement": statement, "old": values[0], "new": values[1]}
            file.write(json.dumps(line, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
