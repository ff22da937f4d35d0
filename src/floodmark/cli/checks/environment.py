"""Checks the environment of a pipeline: Java, PySpark, directories, the sink and Kafka."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from floodmark.capture.files import open_filesystem
from floodmark.cli.checks.registries import check_converters
from floodmark.config.common import CommonOptions
from floodmark.connectors.contract.findings import Finding
from floodmark.errors import CheckpointError, ConfigError, StateDirError, TargetError
from floodmark.json_data import Json
from floodmark.notifications.channels import notification_channels
from floodmark.redact import shown_uri, without_uri_secrets
from floodmark.sinks.kafka.options import KafkaOptions
from floodmark.sinks.kafka.producer_settings import check_settings
from floodmark.sinks.options import MirrorOptions
from floodmark.sinks.relational.options import JdbcOptions
from floodmark.spark.checkpoint import Checkpoint
from floodmark.spark.delta.runtime import delta_package
from floodmark.spark.iceberg.runtime import CATALOG, CATALOG_CLASS, iceberg_package, require_catalogue
from floodmark.spark.pipelines.model import Pipeline, is_local
from floodmark.spark.pipelines.places import check_places
from floodmark.spark.sinks.kafka import SCALA, goes_with, kafka_package
from floodmark.spark.stream.offsets import Offset
from floodmark.spark.versions import require_spark

MIN_JAVA = 17
BROKER_TIMEOUT_S = 5.0
MIB = 1 << 20
_KAFKA_PACKAGE = re.compile(r"spark-sql-kafka-0-10_(\d+\.\d+)[:-](\d[\w.]*)")
_ICEBERG_PACKAGE = re.compile(r"iceberg-spark-runtime-(\d+\.\d+)_(\d+\.\d+)[:-]")
_DELTA_PACKAGE = re.compile(r"delta-spark_(\d+\.\d+)_(\d+\.\d+)[:-]")


def check_machine() -> list[Finding]:
    """Check what every query needs here."""
    return [check_java(), check_pyspark()]


def check_query(pipeline: Pipeline) -> list[Finding]:
    """Check a query's directories, its sink and its channels."""
    options = pipeline.options
    return [
        *check_state_dir(options, pipeline.master),
        *check_checkpoint(pipeline.checkpoint),
        *check_places(options.state_dir, pipeline.checkpoint, pipeline.sink.path),
        *check_sink(pipeline),
        *check_channels(options),
        *check_converters(options),
    ]


def check_context(options: CommonOptions, checkpoint: str | None, master: str) -> list[Finding]:
    """Check everything but the source and the sink: for a query that no pipeline file describes.

    Args:
        options: the source's options.
        checkpoint: the query's checkpoint; None if it isn't known.
        master: the Spark master.
    """
    return [
        check_java(),
        check_pyspark(),
        *check_state_dir(options, master),
        *(check_checkpoint(checkpoint) if checkpoint is not None else []),
        *check_places(options.state_dir, checkpoint, None),
        *check_channels(options),
        *check_converters(options),
    ]


def last_offset(checkpoint: str) -> dict[str, Json] | None:
    """Return the source's newest offset in a query's checkpoint, if it has one that can be read."""
    try:
        return _newest_offset(checkpoint)
    except CheckpointError:
        return None


def check_checkpoint(uri: str) -> list[Finding]:
    """Check that the checkpoint can be written, and that this Floodmark can read it if it belongs to a query."""
    writable = _writable("checkpoint", uri)
    if writable.status == "ok":
        try:
            offset = _newest_offset(uri)
            if offset is not None:
                Offset.from_json(offset)
        except CheckpointError as exc:
            return [Finding("checkpoint", "error", exc.what, exc.cure)]
    return [writable]


def _newest_offset(uri: str) -> dict[str, Json] | None:
    files = Checkpoint(uri)
    offsets = files.offsets()
    return files.read_offset(offsets[-1]) if offsets else None


def check_java() -> Finding:
    """Check that the Java that Spark would start is installed and recent enough."""
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
        return Finding("Java", "warning", f"{java} does not print its version.", fix)
    if int(found[1]) < MIN_JAVA:
        return Finding("Java", "error", f"{java} is Java {found[1]}.", fix)
    return Finding("Java", "ok", f"Java {found[1]}")


