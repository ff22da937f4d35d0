"""Which query a thread writes micro-batches of, by the properties that Spark gives it."""

from __future__ import annotations

from typing import NamedTuple

from pyspark import SparkContext

from floodmark.errors import TargetError


class RunningQuery(NamedTuple):
    """A query that runs.

    Attributes:
        id: names the query; the checkpoint keeps it.
        run: tells this start of it from others.
    """

    id: str
    run: str

    @classmethod
    def of(cls, context: SparkContext) -> RunningQuery:
        """Return the query whose micro-batch this thread writes.

        Raises:
            TargetError: it writes none.
        """
        query, run = (context.getLocalProperty(one) for one in ("sql.streaming.queryId", "spark.jobGroup.id"))
        if not query:
            raise TargetError("Spark doesn't tell which query this is.", "Start the sink with writeStream.")
        return cls(query, run or "")
