"""Generated records to topics of Kafka."""

import socket
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaError

from app.demo.event_records import TOPICS, Record
from spark_app.errors import ConfigError, MachineError
from spark_app.execution.kafka_topics import create_topics
from spark_app.telemetry.names import TRACEPARENT

PARTITIONS: Final = 3
LINGER_MS: Final = 20
CONNECT_SECONDS: Final = 10
DELIVERY_SECONDS: Final = 120


class KafkaTopics:
    """Sends records with their keys and trace contexts; the broker acknowledges each once (idempotence)."""

    def __init__(self, options: Mapping[str, Any], *, partitions: int = PARTITIONS) -> None:
        """Connects, and creates topics that are missing.

        Args:
            options: Of kafka-python's clients: `bootstrap_servers`, security.
            partitions: Of a topic that is created.

        Raises:
            ConfigError: The login is by Kerberos, which Python lacks.
            MachineError: The broker does not answer or refuses.
        """
        self._servers = ",".join(options["bootstrap_servers"])
        self._failures: list[BaseException] = []
        _require_kerberos(options)
        require_reachable(options["bootstrap_servers"])
        try:
            create_topics(options, dict.fromkeys(TOPICS, partitions))
            self._producer = KafkaProducer(**options, linger_ms=LINGER_MS)
        except KafkaError as error:
            raise self._failed(error) from error

    def send(self, records: Sequence[Record]) -> None:
        """Hands records to the producer, which sends them in the background.

        Raises:
            MachineError: An earlier record could not be delivered.
        """
        for record in records:
            if self._failures:
                raise self._failed(self._failures[0]) from self._failures[0]
            headers = [(TRACEPARENT, record.traceparent.encode())]
            try:
                sent = self._producer.send(record.topic, key=record.key, value=record.value, headers=headers)
            except KafkaError as error:
                raise self._failed(error) from error
            sent.add_errback(self._failures.append)

    def close(self) -> None:
        """Waits until the broker has acknowledged every record.

        Raises:
            MachineError: It has not.
        """
        try:
            self._producer.flush(timeout=DELIVERY_SECONDS)
        except KafkaError as error:
            raise self._failed(error) from error
        finally:
            self._producer.close(timeout=1)
        if self._failures:
            raise self._failed(self._failures[0])

    def _failed(self, error: BaseException) -> MachineError:
        return MachineError(f"cannot send records to Kafka at {self._servers}: {error}")


def _require_kerberos(options: Mapping[str, Any]) -> None:
    if options.get("sasl_mechanism") != "GSSAPI":
        return
    try:
        import_module("gssapi")
    except (ImportError, OSError) as error:
        raise ConfigError(
            f"kafka.sasl_mechanism GSSAPI: Python cannot log in by Kerberos ({error}); install the Python package "
            "gssapi and the Kerberos libraries of the system beside spark-app, or send records to files: --to files"
        ) from error


def require_reachable(servers: Sequence[str]) -> None:
    """Checks that a broker listens; kafka-python would try for half a minute, and leave sockets open.

    Raises:
        MachineError: None does.
    """
    problem: OSError | None = None
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except OSError as error:
            problem = error
        else:
            return
    why = problem.strerror or problem if problem else "no server is configured"
    raise MachineError(f"cannot reach Kafka at {','.join(servers)}: {why}; start it, or change kafka.servers")
