import pytest

from app.demo.kafka_topics import KafkaTopics
from spark_app.errors import ConfigError


def test_a_login_by_kerberos_says_what_it_needs() -> None:
    """Before anything is sent: the package is no dependency, and its absence no bug."""
    with pytest.raises(ConfigError, match=r"kafka\.sasl_mechanism GSSAPI: .*install the Python package gssapi"):
        KafkaTopics({"bootstrap_servers": ["localhost:9"], "sasl_mechanism": "GSSAPI"})
