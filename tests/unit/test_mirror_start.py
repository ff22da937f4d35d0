"""What is refused before a mirror starts."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

import floodmark
from floodmark.errors import ConfigError


def test_a_stream_of_spark_connect() -> None:
    stream: Any = type("DataFrame", (), {"__module__": "pyspark.sql.connect.dataframe"})()
    with pytest.raises(ConfigError, match="The stream is one of Spark Connect, with which this sink doesn't work"):
        floodmark.mirror(stream, "/lake", {})


def test_packages_that_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    original = builtins.__import__

    def without(name: str, *args: Any, **options: Any) -> Any:
        if name == "floodmark.spark.sinks.mirror":
            raise ModuleNotFoundError("No module named 'obstore'", name="obstore")
        return original(name, *args, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    stream: Any = object()
    with pytest.raises(ConfigError, match=r"pip install 'floodmark\[delta\]'"):
        floodmark.mirror(stream, "/lake", {})
