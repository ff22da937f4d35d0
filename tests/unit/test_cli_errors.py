"""Errors as the command line shows them: one line, no traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from floodmark.cli.running.run import run
from floodmark.errors import ConfigError, DecodeError, FloodmarkError, SlotBusyError
from floodmark.spark.failures import explain, floodmark_error
from floodmark.spark.jvmlog import JvmLog
from floodmark.spark.pipelines.file import parse_file
from tests.support.options import REQUIRED
from tests.support.patience import within

PLAN_FAILED = """[STREAM_FAILED] Query [id = 1416b2eb, runId = fba78d07] terminated with exception: \
[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR] Failed when Python streaming data source perform latestOffset: \
Traceback (most recent call last):
  File "x/python_streaming_source_runner.py", line 281, in main
  File "floodmark/x.py", line 11, in latestOffset
    raise SlotBusyError("Slot 'a' is in use.", "Stop it.")
    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
floodmark.errors.SlotBusyError: Slot 'a' is in use by PID 3. Stop it.
 SQLSTATE: 38000 SQLSTATE: XXKST
=== Streaming Query ===
Identifier: [id = 1416b2eb]
"""
READ_FAILED = """[STREAM_FAILED] Query [id = 29ad193c] terminated with exception: [PYTHON_EXCEPTION] \
An exception was thrown from the Python worker: Traceback (most recent call last):
  File "y.py", line 1, in f
floodmark.errors.ConnectError: the first
During handling of the above exception, another exception occurred:
Traceback (most recent call last):
  File "y.py", line 19, in read
floodmark.errors.DecodeError: Bad
record.
 SQLSTATE: 38000
"""
OTHER = """[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: Permission denied: /x
=== Streaming Query ===
"""
OTHER_PYTHON = """[PYTHON_DATA_SOURCE_ERROR] Failed to x: Traceback (most recent call last):
  File "y.py", line 19, in read
    f()
TypeError: f() takes 1 argument
 SQLSTATE: 38000
"""


def test_error_of_the_source_process_is_found() -> None:
    found = floodmark_error(RuntimeError(PLAN_FAILED))
    assert type(found) is SlotBusyError
    assert str(found) == "Slot 'a' is in use by PID 3. Stop it."


def test_the_last_error_counts_and_is_one_line() -> None:
    found = floodmark_error(RuntimeError(READ_FAILED))
    assert type(found) is DecodeError
    assert str(found) == "Bad record."


def test_errors_of_others_are_one_line() -> None:
    assert floodmark_error(RuntimeError(OTHER)) is None
    assert str(explain(RuntimeError(OTHER))) == "Spark failed: Permission denied: /x"
    assert str(explain(RuntimeError(OTHER_PYTHON))) == "Spark failed: TypeError: f() takes 1 argument"
    assert str(explain(RuntimeError(""))) == "Spark failed: RuntimeError"


def test_own_errors_pass_through() -> None:
    error = FloodmarkError("x")
    assert explain(error) is error


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + within(10)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def jvm_writes(text: str, verbose: bool = False) -> list[str]:
    lines: list[str] = []
    log = JvmLog(lines.append, verbose)
    with open(os.dup(log.writer), "w", encoding="utf-8") as out:
        out.write("WARNING: Using incubator modules: jdk.incubator.vector\n")
        out.write("26/11/20 22:44:17 WARN NativeCodeLoader: Unable to load native-hadoop library\n")
        out.flush()
        wait_for(lambda: "NativeCodeLoader" in log.recent())
        log.launched()
        out.write(text)
    log.wait(within(10))
    return lines


def test_jvm_records_are_shortened_and_workers_lines_kept() -> None:
    text = (
        "a worker's line\n"
        "26/11/20 22:44:25 ERROR TaskSetManager: Lost task 0.0\n"
        "java.io.IOException: No space left on device\n"
        "\tat java.base/java.io.FileOutputStream.writeBytes\n"
        "\n"
        "Caused by: java.lang.Exception\n"
        "another line\n"
    )
    assert jvm_writes(text) == [
        "a worker's line",
        "26/11/20 22:44:25 ERROR TaskSetManager: Lost task 0.0 java.io.IOException: No space left on device",
        "another line",
    ]


def test_jvm_records_of_own_errors_are_dropped() -> None:
    traceback = PLAN_FAILED.partition("===")[0]
    record = f"26/11/20 22:44:25 ERROR Utils: Aborting task\norg.apache.spark.SparkException: {traceback}"
    what = "26/11/20 22:44:25 ERROR MicroBatchExecution: Query [id = 1] terminated with error"
    query = f"{what}\njava.lang.RuntimeException: y\n\tat z\n"
    assert jvm_writes(record + query) == []


def test_verbose_passes_everything() -> None:
    lines = jvm_writes("26/11/20 22:44:25 ERROR A: b\n\tat c\n", verbose=True)
    assert lines[-2:] == ["26/11/20 22:44:25 ERROR A: b", "\tat c"]
    assert len(lines) == 4


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "sink: {type: nop}",
            "error: Key 'source' is required in the pipeline file. Write the source's options there, such as "
            "{connector: postgres, …}.",
        ),
        ("sorce: {}", "error: Unknown key 'sorce' in the pipeline file. Did you mean 'source'?"),
    ],
)
def test_command_prints_one_line(tmp_path: Path, text: str, expected: str) -> None:
    file = tmp_path / "pipeline.yaml"
    file.write_text(text, encoding="utf-8")
    for command in ("run", "check", "status"):
        call = "from floodmark.cli.main import main; main()"
        done = subprocess.run(
            [sys.executable, "-c", call, command, str(file)], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1
        assert done.stdout == ""
        assert done.stderr == expected + "\n"


def test_run_refuses_directories_that_hold_one_another(tmp_path: Path) -> None:
    source = {**REQUIRED, "state.dir": str(tmp_path)}
    sink = {"type": "noop"}
    file = parse_file({"source": source, "sink": sink, "checkpoint": str(tmp_path / "checkpoint")})
    with pytest.raises(ConfigError, match=r"The checkpoint .* is inside state\.dir .* side by side"):
        run(file)
