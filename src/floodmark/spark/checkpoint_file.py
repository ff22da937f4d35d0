"""A small file of Floodmark's own in the checkpoint of a query that runs."""

from __future__ import annotations

from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from floodmark.errors import CheckpointError
from floodmark.spark.java import java_exceptions
from floodmark.spark.running_query import RunningQuery
from floodmark.spark.versions import CHECKPOINT_PACKAGE


class CheckpointFile:
    """Reads and writes the file through Spark, which knows the checkpoint's filesystem.

    Args:
        session: that of a micro-batch; called from the thread that writes it.
        name: the file's.
    """

    def __init__(self, session: SparkSession, name: str) -> None:
        context = session.sparkContext
        jvm: Any = context._jvm
        number = jvm.java.util.UUID.fromString(RunningQuery.of(context).id)
        # A micro-batch has a session of its own, which doesn't list the query.
        query = session._jsparkSession.sharedState().activeStreamingQueries().get(number)
        self._path = jvm.org.apache.hadoop.fs.Path(query.resolvedCheckpointRoot(), name)
        package = jvm.org.apache.spark.sql.execution.streaming
        for part in CHECKPOINT_PACKAGE.rstrip(".").split("."):
            package = getattr(package, part) if part else package
        self._files = package.CheckpointFileManager.create(
            self._path.getParent(), session._jsparkSession.sessionState().newHadoopConf()
        )

    def read(self) -> bytes | None:
        """Return the file's content; None: there is none.

        Raises:
            CheckpointError: it can't be read.
        """
        try:
            if not self._files.exists(self._path):
                return None
            stream = self._files.open(self._path)
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()
        except Py4JJavaError as error:
            raise self._failed("read", error) from None

    def write(self, content: bytes) -> None:
        """Replace the file's content, as a whole.

        Raises:
            CheckpointError: it can't be written.
        """
        try:
            stream = self._files.createAtomic(self._path, True)
            try:
                stream.write(bytearray(content))
            except BaseException:
                stream.cancel()
                raise
            stream.close()
        except Py4JJavaError as error:
            raise self._failed("written", error) from None

    def _failed(self, what: str, error: Py4JJavaError) -> CheckpointError:
        reason = next((found.getMessage() for found in java_exceptions(error)), None) or "it gave no reason"
        return CheckpointError(
            f"The file {self._path.toString()} of the checkpoint can't be {what}: {reason}.",
            "Check the path, its permissions and its space.",
        )
