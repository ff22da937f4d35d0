"""A driver to be killed: runs one streaming query into Parquet until it ends or is stopped.

Its only argument is a JSON document: ``options``, ``out``, ``checkpoint``, ``available_now``,
``every`` (the trigger's interval), ``master``, ``mirrors`` (options of a mirror; null for Parquet),
``jdbc``, ``kafka`` (options of these sinks; null otherwise), ``properties`` (of Spark).
"""

from __future__ import annotations

import json
import os
import sys

from pyspark.sql import SparkSession

from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.spark.sinks.kafka_writer import kafka_writer
from floodmark.spark.sinks.mirrors import jdbc, mirror
from tests.support.available_now import ENDING, start_to_end


def main() -> None:
    """Run the query."""
    spec = json.loads(sys.argv[1])
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    spark = (
        SparkSession.builder.master(spec["master"])
        .config(map=spec["properties"])
        .config("spark.ui.enabled", "false")
        .config("spark.executor.memory", "512m")
        .config("spark.cores.max", "2")
        .config("spark.sql.streaming.fileSink.log.cleanupDelay", "3600000")
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    stream = (
        spark.readStream.format("floodmark")
        .options(**spec["options"], **(ENDING if spec["available_now"] else {}))
        .load()
    )
    mirrors, target = spec["mirrors"], spec["jdbc"]
    path = None
    if mirrors is not None:
        writer = mirror(stream, spec["out"], spec["options"], mirrors)
    elif target is not None:
        writer = jdbc(stream, spec["options"], target)
    elif spec["kafka"] is not None:
        writer = kafka_writer(stream, KafkaOptions.parse(spec["kafka"]), spark.sparkContext.defaultParallelism)
    else:
        writer, path = stream.writeStream.format("parquet"), spec["out"]
    writer = writer.option("checkpointLocation", spec["checkpoint"])
    if spec["available_now"]:
        query = start_to_end(writer, path)
    else:
        query = writer.trigger(processingTime=spec["every"]).start(path)
    print("STARTED on Spark", spark.version, flush=True)
    query.awaitTermination()
    print("ENDED", flush=True)


if __name__ == "__main__":
    main()
