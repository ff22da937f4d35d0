"""A private Kafka broker, from the jars that ``kafka_jars.txt`` pins."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from floodmark.demo.embedded import free_port
from tests.support.maven import listed
from tests.support.patience import within

JARS = Path(__file__).with_name("kafka_jars.txt")
SPARK_JARS = Path(__file__).with_name("spark_kafka_jars.txt")
"""The connector for Spark 4.2 and 4.3."""
START_S = within(60)
NODE = """process.roles=broker,controller
node.id={node}
controller.quorum.voters={voters}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
advertised.listeners={listeners}
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,SSL:SSL,CONTROLLER:PLAINTEXT
controller.listener.names=CONTROLLER
log.dirs={data}
num.partitions=1
offsets.topic.num.partitions=1
offsets.topic.replication.factor=1
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
"""
WITH_USERS = """sasl.enabled.mechanisms=PLAIN
listener.name.sasl_plaintext.plain.sasl.jaas.config={module} required user_{user}="{password}";
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
"""
"""Who logs in has the rights that are given; who doesn't, such as tests, has all."""
WITH_TLS = """ssl.keystore.type=PEM
ssl.keystore.location={tls}
ssl.truststore.type=PEM
ssl.truststore.location={tls}
ssl.client.auth=requested
"""
LOGIN_MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"
USER, PASSWORD = "writer", "pass-of-writer"
CODEC_AT, CODEC = 22, 7
"""The byte of a record batch, and its bits, that say by which codec it is compressed."""
FORMATTED = "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAA\nnode.id={node}\n"


