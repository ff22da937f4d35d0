"""A sink's transform: what Spark is given, and what is refused before anything starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from floodmark.cli.check import check_file
from floodmark.errors import ConfigError
from floodmark.spark.ordering import order_by_key
from floodmark.spark.pipelines.file import parse_file
from floodmark.spark.pipelines.transform import require_kafka_columns, require_typed_columns, transformed
from tests.support.options import REQUIRED

KEY = "sinks.changes.transform"


@pytest.fixture
def events(spark: SparkSession, tmp_path: Path) -> DataFrame:
    options = {**REQUIRED, "state.dir": str(tmp_path)}
    return order_by_key(spark.readStream.format("floodmark").options(**options).load(), 2)


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("SELECT topic, key FROM events WHERE op <> 'r'", ["topic", "key"]),
        ("SELECT * EXCEPT (headers) FROM (SELECT * FROM events) AS e WHERE e.op = 'c'", None),
        ("WITH e AS (SELECT key AS k FROM events) SELECT k FROM e", ["k"]),
        ("SELECT explode(array(topic, 'all')) AS topic, value FROM events", ["topic", "value"]),
        ("SELECT t, key FROM events LATERAL VIEW explode(array('a', 'b')) x AS t", ["t", "key"]),
        ("SELECT get_json_object(value, '$.after.id') AS id -- the key\nFROM events", ["id"]),
    ],
)
def test_rows_are_taken_one_by_one(
    spark: SparkSession, events: DataFrame, text: str, columns: list[str] | None
) -> None:
    result = transformed(spark, events, text, KEY)
    assert result.isStreaming
    assert columns is None or result.columns == columns
    assert not spark.catalog.tableExists("events")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT topic,\n  bad\nFROM events", "is wrong in line 2, column 3: A column"),
        ("SELECT topic FRM events", "is wrong in line 1, column"),
        ("SELECT", "is wrong in line 1, column 7: Syntax error"),
        ("SELECT nothing(key) FROM events", "is wrong in line 1, column 8: "),
        ("SELECT key FROM evnts", "is wrong in line 1, column 17: "),
        ("DROP TABLE events", "is wrong in line 1, column 1: Syntax error at or near 'DROP'"),
        ("INSERT INTO x SELECT * FROM events", "Syntax error at or near 'INSERT'"),
        ("SELECT key FROM events; DROP TABLE x", "Syntax error at or near ';'"),
        ("SET spark.x = 1", "Syntax error"),
        ("SELECT 1", "must read the view events, once, and nothing else"),
        ("VALUES (1)", "must read the view events, once, and nothing else"),
        ("SELECT count(*) FROM events", "has GROUP BY, DISTINCT or an aggregate function, which a stream"),
        ("SELECT key FROM events GROUP BY key", "has GROUP BY"),
        ("SELECT DISTINCT key FROM events", "has DISTINCT"),
        ("SELECT key FROM events ORDER BY key", "has ORDER BY or SORT BY"),
        ("SELECT key FROM events SORT BY key", "has ORDER BY or SORT BY"),
        ("SELECT key FROM events DISTRIBUTE BY key", "has DISTRIBUTE BY"),
        ("SELECT /*+ REPARTITION(3) */ key FROM events", "has a hint that distributes rows"),
        ("SELECT key FROM events LIMIT 3", "has LIMIT"),
        ("SELECT a.key FROM events a JOIN events b ON a.key = b.key", "has JOIN"),
        ("SELECT key FROM events UNION ALL SELECT key FROM events", "has UNION"),
        ("SELECT key, row_number() OVER (PARTITION BY key ORDER BY op) AS n FROM events", "has a window function"),
        ("SELECT key FROM events WHERE key IN (SELECT key FROM events)", "Invalid subquery"),
        ("SELECT key FROM events WHERE op = (SELECT max(x) FROM VALUES ('c') AS t(x))", "has a subquery"),
        ("SELECT key, KEY FROM events", "returns the column 'key' twice"),
    ],
)
def test_what_a_stream_cannot_do_is_refused(spark: SparkSession, events: DataFrame, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        transformed(spark, events, text, KEY)
    error = str(caught.value)
    assert error.startswith(f"Key '{KEY}' ")
    assert message in error
    assert "\n" not in error
    assert not spark.catalog.tableExists("events")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT key, value FROM events", "returns no column 'topic'"),
        ("SELECT topic, key FROM events", "returns no column 'value'"),
        ("SELECT topic, value, position FROM events", "returns the column 'position', which the sink 'kafka' does not"),
        ("SELECT topic, value, 'x' AS partition FROM events", "returns the column 'partition' as string"),
        ("SELECT topic, value, NULL AS key FROM events", "returns the column 'key' as void"),
    ],
)
def test_kafka_needs_its_columns(spark: SparkSession, events: DataFrame, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        require_kafka_columns(transformed(spark, events, text, KEY), False, KEY)


def test_kafka_s_topic_may_be_an_option(spark: SparkSession, events: DataFrame) -> None:
    require_kafka_columns(transformed(spark, events, "SELECT key, headers, value FROM events", KEY), True, KEY)


def test_parquet_needs_types(spark: SparkSession, events: DataFrame) -> None:
    with pytest.raises(ConfigError, match="returns the column 'x' without a type"):
        require_typed_columns(transformed(spark, events, "SELECT key, NULL AS x FROM events", KEY), KEY)


def test_spark_keeps_the_order_of_a_key(spark: SparkSession, events: DataFrame) -> None:
    """Nothing is exchanged or sorted after the sort that the sink needs."""
    text = "SELECT explode(array(topic, 'all')) AS topic, value FROM events WHERE op <> 'r'"
    analysed = transformed(spark, events, text, KEY)._jdf.queryExecution().analyzed()
    plan = spark._jsparkSession.sessionState().optimizer().execute(analysed).toString()
    lines = [line.strip(" +-:~").split(" ")[0].split("[")[0] for line in plan.splitlines() if line.strip()]
    assert lines.index("Sort") < lines.index("RepartitionByExpression")
    assert set(lines[: lines.index("Sort")]) <= {"Project", "Filter", "Generate"}
    assert lines.count("Sort") == lines.count("RepartitionByExpression") == 1


def test_check_finds_a_wrong_transform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    """``floodmark check`` has Spark analyse it, and names the sink."""
    from contextlib import nullcontext

    from floodmark.cli import check

    monkeypatch.setattr(check, "spark_session", lambda *_: nullcontext(spark))
    monkeypatch.setattr(check, "check_connector", lambda *_: [])
    content: dict[str, Any] = {
        "source": {**REQUIRED, "state.dir": str(tmp_path / "state")},
        "sinks": {
            "a": {"type": "noop", "transform": "SELECT key FROM events"},
            "b": {"type": "json", "path": str(tmp_path / "b"), "transform": "SELECT kee FROM events"},
        },
        "checkpoint": str(tmp_path / "checkpoint"),
    }
    found = check_file(parse_file(content, {}))
    assert [(sink, item.status) for sink, item in found if item.check == "transform"] == [("a", "ok"), ("b", "error")]
    errors = [item.finding for _, item in found if item.status == "error"]
    assert any(error.startswith("Key 'sinks.b.transform' is wrong in line 1") for error in errors)
    # A checkpoint where several have theirs, and that of a sink that is gone.
    (tmp_path / "checkpoint" / "old" / "offsets").mkdir(parents=True)
    left = [item for sink, item in check_file(parse_file(content, {})) if "'old'" in item.finding]
    assert [(item.check, item.status) for item in left] == [("checkpoint", "warning")]
    one = {**{name: value for name, value in content.items() if name != "sinks"}, "sink": {"type": "noop"}}
    assert any("'old'" in item.finding for _, item in check_file(parse_file(one, {})))
    (tmp_path / "checkpoint" / "offsets").mkdir()
    assert not any("'old'" in item.finding for _, item in check_file(parse_file(one, {})))
    wrong = [item.finding for _, item in check_file(parse_file(content, {})) if item.status == "error"]
    assert any("is the checkpoint of a pipeline with one sink" in finding for finding in wrong)
