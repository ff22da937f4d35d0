"""Checks of what surrounds the source: Java, PySpark, directories and the sink."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from floodmark.capture.files import open_filesystem
from floodmark.cli.checkpoint import Checkpoint
from floodmark.config.pipeline import Pipeline
from floodmark.errors import CheckpointError, StateDirError
from floodmark.findings import Finding
from floodmark.redact import shown_uri, without_uri_secrets

MIN_JAVA = 17
PYSPARK = (4, 3)
BROKER_TIMEOUT_S = 5.0
MIB = 1 << 20


def check_environment(pipeline: Pipeline) -> list[Finding]:
    """Check everything but the source."""
    return [
        check_java(),
        check_pyspark(),
        *check_state_dir(pipeline),
        _writable("checkpoint", pipeline.checkpoint),
        *check_sink(pipeline),
        *check_signals(pipeline),
    ]


def last_offset(checkpoint: str) -> dict[str, Any] | None:
    """Return the source's newest offset in a query's checkpoint, if it has one that can be read."""
    try:
        files = Checkpoint(checkpoint)
        offsets = files.offsets()
        return files.read_offset(offsets[-1]) if offsets else None
    except CheckpointError:
        return None


def check_java() -> Finding:
    """Check that the Java that Spark would start is there and new enough."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    fix = f"Install Java {MIN_JAVA} or later, and let JAVA_HOME or PATH name it."
    try:
        done = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        return Finding("Java", "error", f"{java} does not run.", fix)
    output = done.stderr or done.stdout
    found = re.search(r'version "(?:1\.)?(\d+)[^"]*"', output)
    if found is None:
        return Finding("Java", "warning", f"{java} does not tell its version.", fix)
    if int(found[1]) < MIN_JAVA:
        return Finding("Java", "error", f"{java} is Java {found[1]}.", fix)
    return Finding("Java", "ok", f"Java {found[1]}")


def check_pyspark() -> Finding:
    """Check PySpark's version."""
    wanted = ".".join(map(str, PYSPARK))
    fix = f"pip install 'pyspark=={wanted}.*'"
    try:
        found = version("pyspark")
    except PackageNotFoundError:
        return Finding("PySpark", "error", "not installed", fix)
    if tuple(int(part) for part in re.findall(r"\d+", found)[:2]) != PYSPARK:
        return Finding("PySpark", "error", f"PySpark {found}; Floodmark works with {wanted}.", fix)
    return Finding("PySpark", "ok", f"PySpark {found}")


def check_state_dir(pipeline: Pipeline) -> list[Finding]:
    """Check that ``state.dir`` can be written, is large enough, and is shared where it must be."""
    options = pipeline.options
    findings = [_writable("state.dir", options.state_dir), *_shared("state.dir", options.state_dir, pipeline)]
    if "://" not in options.state_dir and findings[0].status == "ok":
        free = shutil.disk_usage(options.state_dir).free
        if free < options.state_max_bytes:
            most = options.state_max_bytes // MIB
            text = f"{free // MIB:,} MiB are free; state.max.bytes allows {most:,} MiB."
            findings.append(Finding("state.dir", "warning", text, "Free some space, or lower state.max.bytes."))
    return findings


def check_sink(pipeline: Pipeline) -> list[Finding]:
    """Check that the sink can be written to."""
    sink = pipeline.sink
    if sink.path is not None:
        return [_writable("sink", sink.path), *_shared("sink", sink.path, pipeline)]
    if sink.type == "kafka":
        return [_check_kafka("sink", sink.options["kafka.bootstrap.servers"], "kafka.bootstrap.servers")]
    return [Finding("sink", "ok", sink.type)]


def check_signals(pipeline: Pipeline) -> list[Finding]:
    """Check that signals can come by Kafka, if they are to."""
    options = pipeline.options
    if "kafka" not in options.signal_enabled_channels:
        return []
    if find_spec("confluent_kafka") is None:
        fix = "Install it with: pip install 'floodmark[kafka]'"
        return [Finding("signals", "error", "The package 'confluent_kafka' is not installed.", fix)]
    option = "signal.kafka.bootstrap.servers"
    found = _check_kafka("signals", options.signal_kafka_bootstrap_servers or "", option)
    # The query runs without, and takes the signals once a broker is there.
    return [replace(found, status="warning") if found.status == "error" else found]


def _writable(check: str, uri: str) -> Finding:
    """Create the directory if need be, and write, read and remove a file in it."""
    fix = "Make it writable for the user that runs the query, or choose another one."
    try:
        filesystem, path = open_filesystem(uri, private=check == "state.dir")
    except StateDirError as exc:
        if check == "state.dir":
            return Finding(check, "error", exc.what, exc.cure)
        # Spark may know filesystems that PyArrow doesn't.
        return Finding(check, "warning", f"{shown_uri(uri)} cannot be checked from here.")
    probe = f"{path.rstrip('/')}/.floodmark-check-{os.getpid()}"
    try:
        filesystem.create_dir(path, recursive=True)
        with filesystem.open_output_stream(probe) as out:
            out.write(b"probe")
        filesystem.delete_file(probe)
    except OSError as exc:
        reason = without_uri_secrets(uri, " ".join(str(exc).split()))
        return Finding(check, "error", f"{shown_uri(uri)} cannot be written: {reason}", fix)
    return Finding(check, "ok", f"{shown_uri(uri)} can be written")


def _shared(check: str, uri: str, pipeline: Pipeline) -> list[Finding]:
    """Warn of a local path where driver and executors are on different machines."""
    if pipeline.is_local or "://" in uri:
        return []
    text = f"{uri} is a local path, but driver and executors of {pipeline.master} must see the same files."
    return [Finding(check, "warning", text, "Make sure it is a shared mount, or use a URI of a shared filesystem.")]


def _check_kafka(check: str, servers: str, option: str) -> Finding:
    reasons = []
    for server in servers.split(","):
        host, _, port = server.strip().rpartition(":")
        try:
            with socket.create_connection((host.strip("[]"), int(port)), timeout=BROKER_TIMEOUT_S):
                return Finding(check, "ok", f"Kafka broker {server.strip()} answers")
        except (OSError, ValueError) as exc:
            reasons.append(f"{server.strip()}: {exc}")
    fix = f"Correct {option}, or start the broker."
    return Finding(check, "error", f"No Kafka broker answers: {'; '.join(reasons)}.", fix)
