"""A real Kafka broker of the version that the stack runs, for tests without Docker: one process, on loopback ports."""

import random
import signal
import socket
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.admin import UserScramCredentialUpsertion
from kafka.consumer.fetcher import ConsumerRecord

from spark_app.settings import Kafka, process_environment
from spark_app.spark.jars import ensure_jars
from spark_app.spark.java_runtime import require_java, spark_home
from spark_app.spark.kafka import client_options
from tests.polling import poll_until

USER: Final = "shop"
PASSWORD: Final = 'sesame "\\ öffne=dich;'
"""A password that breaks whoever does not quote it."""
STORE_PASSWORD: Final = "changeit"
_LISTS: Final = Path(__file__).parent / "kafka_jars"
_CLUSTER: Final = "c3BhcmstYXBwLXRlc3Rpbmc"
_SMALL: Final = ("-Xms64m", "-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
# Below the ports that the system gives to clients: one of them could take the port of a broker that was killed.
_PORTS: Final = range(20_000, 32_000)
_SASL_MODULE: Final = "org.apache.kafka.common.security.scram.ScramLoginModule"
_LISTENERS: Final = {"PLAINTEXT": "PLAINTEXT", "SASL_SSL": "SASL_SSL", "MTLS": "SSL", "CONTROLLER": "PLAINTEXT"}


@dataclass
class Broker:
    """A broker and its controller in one process, with their data in a folder; started, killed and started again.

    Attributes:
        folder: Data, certificates and the log.
        ports: The port of each listener.
    """

    folder: Path
    ports: Mapping[str, int]
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    @property
    def servers(self) -> str:
        """Host and port of the listener that asks for nothing."""
        return f"127.0.0.1:{self.ports['PLAINTEXT']}"

    @property
    def kafka(self) -> Kafka:
        """The settings of a client that nobody asks for a password."""
        return settings(servers=self.servers)

    @property
    def kafka_with_password(self) -> Kafka:
        """The settings of a client of the listener with TLS and SCRAM."""
        return settings(
            servers=f"127.0.0.1:{self.ports['SASL_SSL']}",
            security_protocol="SASL_SSL",
            sasl_mechanism="SCRAM-SHA-512",
            username=USER,
            password=PASSWORD,
            truststore=str(self.folder / "broker.pem"),
        )

    @property
    def kafka_with_certificate(self) -> Kafka:
        """The settings of a client of the listener that wants the client's certificate."""
        return settings(
            servers=f"127.0.0.1:{self.ports['MTLS']}",
            security_protocol="SSL",
            truststore=str(self.folder / "broker.pem"),
            keystore=str(self.folder / "client.p12"),
            keystore_password=STORE_PASSWORD,
        )

    def start(self) -> None:
        """Starts the broker; comes back when it answers."""
        with (self.folder / "broker.log").open("ab") as log:
            self._process = subprocess.Popen(_java("kafka.Kafka", self._properties), stdout=log, stderr=log)
        poll_until(self._answers, lambda: f"a broker that answers; its log ends with {self.log[-2000:]}", seconds=120)

    def kill(self) -> None:
        """Ends the broker by SIGKILL, in the middle of whatever it does."""
        if self._process is not None:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
            self._process = None

    def restart(self) -> None:
        """Kills the broker and starts it with the same data on the same ports."""
        self.kill()
        self.start()

    @property
    def pid(self) -> int:
        """The process, while it runs."""
        assert self._process is not None
        return self._process.pid

    @property
    def log(self) -> str:
        """What the broker has said."""
        return (self.folder / "broker.log").read_text(encoding="utf-8", errors="replace")

    def create(self, topic: str, *, partitions: int = 1, **configs: str) -> None:
        """Creates a topic; a property such as `retention.ms` is written `retention_ms`."""
        dotted = {name.replace("_", "."): value for name, value in configs.items()}
        with self.admin() as admin:
            wanted = {topic: {"num_partitions": partitions, "replication_factor": 1, "configs": dotted}}
            admin.create_topics(wanted, wait_for_metadata=True)

    def create_anew(self, topic: str) -> None:
        """Creates a topic without records, in place of one of another test."""
        with self.admin() as admin:
            is_there = topic in admin.list_topics()
        if is_there:
            self.delete(topic)
        self.create(topic)

    def delete(self, topic: str) -> None:
        """Deletes a topic; comes back when it is gone."""
        with self.admin() as admin:
            admin.delete_topics([topic])
            poll_until(lambda: topic not in admin.list_topics(), f"the end of topic {topic}")

    def forget(self, topic: str, *, before: int, partition: int = 0) -> None:
        """Deletes the records before an offset, as retention does."""
        with self.admin() as admin:
            admin.delete_records({TopicPartition(topic, partition): before})

    def add_user(self, name: str, password: str) -> None:
        """Lets a user log in with SCRAM."""
        with self.admin() as admin:
            user = UserScramCredentialUpsertion(name, "SCRAM-SHA-512", password)
            assert admin.alter_user_scram_credentials([user]) == {name: None}

    def send(
        self,
        topic: str,
        values: Iterable[bytes | None],
        *,
        key: bytes | None = None,
        headers: Sequence[tuple[str, bytes]] = (),
        partition: int | None = None,
    ) -> None:
        """Sends records, in order, tombstones for None; comes back when the broker has them."""
        producer = KafkaProducer(**client_options(self.kafka))
        about = {"key": key, "headers": list(headers), "partition": partition}
        try:
            for sent in [producer.send(topic, value, **about) for value in values]:
                sent.get(timeout=30)
        finally:
            producer.close()

    def records(self, topic: str) -> list[ConsumerRecord]:
        """Every record of a topic that is there now, by partition and offset."""
        consumer = KafkaConsumer(**client_options(self.kafka), group_id=None)
        try:
            partitions = [TopicPartition(topic, number) for number in consumer.partitions_for_topic(topic) or ()]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = consumer.end_offsets(partitions)
            found: list[ConsumerRecord] = []
            while any(consumer.position(each) < ends[each] for each in partitions):
                found += [record for batch in consumer.poll(1000).values() for record in batch]
            return sorted(found, key=lambda record: (record.partition, record.offset))
        finally:
            consumer.close()

    @contextmanager
    def admin(self) -> Iterator[Any]:
        """A client that administers the broker."""
        client = KafkaAdminClient(**client_options(self.kafka))
        try:
            yield client
        finally:
            client.close()

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _answers(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, f"the broker ended: {self.log[-2000:]}"
        # The port opens last. Before, kafka-python would leave a socket open for each look.
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", self.ports["PLAINTEXT"])):
                return False
        with self.admin() as admin:
            return bool(admin.describe_cluster())


@contextmanager
def running_broker(folder: Path, *, is_secured: bool = False) -> Iterator[Broker]:
    """A broker that answers; it does not outlive the block.

    Args:
        folder: An empty folder, which keeps data, certificates and the log.
        is_secured: Whether it also listens with TLS and SCRAM, and with TLS and certificates of clients.
    """
    names = [name for name in _LISTENERS if is_secured or name in {"PLAINTEXT", "CONTROLLER"}]
    broker = Broker(folder, dict(zip(names, _free_ports(len(names)), strict=True)))
    if is_secured:
        _make_certificates(folder)
    properties = _properties(broker) | (_security(folder) if is_secured else {})
    lines = [f"{name}={value}\n" for name, value in properties.items()]
    (folder / "server.properties").write_text("".join(lines), encoding="utf-8")
    _format(folder)
    try:
        broker.start()
        if is_secured:
            broker.add_user(USER, PASSWORD)
        yield broker
    finally:
        broker.kill()


def settings(**given: Any) -> Kafka:
    """The settings of a client of Kafka, with what is not given as in a new installation."""
    unset: dict[str, Any] = dict.fromkeys(Kafka.model_fields) | {"security_protocol": "PLAINTEXT", "options": {}}
    return Kafka(**unset | given)


def jars() -> Path:
    """The folder with the broker's jars, which the first call on a machine fetches."""
    cache = process_environment().get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    folder = Path(cache, "spark-app", "kafka-broker")
    folder.mkdir(parents=True, exist_ok=True)
    ensure_jars(note=lambda _: None, folder=folder, config=_LISTS)
    return folder


def _properties(broker: Broker) -> dict[str, str]:
    listeners = {name: f"{name}://127.0.0.1:{port}" for name, port in broker.ports.items()}
    return {
        "process.roles": "broker,controller",
        "node.id": "1",
        "listeners": ",".join(listeners.values()),
        "advertised.listeners": ",".join(url for name, url in listeners.items() if name != "CONTROLLER"),
        "listener.security.protocol.map": ",".join(f"{name}:{_LISTENERS[name]}" for name in listeners),
        "inter.broker.listener.name": "PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "controller.quorum.voters": f"1@127.0.0.1:{broker.ports['CONTROLLER']}",
        "log.dirs": str(broker.folder / "data"),
        "auto.create.topics.enable": "false",
        # A broker that was killed registers again when its old session ends.
        "broker.session.timeout.ms": "2000",
        "broker.heartbeat.interval.ms": "500",
        "group.initial.rebalance.delay.ms": "0",
        "num.io.threads": "2",
        "num.network.threads": "2",
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": "1",
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": "1",
        "transaction.state.log.min.isr": "1",
    }


def _security(folder: Path) -> dict[str, str]:
    return {
        "ssl.keystore.type": "PKCS12",
        "ssl.keystore.location": str(folder / "broker.p12"),
        "ssl.keystore.password": STORE_PASSWORD,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(folder / "client.pem"),
        "listener.name.mtls.ssl.client.auth": "required",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": f"{_SASL_MODULE} required;",
    }


def _make_certificates(folder: Path) -> None:
    """A key and a certificate that it signed itself, for the broker and for a client; the certificates also as PEM."""
    for name in ("broker", "client"):
        store = ["-keystore", folder / f"{name}.p12", "-storepass", STORE_PASSWORD, "-alias", name]
        names = ["-dname", f"CN={name}", "-ext", "SAN=ip:127.0.0.1,dns:localhost"]
        _keytool("-genkeypair", "-keyalg", "EC", "-validity", "2", *names, *store)
        _keytool("-exportcert", "-rfc", "-file", folder / f"{name}.pem", *store)


def _keytool(*arguments: object) -> None:
    command = [str(require_java().with_name("keytool")), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _format(folder: Path) -> None:
    command = _java("kafka.tools.StorageTool", "format", "-t", _CLUSTER, "-c", folder / "server.properties")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def _java(main: str, *arguments: object) -> list[str]:
    logging = next((spark_home() / "jars").glob("*slf4j-api-*"))
    return [str(require_java()), *_SMALL, "-cp", f"{jars()}/*:{logging}", main, *map(str, arguments)]


def _free_ports(count: int) -> list[int]:
    return list(islice(filter(_is_free, random.sample(_PORTS, len(_PORTS))), count))


def _is_free(port: int) -> bool:
    with socket.socket() as candidate:
        try:
            candidate.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
