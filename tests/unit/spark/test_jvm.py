"""What a JVM is started with."""

from itertools import pairwise

from spark_app.spark import jvm


def test_no_secret_is_on_the_command_line() -> None:
    """The session sets it once the JVM is there; other properties are needed at its start."""
    secrets = {"spark.authenticate.secret": "a", "spark.ssl.keyPassword": "b", "spark.ssl.ui.keyStorePassword": "c"}
    others = {"spark.authenticate": "true", "spark.ssl.keyStore": "/tls/keystore.p12", "spark.master": "local[1]"}
    command = jvm.submit_command(others | secrets)
    given = [word for before, word in pairwise(command) if before == "--conf"]
    assert given == [f"{name}={value}" for name, value in others.items()]
