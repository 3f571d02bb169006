"""The Kafka settings as options of Spark's source and sink, and of kafka-python."""

import re
from collections.abc import Iterator
from pathlib import PurePath
from types import MappingProxyType
from typing import Any, Final

from pydantic import SecretStr

from spark_app.errors import ConfigError
from spark_app.settings import Kafka

_STORE_TYPES: Final = MappingProxyType({".pem": "PEM", ".p12": "PKCS12", ".pfx": "PKCS12", ".jks": "JKS"})
_LOGIN_MODULES: Final = MappingProxyType(
    {
        "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
        "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
        "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
        "GSSAPI": "com.sun.security.auth.module.Krb5LoginModule",
    }
)
_ESCAPED: Final = MappingProxyType({'"': r"\"", "\\": r"\\", "\n": r"\n", "\r": r"\r"})
# A broker that is away is a failure after some seconds, which the query reports, and not after a minute of silence.
_PATIENCE: Final = MappingProxyType({"kafka.default.api.timeout.ms": "20000", "kafka.request.timeout.ms": "15000"})


def source_options(kafka: Kafka) -> dict[str, str]:
    """Options of Spark's Kafka source: all records that the topic has, with headers; lost records are an error.

    Raises:
        ConfigError: A store has an unknown suffix.
    """
    reading = {"includeHeaders": "true", "startingOffsets": "earliest", "failOnDataLoss": "true"}
    return reading | _PATIENCE | _connection(kafka)


def sink_options(kafka: Kafka) -> dict[str, str]:
    """Options of Spark's Kafka sink.

    Raises:
        ConfigError: A store has an unknown suffix.
    """
    return _connection(kafka)


def client_options(kafka: Kafka) -> dict[str, Any]:
    """Arguments of the clients of kafka-python: KafkaProducer, KafkaConsumer, KafkaAdminClient.

    Raises:
        ConfigError: A store is not PEM, which is the only kind that Python reads.
    """
    options: dict[str, Any] = {
        "bootstrap_servers": (kafka.servers or "").split(","),
        "security_protocol": kafka.security_protocol,
        "sasl_mechanism": kafka.sasl_mechanism,
        "sasl_plain_username": kafka.username,
        "sasl_plain_password": _plain(kafka.password),
        "sasl_kerberos_service_name": kafka.kerberos_service_name,
        "ssl_cafile": _pem("truststore", kafka.truststore),
        "ssl_certfile": _pem("keystore", kafka.keystore),
        "ssl_password": _plain(kafka.key_password),
    }
    return {name: value for name, value in options.items() if value is not None}


def _connection(kafka: Kafka) -> dict[str, str]:
    given = {
        "bootstrap.servers": kafka.servers,
        "security.protocol": kafka.security_protocol,
        "sasl.mechanism": kafka.sasl_mechanism,
        "sasl.kerberos.service.name": kafka.kerberos_service_name,
        "sasl.jaas.config": _jaas(kafka),
        "ssl.key.password": _plain(kafka.key_password),
        **_store("truststore", kafka.truststore, kafka.truststore_password),
        **_store("keystore", kafka.keystore, kafka.keystore_password),
    }
    own = {name: option.get_secret_value() for name, option in kafka.options.items()}
    return {f"kafka.{name}": value for name, value in given.items() if value is not None} | own


def _store(name: str, file: str | None, password: SecretStr | None) -> dict[str, str | None]:
    kind = _store_type(name, file) if file else None
    return {f"ssl.{name}.location": file, f"ssl.{name}.type": kind, f"ssl.{name}.password": _plain(password)}


def _store_type(name: str, file: str) -> str:
    kind = _STORE_TYPES.get(PurePath(file).suffix.lower())
    if kind is None:
        raise ConfigError(f"kafka.{name}: {file} must be one of {', '.join(_STORE_TYPES)}")
    return kind


def _pem(name: str, file: str | None) -> str | None:
    if file is not None and _store_type(name, file) != "PEM":
        raise ConfigError(f"kafka.{name}: {file} is not PEM, which Python needs: export it with keytool or openssl")
    return file


def _jaas(kafka: Kafka) -> str | None:
    """The line that logs in; None without a login, or if an option of the user has it."""
    module = _LOGIN_MODULES.get(kafka.sasl_mechanism or "")
    if module is None:
        return None
    words = (f"{name}={_quoted(value)}" for name, value in _login(kafka))
    return f"{module} required {' '.join(words)};"


def _login(kafka: Kafka) -> Iterator[tuple[str, str]]:
    if kafka.sasl_mechanism != "GSSAPI":
        yield "username", kafka.username or ""
        yield "password", _plain(kafka.password) or ""
    elif kafka.kerberos_keytab and kafka.kerberos_principal:
        yield from (("useKeyTab", "true"), ("storeKey", "true"))
        yield from (("keyTab", kafka.kerberos_keytab), ("principal", kafka.kerberos_principal))
    else:
        yield "useTicketCache", "true"


def _quoted(value: str) -> str:
    """A value as Kafka's parser of JAAS lines reads it."""
    return '"' + re.sub(r'["\\\n\r]', lambda match: _ESCAPED[match[0]], value) + '"'


def _plain(password: SecretStr | None) -> str | None:
    return password.get_secret_value() if password is not None else None
