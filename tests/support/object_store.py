"""An S3 service for the tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from moto.server import ThreadedMotoServer
from pyarrow import fs


@contextmanager
def s3_bucket(monkeypatch: pytest.MonkeyPatch, name: str) -> Iterator[str]:
    """Return the URI of a directory in a bucket; buckets live as long as the process, so names must differ."""
    service = ThreadedMotoServer("127.0.0.1", 0)
    service.start()
    _, port = service.get_host_and_port()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    query = f"endpoint_override=127.0.0.1:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    uri = f"s3://{name}/state?{query}"
    fs.FileSystem.from_uri(uri)[0].create_dir(name)
    yield uri
    service.stop()
