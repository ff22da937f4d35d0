"""Runs a pipeline file: ``spark-submit … pipeline.py pipeline.yaml``; see docs/cluster.md."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

from floodmark import Pipeline

pipeline = Pipeline.from_yaml(sys.argv[1])
spark = SparkSession.builder.config(map={**pipeline.spark_properties}).getOrCreate()
pipeline.start(spark).awaitTermination()
