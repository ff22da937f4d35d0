"""The container image: what the Dockerfile copies and names is there, and its entry point starts what it should.

No image is built here; docs/cluster.md says with what it was.
"""

from __future__ import annotations

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ")
PROGRAMS = ("floodmark", "java", "spark/bin/spark-submit")


def instructions(name: str) -> list[str]:
    return re.findall(rf"^{name} +(.*)$", DOCKERFILE, re.MULTILINE)


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """Return a directory of programs that print how they are called."""
    for name in PROGRAMS:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text('#!/bin/bash\nprintf "%s\\n" "${0##*/}" "$@"\n')
        path.chmod(0o755)
    return tmp_path


def start(programs: Path, *arguments: str, **environment: str) -> list[str]:
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "SPARK_HOME": f"{programs}/spark", **environment}
    command = ["bash", str(ROOT / "docker" / "entrypoint.sh"), *arguments]
    return subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.splitlines()


def test_what_is_copied_is_there_and_not_ignored() -> None:
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    taken = {line[1:] for line in lines if line.startswith("!")}
    copied = {
        path.removeprefix("./")
        for line in instructions("COPY")
        if not line.startswith("--from")
        for path in line.split()[:-1]
    }
    assert copied == taken
    assert all((ROOT / path).exists() for path in copied)


def test_extras_and_versions_are_the_projects() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (extras,) = re.findall(r"'\.\[([\w,]+)\]'", DOCKERFILE)
    everything = set(project["optional-dependencies"]) - {"demo", "dev", "docs", "reference"}
    assert set(extras.split(",")) == everything
    assert set(re.findall(r"python(3\.\d+)", DOCKERFILE)) == {project["requires-python"].removeprefix(">=")}


def test_it_does_not_run_as_root() -> None:
    assert instructions("USER") == ["185:185"]


def test_the_entry_point_is_the_command_line(started: Path) -> None:
    assert start(started, "run", "/etc/a file.yaml") == ["floodmark", "run", "/etc/a file.yaml"]
    assert start(started) == ["floodmark"]


def test_the_entry_point_is_a_driver_of_spark(started: Path) -> None:
    given = ("--properties-file", "/opt/spark/conf/spark.properties", "local:///opt/floodmark/pipeline.py", "a b")
    found = start(started, "driver", *given, SPARK_DRIVER_BIND_ADDRESS="10.0.0.7")
    bound = ["--conf", "spark.driver.bindAddress=10.0.0.7"]
    assert found == ["spark-submit", "--deploy-mode", "client", *bound, *given]


def test_the_entry_point_is_an_executor_of_spark(started: Path) -> None:
    options = {f"SPARK_JAVA_OPT_{number}": f"-Dspark.a{number}=b c" for number in range(11)}
    given = {
        "SPARK_DRIVER_URL": "spark://CoarseGrainedScheduler@driver:7078",
        "SPARK_EXECUTOR_ID": "3",
        "SPARK_EXECUTOR_CORES": "2",
        "SPARK_EXECUTOR_MEMORY": "1408m",
        "SPARK_APPLICATION_ID": "spark-app",
        "SPARK_EXECUTOR_POD_IP": "10.0.0.8",
        "SPARK_RESOURCE_PROFILE_ID": "0",
        "SPARK_EXECUTOR_POD_NAME": "shop-exec-3",
    }
    found = start(started, "executor", **given, **options, SPARK_CONF_DIR="/opt/spark/conf", SPARK_CLASSPATH="/x.jar")
    assert found[:12] == ["java", *options.values()]
    assert found[12:16] == ["-Xms1408m", "-Xmx1408m", "-cp", f"/opt/spark/conf:/x.jar:{started}/spark/jars/*"]
    named = dict(zip(found[17::2], found[18::2], strict=True))
    assert found[16] == "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend"
    assert named == {
        "--driver-url": given["SPARK_DRIVER_URL"],
        "--executor-id": "3",
        "--cores": "2",
        "--app-id": "spark-app",
        "--hostname": "10.0.0.8",
        "--resourceProfileId": "0",
        "--podName": "shop-exec-3",
    }


def test_an_executor_without_its_environment_says_what_is_missing(started: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        start(started, "executor")
    assert "SPARK_EXECUTOR_MEMORY" in failed.value.stderr
