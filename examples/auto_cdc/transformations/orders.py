"""Keeps ``orders`` equal to the table ``public.orders`` of a PostgreSQL database, by ``MERGE``."""

from __future__ import annotations

import os

from pyspark import pipelines as dp
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

SOURCE = {
    "connector": "postgres",
    "database.hostname": os.environ["SHOP_HOST"],
    "database.port": os.environ.get("SHOP_PORT", "5432"),
    "database.user": os.environ["SHOP_USER"],
    "database.password": os.environ["SHOP_PASSWORD"],
    "database.dbname": os.environ["SHOP_DATABASE"],
    "topic.prefix": "shop",
    "state.dir": os.environ["SHOP_STATE"],
    # A slot has one reader: each flow needs its own.
    "slot.name": "shop_orders",
    "table.include.list": r"public\.orders",
    "format": "rows",
}

spark = SparkSession.active()


@dp.temporary_view
def orders_changes() -> DataFrame:
    """Return the changes of the table, one in a row: the old row of a delete, else the new one."""
    changes = spark.readStream.format("floodmark").options(**SOURCE).load()
    row = F.when(F.col("op") == "d", F.col("before")).otherwise(F.col("after"))
    return changes.select("op", "position", row.alias("row")).select("op", "position", "row.*")


dp.create_streaming_table("orders")
dp.create_auto_cdc_flow(
    target="orders",
    source="orders_changes",
    keys=["id"],
    sequence_by="position",
    apply_as_deletes="op = 'd'",
    except_column_list=["op", "position"],
)
