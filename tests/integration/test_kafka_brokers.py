"""What the producer does with brokers that fall, that slow it down, and that are reached by TLS."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from floodmark.errors import TargetError
from floodmark.sinks.kafka.records import RecordWriter
from tests.integration.test_kafka_producer import records, target_of, written
from tests.support.kafka import Broker, running_broker, running_cluster
from tests.support.small_disk import SmallDisk, fill, free

pytestmark = pytest.mark.slow
KEYS = 50
IMPATIENT = {"kafka.delivery.timeout.ms": "8000", "kafka.request.timeout.ms": "4000"}
PAGES_LEFT = 100
"""Of a disk that is as good as full."""


def numbered(first: int, count: int, size: int = 0) -> list[dict[str, Any]]:
    return [{"key": str(number % KEYS), "value": f"{number}:{'x' * size}"} for number in range(first, first + count)]


def numbers_by_key(broker: Broker, topic: str) -> dict[int, list[int]]:
    found = defaultdict(list)
    for record in broker.records(topic):
        found[int(record.key() or b"")].append(int((record.value() or b"").split(b":")[0]))
    return found


@pytest.mark.long
def test_no_event_is_lost_doubled_or_moved_where_a_broker_falls(tmp_path: Path) -> None:
    with running_cluster(tmp_path, 3) as brokers:
        first, falls, _ = brokers
        first.create("t", 6, copies=3, min_insync_replicas="2")
        servers = ",".join(one.servers for one in brokers)
        target = target_of(first, **{"kafka.batch.size": "4096"})
        target = replace(
            target, settings=tuple(sorted({**dict(target.settings), "bootstrap.servers": servers}.items()))
        )
        writer = RecordWriter(target)
        for part in range(60):
            writer.write(records("t", *numbered(part * 500, 500, 200)))
            if part == 10:
                falls.kill()
            if part == 40:
                falls.start()
        writer.flush()
        writer.close()
        expected = {key: list(range(key, 60 * 500, KEYS)) for key in range(KEYS)}
        assert numbers_by_key(first, "t") == expected


def test_a_quota_slows_the_producer_down(tmp_path: Path) -> None:
    with running_broker(tmp_path / "broker") as broker:
        broker.create("t", 2)
        broker.limit(250_000)
        began = time.monotonic()
        written(target_of(broker, **{"kafka.compression.type": "none"}), records("t", *numbered(0, 1000, 1000)))
        written(target_of(broker, **{"kafka.compression.type": "none"}), records("t", *numbered(1000, 1000, 1000)))
        assert time.monotonic() - began > 1
        assert numbers_by_key(broker, "t") == {key: list(range(key, 2000, KEYS)) for key in range(KEYS)}


@pytest.mark.long
def test_the_disk_of_a_broker_gets_full(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "disk", "300m")
    try:
        with running_broker(disk.seen / "broker") as broker:
            broker.create("t", 2)
            target = target_of(broker, **{"kafka.compression.type": "none", **IMPATIENT})
            written(target, records("t", *numbered(0, 1000)))
            fill(disk.seen, PAGES_LEFT)
            events = records("t", *numbered(1000, 9000, 1000))
            with pytest.raises(TargetError, match="Kafka has not taken events"):
                written(target, events)
            free(disk.seen)
            broker.kill()
            broker.start()
            written(target, events)
            for key, numbers in numbers_by_key(broker, "t").items():
                # What the broker has taken before comes twice.
                expected = list(range(key, 10_000, KEYS))
                again = expected[1000 // KEYS :]
                assert numbers[-len(again) :] == again
                assert numbers[: -len(again)] == expected[: len(numbers) - len(again)]
    finally:
        disk.close()


def pem_of(authority: trustme.CA, directory: Path, name: str) -> Path:
    """Write a key and a certificate for this machine, and the authority's certificate, as brokers read them."""
    issued = authority.issue_cert("127.0.0.1", common_name=name)
    key = load_pem_private_key(issued.private_key_pem.bytes(), None)
    # Kafka reads keys in this form alone.
    parts = [key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())]
    parts += [one.bytes() for one in issued.cert_chain_pems]
    (directory / f"{name}.pem").write_bytes(b"".join([*parts, authority.cert_pem.bytes()]))
    return directory / f"{name}.pem"


def test_tls_with_and_without_a_certificate_of_the_client(tmp_path: Path) -> None:
    authority = trustme.CA()
    ours, theirs = tmp_path / "ours.pem", tmp_path / "theirs.pem"
    authority.cert_pem.write_to_path(ours)
    trustme.CA().cert_pem.write_to_path(theirs)
    client = pem_of(authority, tmp_path, "client")
    with running_broker(tmp_path / "broker", tls=pem_of(authority, tmp_path, "broker")) as broker:
        broker.create("t")
        tls = {
            "kafka.bootstrap.servers": f"127.0.0.1:{broker.tls_port}",
            "kafka.security.protocol": "SSL",
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.location": str(ours),
        }
        written(target_of(broker, **tls), records("t", *numbered(0, 10)))
        own = {"kafka.ssl.certificate.location": str(client), "kafka.ssl.key.location": str(client)}
        written(target_of(broker, **tls, **own), records("t", *numbered(10, 10)))
        assert broker.count("t") == 20
        strange = {"kafka.ssl.truststore.location": str(theirs)}
        with pytest.raises(TargetError, match=r"certificate of a Kafka broker can't be verified: .*verify failed"):
            written(target_of(broker, **{**tls, **strange}), records("t", *numbered(20, 1)))
        assert broker.count("t") == 20
