"""Capture alone and decode alone, each in the least that it needs: no Spark, one process.

Unlike the other benchmarks this one reaches behind the public interface. It takes the source's options as
JSON in its first argument, in its second the position to start from if that is not where the source is, in its third
what the source's log has to say about that position, as JSON, if it needs that, and prints what it measured as JSON.
"""

from __future__ import annotations

import json
import sys
import time

from benchmarks.common import LEG_TIMEOUT_S
from floodmark.capture.retry import RetryPolicy
from floodmark.capture.store import SegmentStore
from floodmark.capture.thread import Capture
from floodmark.connectors.contract.decoding import DecodeProblems, DecodeRequest
from floodmark.connectors.load import load_options
from floodmark.connectors.registry import connector_module
from floodmark.spark.stream.readers import make_decoder, output_schema

STATE_MAX_BYTES = 1 << 40


def main() -> None:
    """Capture the backlog into segments, then decode them."""
    options = load_options(json.loads(sys.argv[1]))
    store = SegmentStore(options.state_dir, "benchmark", "run")
    store.create()
    source = connector_module(options.connector, "connector").make_source(options)
    if len(sys.argv) > 2:
        start = sys.argv[2]
        source.log.resume(start, json.loads(sys.argv[3]) if len(sys.argv) > 3 else None)
    else:
        start, _ = source.log.create(False)
    capture = Capture(source.log.open_stream, store, STATE_MAX_BYTES, RetryPolicy(0, 1, 1))

    wall, cpu = time.monotonic(), time.process_time()
    target = source.log.end()
    capture.start(start)
    reached = start
    while capture.idle_position(start) < target:
        if time.monotonic() - wall > LEG_TIMEOUT_S:
            raise TimeoutError("capture did not reach the end of the log")
        capture.ping()
        capture.wait(reached, 0.5)
        reached = capture.end(reached)
    captured = {"seconds": time.monotonic() - wall, "cpu": time.process_time() - cpu}
    segments = capture.segments(start)
    captured["bytes"] = sum(segment.size for segment in segments)
    capture.stop()

    wall, cpu = time.monotonic(), time.process_time()
    decoder = make_decoder(options, output_schema(options))
    events = sum(
        batch.num_rows
        for segment in segments
        for batch in decoder.decode(
            DecodeRequest(store.read(segment.name), segment.after, segment.upto), DecodeProblems()
        )
    )
    decoded = {"seconds": time.monotonic() - wall, "cpu": time.process_time() - cpu, "events": events}
    source.close()
    print(json.dumps({"capture": captured, "decode": decoded}))


if __name__ == "__main__":
    main()
