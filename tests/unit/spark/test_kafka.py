from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_app.errors import ConfigError
from spark_app.spark.kafka import client_options, sink_options, source_options
from tests.kafka import PASSWORD, settings


def with_password(mechanism: str = "SCRAM-SHA-512", **given: Any) -> dict[str, str]:
    """Options of a source that logs in."""
    login = {"security_protocol": "SASL_SSL", "sasl_mechanism": mechanism, "username": 'sh"op', "password": PASSWORD}
    return source_options(settings(servers="a:1", **login | given))


def parsed(spark: SparkSession, line: str) -> dict[str, str]:
    """The login module and its options, as Kafka's own client reads a JAAS line."""
    jvm: Any = spark.sparkContext._jvm
    password = jvm.org.apache.kafka.common.config.types.Password(line)
    configs = {"sasl.jaas.config": password}
    context = jvm.org.apache.kafka.common.security.JaasContext.loadClientContext(configs)
    entry = context.configurationEntries()[0]
    return {"module": entry.getLoginModuleName().rpartition(".")[2], **dict(entry.getOptions())}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_password_is_read_by_kafka_as_it_was_given(spark: SparkSession, mechanism: str) -> None:
    """Quotes, backslashes, semicolons and line breaks are escaped."""
    for password in (PASSWORD, "\\", "a\nb\r", "'\t ;"):
        line = with_password(mechanism, password=password)["kafka.sasl.jaas.config"]
        module = "PlainLoginModule" if mechanism == "PLAIN" else "ScramLoginModule"
        assert parsed(spark, line) == {"module": module, "username": 'sh"op', "password": password}


def test_kerberos_uses_the_keytab_or_else_the_ticket_cache(spark: SparkSession) -> None:
    """No password is in the line."""
    given = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "GSSAPI", "kerberos_service_name": "kafka"}
    keytab = {"kerberos_keytab": "/a b.keytab", "kerberos_principal": "shop@X"}
    assert parsed(spark, source_options(settings(**given))["kafka.sasl.jaas.config"]) == {
        "module": "Krb5LoginModule",
        "useTicketCache": "true",
    }
    options = source_options(settings(**given | keytab))
    assert options["kafka.sasl.kerberos.service.name"] == "kafka"
    assert parsed(spark, options["kafka.sasl.jaas.config"]) == {
        "module": "Krb5LoginModule",
        "useKeyTab": "true",
        "storeKey": "true",
        "keyTab": "/a b.keytab",
        "principal": "shop@X",
    }


def test_the_source_reads_everything_and_loses_nothing() -> None:
    """All records from the first, with headers; and no security where none is configured."""
    options = source_options(settings(servers="a:1,b:2"))
    assert options["kafka.bootstrap.servers"] == "a:1,b:2"
    assert (options["startingOffsets"], options["failOnDataLoss"], options["includeHeaders"]) == (
        "earliest",
        "true",
        "true",
    )
    assert sink_options(settings(servers="a:1")) == {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "PLAINTEXT",
    }


def test_the_options_of_the_user_win() -> None:
    """They are passed to the source and the sink as they are."""
    own = settings(servers="a:1", options={"minPartitions": "4", "kafka.request.timeout.ms": "7"})
    assert source_options(own).items() >= {("minPartitions", "4"), ("kafka.request.timeout.ms", "7")}
    assert sink_options(own)["kafka.request.timeout.ms"] == "7"


def test_the_kind_of_a_store_is_that_of_its_suffix() -> None:
    """Java would take each for its default."""
    stores = settings(servers="a:1", security_protocol="SSL", truststore="ca.pem", keystore="me.P12", key_password="x")
    options = sink_options(stores)
    assert (options["kafka.ssl.truststore.type"], options["kafka.ssl.keystore.type"]) == ("PEM", "PKCS12")
    assert options["kafka.ssl.key.password"] == "x"
    with pytest.raises(ConfigError, match=r"^kafka\.truststore: ca\.crt must be one of \.pem, "):
        sink_options(settings(truststore="ca.crt"))


def test_python_reads_pem_only() -> None:
    """The message says what to do."""
    assert client_options(settings(servers="a:1,b:2", truststore="ca.pem")) == {
        "bootstrap_servers": ["a:1", "b:2"],
        "security_protocol": "PLAINTEXT",
        "ssl_cafile": "ca.pem",
    }
    with pytest.raises(ConfigError, match=r"^kafka\.keystore: me\.p12 is not PEM, .*: export it with"):
        client_options(settings(servers="a:1", keystore="me.p12"))