def check_pyspark() -> Finding:
    """Check PySpark's version."""
    try:
        found = version("pyspark")
        require_spark(found)
    except PackageNotFoundError:
        return Finding("PySpark", "error", "not installed", "Install it with: pip install pyspark")
    except ConfigError as exc:
        return Finding("PySpark", "error", exc.what, exc.cure)
    return Finding("PySpark", "ok", f"PySpark {found}")


def check_state_dir(options: CommonOptions, master: str) -> list[Finding]:
    """Check that ``state.dir`` can be written, is large enough, and is shared where it must be."""
    findings = [_writable("state.dir", options.state_dir), *_shared("state.dir", options.state_dir, master)]
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
        written = check_targets(sink.path) if sink.type == "mirror" else [_writable("sink", sink.path)]
        runtime = check_delta(pipeline.spark) if sink.needs_delta else []
        if sink.needs_iceberg:
            runtime = check_iceberg(pipeline.spark, MirrorOptions.parse(sink.mirror_options).catalog_schema or "")
        elif sink.type == "mirror" and sink.format == "iceberg":
            runtime = [check_catalogue(MirrorOptions.parse(sink.mirror_options))]
        return [*runtime, *written, *_shared("sink", sink.path, pipeline.master)]
    if sink.type == "kafka":
        broker = _check_kafka("sink", sink.options["kafka.bootstrap.servers"], "kafka.bootstrap.servers")
        if sink.needs_connector:
            return [broker, *check_packages(pipeline.spark)]
        return [_check_producer(sink.options, broker) if broker.status == "ok" else broker]
    if sink.type == "jdbc":
        return [check_database(JdbcOptions.parse(sink.options))]
    return [Finding("sink", "ok", sink.type)]


def _check_producer(options: Mapping[str, str], broker: Finding) -> Finding:
    """Check that what writes to Kafka is installed, and takes its settings."""
    try:
        check_settings(KafkaOptions.parse(options).settings)
    except ConfigError as exc:
        return Finding("sink", "error", exc.what, exc.cure)
    return broker


def check_database(options: JdbcOptions) -> Finding:
    """Check that the target database can be reached and written.

    Args:
        options: the sink's.
    """
    if find_spec("pandas") is None:
        fix = "Install it with: pip install 'floodmark[jdbc]'"
        return Finding("sink", "error", "The sink 'jdbc' needs pandas, which is not installed.", fix)
    from floodmark.sinks.relational.access import prove_usable

    try:
        version = prove_usable(options)
    except (ConfigError, TargetError) as exc:
        return Finding("sink", "error", exc.what, exc.cure)
    return Finding("sink", "ok", f"{options.connection_url} ({version}) can be written")


def check_targets(location: str) -> list[Finding]:
    """Check that what mirrors need is installed here, and that the targets can be written and read.

    Args:
        location: the path or URI below which they are.
    """
    missing = [name for name in ("deltalake", "obstore", "pandas", "pyroaring") if find_spec(name) is None]
    if missing:
        are = "are" if len(missing) > 1 else "is"
        text = f"The sink 'mirror' needs {', '.join(missing)}, which {are} not installed."
        return [Finding("sink", "error", text, "Install them with: pip install 'floodmark[delta]'")]
    from floodmark.sinks.delta import access
    from floodmark.sinks.delta.stores import prove_location

    try:
        prove_location(location)
        access.prove_usable(location)
        found = access.unusable_tables(location)
    except ConfigError as exc:
        return [Finding("sink", "error", exc.what, exc.cure)]
    fix = "Let the driver and all executors read and write there."
    errors = [
        Finding("sink", "error", f"The target table '{table}' can't be written or read: {why}.", fix)
        for table, why in found.items()
    ]
    return errors or [Finding("sink", "ok", f"{shown_uri(location)} can be written")]


def check_delta(properties: Mapping[str, str]) -> list[Finding]:
    """Check that there is a release of Delta for this Spark, and that the one that is given is it."""
    return _packages_of("Delta", _DELTA_PACKAGE, properties, delta_package)


def check_iceberg(properties: Mapping[str, str], schema: str) -> list[Finding]:
    """Check that there is a release of Iceberg for this Spark, that the one that is given is it, and a catalogue.

    Args:
        schema: the catalogue's schema, such as ``lake.shop``.
    """
    catalog = schema.split(".", maxsplit=1)[0]
    if f"{CATALOG}{catalog}" not in properties:
        text = f"The mirror's option catalog.schema is '{schema}', but the file has no Iceberg catalogue '{catalog}'."
        fix = f"Write {CATALOG}{catalog}: {CATALOG_CLASS} in 'spark', and what names the catalogue."
        return [Finding("Iceberg", "error", text, fix)]
    return _packages_of("Iceberg", _ICEBERG_PACKAGE, properties, iceberg_package)


