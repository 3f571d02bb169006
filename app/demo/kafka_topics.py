"""Generated records to topics of Kafka."""

import socket
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, Final

from kafka import KafkaProducer
from kafka.errors import KafkaError

from app.demo.event_records import TOPICS, Record
from spark_app.errors import ConfigError, MachineError
from spark_app.execution.kafka_topics import create_topics
from spark_app.vocabulary.names import TRACEPARENT

PARTITIONS: Final = 3
LINGER_MS: Final = 20
CONNECT_SECONDS: Final = 10
DELIVERY_SECONDS: Final = 120


class KafkaTopics:
    """Sends records with their keys and trace contexts; the broker acknowledges each once (idempotence)."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        """Connects, with options of kafka-python's clients, and creates topics that are missing.

        Raises:
            ConfigError: The login is by Kerberos, which Python lacks.
            MachineError: The broker does not answer or refuses.
        """
        self._servers, self._failures = ",".join(options["bootstrap_servers"]), list[BaseException]()
        if options.get("sasl_mechanism") == "GSSAPI" and find_spec("gssapi") is None:
            raise ConfigError(
                "kafka.sasl_mechanism GSSAPI: Python cannot log in by Kerberos; install the Python package gssapi and "
                "the Kerberos libraries of the system beside spark-app, or send records to files: --to files"
            )
        _require_reachable(options["bootstrap_servers"])
        with self._refusals():
            create_topics(options, dict.fromkeys(TOPICS, PARTITIONS))
            self._producer = KafkaProducer(**options, linger_ms=LINGER_MS)

    def send(self, records: Sequence[Record]) -> None:
        """Hands records to the producer, which sends them in the background.

        Raises:
            MachineError: An earlier record could not be delivered.
        """
        with self._refusals():
            for record in records:
                headers = [(TRACEPARENT, record.traceparent.encode())]
                sent = self._producer.send(record.topic, key=record.key, value=record.value, headers=headers)
                sent.add_errback(self._failures.append)
                if self._failures:
                    raise self._failures[0]

    def close(self) -> None:
        """Waits until the broker has acknowledged every record.

        Raises:
            MachineError: It has not.
        """
        with self._refusals():
            try:
                self._producer.flush(timeout=DELIVERY_SECONDS)
            finally:
                self._producer.close(timeout=1)
            if self._failures:
                raise self._failures[0]

    @contextmanager
    def _refusals(self) -> Iterator[None]:
        try:
            yield
        except KafkaError as error:
            raise MachineError(f"cannot send records to Kafka at {self._servers}: {error}") from error


def _require_reachable(servers: Sequence[str]) -> None:
    """Checks that a broker listens; kafka-python would try for half a minute, and leave sockets open."""
    why: object = "no server is configured"
    for server in servers:
        host, _, port = server.rpartition(":")
        try:
            socket.create_connection((host.strip("[]"), int(port)), CONNECT_SECONDS).close()
        except OSError as error:
            why = error.strerror or error
        else:
            return
    raise MachineError(f"cannot reach Kafka at {','.join(servers)}: {why}; start it, or change kafka.servers")
