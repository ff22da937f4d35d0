"""Configurations of Debezium, documented and public ones, become pipelines that lack only what `lacks.yaml` says."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from floodmark.cli.checks.environment import check_channels, check_checkpoint, check_state_dir
from floodmark.cli.convert.command import file_text
from floodmark.cli.convert.converter import FAILED, Conversion, Target, convert
from floodmark.cli.convert.given import read_given
from floodmark.spark.pipelines.file import load_file
from floodmark.spark.pipelines.places import check_places

CORPUS = Path(__file__).parents[1] / "data" / "debezium_configurations"
LACKS: dict[str, list[str]] = yaml.safe_load((CORPUS / "lacks.yaml").read_text(encoding="utf-8"))
MISSING = "see "
"""How the remark begins for a property that depends on another one that isn't supported."""
SECRET = "secret-"
"""How passwords begin."""
PUBLIC = 20
VALUES = {"PGPORT": "5432", "slot_name": "shop"}
"""Values of variables that can't be any text."""


def converted(name: str, directory: Path) -> Conversion:
    return convert(read_given(CORPUS / name), Target("pipeline.yaml", str(directory)))


def test_the_corpus_is_whole() -> None:
    files = {str(path.relative_to(CORPUS)) for path in CORPUS.rglob("*.*")} - {"README.md", "lacks.yaml"}
    assert files == set(LACKS)
    assert sum(name.startswith("public/") for name in files) >= PUBLIC


@pytest.mark.parametrize("name", LACKS)
def test_a_configuration_becomes_a_pipeline(name: str, tmp_path: Path) -> None:
    done = converted(name, tmp_path / "query")
    lacks = [one.name for one in done.outcomes if one.result in FAILED and not one.remark.startswith(MISSING)]
    assert sorted(lacks) == LACKS[name]

    properties = read_given(CORPUS / name).properties
    told = {one.name for one in done.outcomes}
    assert set(properties) <= told, "every property is told of"

    file = tmp_path / "pipeline.yaml"
    file.write_text(file_text(done, CORPUS / name), encoding="utf-8")
    environment = {one.name: VALUES.get(one.name, one.value or "x") for one in done.variables}
    pipeline = load_file(file, environment).only
    options = pipeline.options
    found = [
        *check_state_dir(options, pipeline.master),
        *check_checkpoint(pipeline.checkpoint),
        *check_places(options.state_dir, pipeline.checkpoint, pipeline.sink.path),
        *check_channels(options),
    ]
    assert [one for one in found if one.status == "error"] == []

    shown = [file.read_text(encoding="utf-8"), *done.notes, done.command or "", *map(repr, done.variables)]
    shown += [f"{one.name} {one.remark}" for one in done.outcomes]
    assert not [text for text in shown if SECRET in text]


def test_nearly_all_have_secrets() -> None:
    """Otherwise they would not show that none is written."""
    without = [name for name in LACKS if SECRET not in (CORPUS / name).read_text(encoding="utf-8")]
    assert len(without) < len(LACKS) / 10
