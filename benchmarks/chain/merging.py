"""The job that a user would write in Spark: merge Debezium's events, as they come from a topic, into a table.

Its arguments are `MergeSpec`s as JSON; it is run, and reports, as `benchmarks.query` does. Its Spark is the newest
that Delta has a release for. Without a limit, what is in the topic is one micro-batch, so that it takes one MERGE:
smaller ones rewrite the same files again and again.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import asdict, dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.query import SPARK_CONF, open_protocol, progress_of, say
from floodmark.spark.delta.runtime import SETTINGS

CONF = {
    **SPARK_CONF,
    "spark.driver.memory": "4g",
    "spark.sql.shuffle.partitions": "4",
    "spark.databricks.delta.snapshotPartitions": "2",
    "spark.ui.showConsoleProgress": "false",
}
COLUMNS = "id bigint, account int, amount decimal(10,2), note string, updated_at timestamp"
NAMES = tuple(column.split()[0] for column in COLUMNS.split(", "))
ROW = "id bigint, account int, amount string, note string, updated_at string"
EVENT = f"op string, before struct<{ROW}>, after struct<{ROW}>"
PROPERTIES = {
    "delta": "'delta.enableDeletionVectors' = 'true'",
    "iceberg": (
        "'format-version' = '3', 'write.delete.mode' = 'merge-on-read', 'write.update.mode' = 'merge-on-read', "
        "'write.merge.mode' = 'merge-on-read'"
    ),
}
"""With them a MERGE marks rows instead of writing files again."""
CREATE = f"CREATE TABLE IF NOT EXISTS {{table}} ({COLUMNS}) USING {{format}} TBLPROPERTIES ({{properties}})"
VALUES = {
    **{name: f"s.{name}" for name in NAMES},
    "amount": "CAST(s.amount AS decimal(10,2))",
    "updated_at": "CAST(s.updated_at AS timestamp)",
}
MERGE = f"""
MERGE INTO {{table}} AS t USING changes AS s ON t.id = s.id
WHEN MATCHED AND s.op = 'd' THEN DELETE
WHEN MATCHED THEN UPDATE SET {", ".join(f"{name} = {value}" for name, value in VALUES.items() if name != "id")}
WHEN NOT MATCHED AND s.op <> 'd' THEN INSERT ({", ".join(VALUES)}) VALUES ({", ".join(VALUES.values())})
"""


@dataclass(frozen=True)
class MergeSpec:
    """A query to run.

    Args:
        conf: further properties of the session, with what it needs.
        servers: the broker.
        topic: where the events are; events of a key are in one partition.
        table: the table's name in SQL.
        checkpoint: the query's checkpoint location.
        limit: how many records a micro-batch has at most; 0: all that there are.
        format: the table's.
    """

    conf: dict[str, str]
    servers: str
    topic: str
    table: str
    checkpoint: str
    limit: int = 0
    format: str = "delta"

    def dumps(self) -> str:
        """Return the spec as the process's argument."""
        return json.dumps(asdict(self))


def main() -> None:
    """Run the queries of the command line's specs."""
    protocol = open_protocol()
    specs = [MergeSpec(**json.loads(argument)) for argument in sys.argv[1:]]
    conf: dict[str, bool | float | int | str | None] = {
        **(SETTINGS if specs[0].format == "delta" else {}),
        **CONF,
        **specs[0].conf,
    }
    spark = SparkSession.builder.master("local[2]").appName("chain").config(map=conf).getOrCreate()
    session_at = time.time()
    for spec in specs:
        sys.stdin.readline()
        spark.sql(CREATE.format(table=spec.table, format=spec.format, properties=PROPERTIES[spec.format]))
        events = (
            spark.readStream.format("kafka")
            .option("kafka.bootstrap.servers", spec.servers)
            .option("subscribe", spec.topic)
            .option("startingOffsets", "earliest")
        )
        if spec.limit:
            events = events.option("maxOffsetsPerTrigger", spec.limit)
        writer = (
            events.load().writeStream.foreachBatch(_Merge(spec.table)).option("checkpointLocation", spec.checkpoint)
        )
        say(protocol, event="start", session_at=session_at)
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
        say(protocol, event="finished", progress=progress_of(query))
    spark.stop()


class _Merge:
    """Merges the last event of each key."""

    def __init__(self, table: str) -> None:
        self._statement = MERGE.format(table=table)

    def __call__(self, frame: DataFrame, _: int) -> None:
        event = F.from_json(F.col("value").cast("string"), EVENT)
        events = frame.where("value IS NOT NULL").select("offset", event.alias("e"))
        last = F.max_by(F.struct("e.op", "e.after"), "offset").alias("last")
        changes = events.groupBy(F.coalesce("e.after.id", "e.before.id").alias("id")).agg(last)
        rows = [F.col(f"last.after.{name}").alias(name) for name in NAMES if name != "id"]
        changes.select("id", "last.op", *rows).createOrReplaceTempView("changes")
        frame.sparkSession.sql(self._statement)


if __name__ == "__main__":
    main()