class Broker:
    """One broker that keeps everything below one directory; it can be killed and started again.

    Args:
        directory: where settings, data and log go.
        settings: further ones.
        users: whether `USER` can log in, who has no rights at first.
        tls: a PEM file with the broker's key and certificates, and those of whom it trusts; None: it has no TLS.
        controllers: the ports of the controllers of a cluster's nodes; empty: it is the only one.
        node: the broker's number among them, from 1 on.
    """

    def __init__(
        self,
        directory: Path,
        *settings: str,
        users: bool = False,
        tls: Path | None = None,
        controllers: Sequence[int] = (),
        node: int = 1,
    ) -> None:
        self._directory = directory
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        data = directory / "data"
        data.mkdir(parents=True)
        (data / "meta.properties").write_text(FORMATTED.format(node=node))
        self._settings = directory / "server.properties"
        self._for_users, self.tls_port = free_port(), free_port()
        controllers = controllers or [free_port()]
        ports = {"PLAINTEXT": self.port}
        ports |= {"SASL_PLAINTEXT": self._for_users} if users else {}
        ports |= {"SSL": self.tls_port} if tls is not None else {}
        own = NODE.format(
            node=node,
            voters=",".join(f"{number}@127.0.0.1:{port}" for number, port in enumerate(controllers, 1)),
            listeners=",".join(f"{name}://127.0.0.1:{port}" for name, port in ports.items()),
            controller=controllers[node - 1],
            data=data,
        )
        if users:
            own += WITH_USERS.format(module=LOGIN_MODULE, user=USER, password=PASSWORD)
        if tls is not None:
            own += WITH_TLS.format(tls=tls)
        self._settings.write_text(own + "".join(f"{one}\n" for one in settings))

    @property
    def servers(self) -> str:
        """What clients connect to."""
        return f"127.0.0.1:{self.port}"

    def login(self) -> dict[str, str]:
        """Return the settings of a Java client that logs in as `USER`."""
        return {
            "bootstrap.servers": f"127.0.0.1:{self._for_users}",
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{LOGIN_MODULE} required username="{USER}" password="{PASSWORD}";',
        }

    @property
    def pid(self) -> int:
        """The process's id."""
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        """Start the broker and wait until it answers."""
        self.launch()
        self.wait()

    def launch(self) -> None:
        """Start the broker; one of a cluster doesn't answer before most of the others are started."""
        command = ["java", "-Xmx256m", "-XX:+UseSerialGC", "-cp", _classpath(), "kafka.Kafka", str(self._settings)]
        with (self._directory / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self._directory)

    def wait(self) -> None:
        """Wait until the broker answers."""
        deadline = time.monotonic() + START_S
        while not self._answers():
            assert self._process is not None
            assert self._process.poll() is None, self._log()
            assert time.monotonic() < deadline, self._log()
            time.sleep(0.1)

    def kill(self) -> None:
        """End the broker as a crash would."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def create(self, topic: str, partitions: int = 1, copies: int = 1, **config: str) -> None:
        """Create a topic; names of its configuration have ``_`` for dots."""
        admin = AdminClient(self._client())
        settings = {name.replace("_", "."): value for name, value in config.items()}
        admin.create_topics([NewTopic(topic, partitions, copies, config=settings)])[topic].result(30)

    def drop(self, topic: str) -> None:
        """Delete a topic, and wait until it is gone."""
        admin = AdminClient(self._client())
        admin.delete_topics([topic])[topic].result(30)
        deadline = time.monotonic() + START_S
        while topic in self.topics():
            assert time.monotonic() < deadline
            time.sleep(0.05)

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions to a topic, so that it has as many as given."""
        admin = AdminClient(self._client())
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)

    def copy(self, place: Path) -> None:
        """Copy the data of the broker, which is stopped meanwhile."""
        self.kill()
        shutil.copytree(self._directory / "data", place)
        self.start()

    def restore(self, place: Path) -> None:
        """Put a copy in the place of the data, with which the broker runs afterwards."""
        self.kill()
        shutil.rmtree(self._directory / "data")
        shutil.copytree(place, self._directory / "data")
        self.start()

    def leader(self, topic: str) -> int:
        """Return the number of the broker that leads a topic's first partition; -1: none does."""
        found = AdminClient(self._client()).list_topics(topic, timeout=within(30)).topics[topic]
        return int(found.partitions[0].leader)

    def replicas(self, topic: str) -> list[int]:
        """Return the numbers of the brokers that have a topic's first partition."""
        found = AdminClient(self._client()).list_topics(topic, timeout=within(30)).topics[topic]
        return list(found.partitions[0].replicas)

    def limit(self, bytes_a_second: int) -> None:
        """Set the quota of all producers."""
        change = ["--alter", "--add-config", f"producer_byte_rate={bytes_a_second}"]
        to_all = ["--entity-type", "clients", "--entity-default"]
        command = ["java", "-cp", _classpath(), "kafka.admin.ConfigCommand", "--bootstrap-server", self.servers]
        subprocess.run([*command, *change, *to_all], check=True, capture_output=True)

    def brokers(self) -> int:
        """Return how many brokers the cluster has now."""
        return len(AdminClient(self._client()).list_topics(timeout=within(30)).brokers)

    def allow(self, topic: str, name: str, value: str) -> None:
        """Set a topic's configuration."""
        admin = AdminClient(self._client())
        entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([resource])[resource].result(30)

    def settings(self, topic: str) -> dict[str, str]:
        """Return a topic's configuration, as far as it differs from the broker's."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, topic)
        admin = AdminClient(self._client())
        entries = admin.describe_configs([resource])[resource].result(30)
        return {name: entry.value for name, entry in entries.items() if not entry.is_default}

    def topics(self) -> dict[str, int]:
        """Return how many partitions each topic has."""
        found = AdminClient(self._client()).list_topics(timeout=within(30)).topics
        return {name: len(topic.partitions) for name, topic in found.items()}

    def written(self, prefix: str) -> int:
        """Return how many bytes are in the topics whose names begin with a prefix."""
        return sum(one.stat().st_size for one in (self._directory / "data").glob(f"{prefix}*/*.log"))

    def codecs(self, topic: str) -> set[int]:
        """Return by which codecs the first batch of each partition of a topic is compressed."""
        segments = (self._directory / "data").glob(f"{topic}-*/*.log")
        return {content[CODEC_AT] & CODEC for one in segments if (content := one.read_bytes())}

    def let_write(self, prefix: str) -> None:
        """Give `USER` the right to write topics, but not to create them."""
        rights = AclBinding(
            ResourceType.TOPIC,
            prefix,
            ResourcePatternType.PREFIXED,
            f"User:{USER}",
            "*",
            AclOperation.WRITE,
            AclPermissionType.ALLOW,
        )
        admin = AdminClient(self._client())
        admin.create_acls([rights])[rights].result(30)

    def send(self, topic: str, key: str | None, value: str | bytes | None, partition: int = 0) -> None:
        """Send a record and wait until it is stored."""
        failures: list[object] = []
        producer = Producer(self._client())
        producer.produce(
            topic, value, key, partition, on_delivery=lambda error, _: failures.append(error) if error else None
        )
        assert producer.flush(30) == 0
        assert failures == []

    def count(self, topic: str) -> int:
        """Return how many records a topic has got."""
        consumer = Consumer({**self._client(), "group.id": "count"})
        partitions = consumer.list_topics(topic, within(30)).topics[topic].partitions
        ends = [_ends(consumer, TopicPartition(topic, one)) for one in partitions]
        consumer.close()
        return sum(high for _, high in ends)

    def records(self, topic: str) -> list[Message]:
        """Return all records of a topic, those of a partition in its order."""
        consumer = Consumer({**self._client(), "group.id": "records", "enable.auto.commit": False})
        partitions = consumer.list_topics(topic, within(30)).topics[topic].partitions
        consumer.assign([TopicPartition(topic, one, 0) for one in partitions])
        found: list[Message] = []
        for _ in range(self.count(topic)):
            record = consumer.poll(within(30))
            assert record is not None
            assert record.error() is None, record.error()
            found.append(record)
        consumer.close()
        return found

    def committed(self, topic: str, group: str = "kafka-signal") -> int:
        """Return a group's offset; below 0 if it has none."""
        consumer = Consumer({**self._client(), "group.id": group})
        (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=within(30))
        consumer.close()
        return int(found.offset)

    def commit(self, topic: str, offset: int, group: str = "kafka-signal") -> None:
        """Set a group's offset."""
        consumer = Consumer({**self._client(), "group.id": group})
        consumer.commit(offsets=[TopicPartition(topic, 0, offset)], asynchronous=False)
        consumer.close()

    def _client(self) -> dict[str, str | int | float | bool]:
        return {"bootstrap.servers": self.servers, "log_level": 0}

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return True
        except OSError:
            return False

    def _log(self) -> str:
        return (self._directory / "broker.log").read_text(encoding="utf-8")[-4000:]