def check_catalogue(options: MirrorOptions) -> Finding:
    """Check that the catalogue of Iceberg tables that a mirror's options name can be used.

    Args:
        options: the mirror's.
    """
    try:
        require_catalogue(options)
    except ConfigError as exc:
        return Finding("Iceberg", "error", exc.what, exc.cure)
    return Finding("Iceberg", "ok", f"the catalogue has {options.catalog_schema}")


def _packages_of(
    format_name: str, pattern: re.Pattern[str], properties: Mapping[str, str], package: Callable[[str], str]
) -> list[Finding]:
    """Check that a table format has a release for this Spark, and that the one that is given, if any, is it.

    Args:
        pattern: finds its jar, and in it the versions of Spark and of Scala.
        package: returns the coordinates of the runtime for a version of Spark.
    """
    try:
        running = version("pyspark")
        right = package(running)
    except PackageNotFoundError:
        return []
    except ConfigError as exc:
        return [Finding(format_name, "error", exc.what, exc.cure)]
    for name, item in _jars(properties):
        found = pattern.search(item)
        if found is not None and (_minor(found[1]) != _minor(running) or found[2] != SCALA):
            return [_of_another_spark(format_name, name, item, running, right)]
    return [Finding(format_name, "ok", f"Spark {running} has a release of {format_name}")]


def _of_another_spark(check: str, name: str, item: str, running: str, right: str) -> Finding:
    """Return what is wrong with a jar for another Spark.

    Args:
        name: the property that names it.
        item: what it says.
    """
    text = f"{name} has {item}, but this is Spark {running}, with Scala {SCALA}."
    return Finding(check, "error", text, f"Write {right}, or leave it out: `floodmark run` adds it.")


def _jars(properties: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Yield what is to be loaded, each with the name of the property that says so."""
    for name in ("spark.jars.packages", "spark.jars"):
        for item in properties.get(name, "").split(","):
            yield name, item.strip()


def check_packages(properties: Mapping[str, str]) -> list[Finding]:
    """Check that the connector for Kafka, if it is given, is built for this Spark."""
    try:
        running = version("pyspark")
    except PackageNotFoundError:
        return []
    return [
        _of_another_spark("Kafka connector", name, item, running, kafka_package(running))
        for name, item in _jars(properties)
        if (found := _KAFKA_PACKAGE.search(item)) is not None and not goes_with(found[1], found[2], running)
    ]


def _minor(release: str) -> list[str]:
    return re.findall(r"\d+", release)[:2]


def check_channels(options: CommonOptions) -> list[Finding]:
    """Check what the options require besides the source: functions for notifications, and Kafka."""
    findings = []
    try:
        notification_channels(options)
    except ConfigError as exc:
        findings.append(Finding("notifications", "error", exc.what, exc.cure))
    if "kafka" in options.signal_enabled_channels:
        brokers = options.signal_kafka_bootstrap_servers or ""
        found = _check_client("signals", brokers, "signal.kafka.bootstrap.servers")
        # The query runs without a broker, and reads the signals once one is available.
        findings.append(replace(found, status="warning") if _has_client() and found.status == "error" else found)
    history_brokers = options.schema_history_brokers
    if history_brokers is not None:
        option = "schema.history.internal.kafka.bootstrap.servers"
        findings.append(_check_client("schema history", history_brokers, option))
    return findings


def _has_client() -> bool:
    return find_spec("confluent_kafka") is not None


def _check_client(check: str, brokers: str, option: str) -> Finding:
    """Check that the Kafka client is installed, and that a broker answers."""
    if not _has_client():
        fix = "Install it with: pip install 'floodmark[kafka]'"
        return Finding(check, "error", "The package 'confluent_kafka' is not installed.", fix)
    return _check_kafka(check, brokers, option)


def _writable(check: str, uri: str) -> Finding:
    """Check a directory by writing and removing a file in it; create the directory if it doesn't exist."""
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


def _shared(check: str, uri: str, master: str) -> list[Finding]:
    """Warn about a local path if driver and executors are on different machines."""
    if is_local(master) or "://" in uri:
        return []
    text = f"{uri} is a local path, but driver and executors of {master} must see the same files."
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