def _ends(consumer: Consumer, partition: TopicPartition) -> tuple[int, int]:
    """Return the first offset of a partition, and the one after its last; a new one has no leader at first."""
    deadline = time.monotonic() + START_S
    while True:
        try:
            return consumer.get_watermark_offsets(partition, within(30))
        except KafkaException as error:
            if error.args[0].code() != KafkaError.NOT_LEADER_FOR_PARTITION or time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _classpath() -> str:
    return os.pathsep.join(map(str, listed(JARS, "kafka")))


def spark_jars() -> list[Path]:
    """Return the jars of Spark's connector, for Spark 4.2 and 4.3; they are downloaded if they aren't there."""
    return listed(SPARK_JARS, "spark-kafka")


@contextmanager
def running_broker(directory: Path, *settings: str, users: bool = False, tls: Path | None = None) -> Iterator[Broker]:
    """Run a broker; see `Broker`."""
    broker = Broker(directory, *settings, users=users, tls=tls)
    try:
        broker.start()
        yield broker
    finally:
        broker.kill()


@contextmanager
def running_cluster(directory: Path, nodes: int) -> Iterator[list[Broker]]:
    """Run several brokers that are one cluster."""
    controllers = [free_port() for _ in range(nodes)]
    brokers = [Broker(directory / f"{node}", controllers=controllers, node=node) for node in range(1, nodes + 1)]
    try:
        for broker in brokers:
            broker.launch()
        for broker in brokers:
            broker.wait()
        deadline = time.monotonic() + START_S
        while brokers[0].brokers() < nodes:
            assert time.monotonic() < deadline
            time.sleep(0.1)
        yield brokers
    finally:
        for broker in brokers:
            broker.kill()
