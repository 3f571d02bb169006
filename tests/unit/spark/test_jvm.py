"""What a JVM is started with."""

from pathlib import Path
from typing import Any

import pytest

from spark_app.spark import jvm


def test_no_secret_is_on_the_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The session sets it once the JVM is there; other properties are needed at its start."""
    started: list[Any] = []
    monkeypatch.setattr(jvm, "launch_gateway", lambda conf, _: started.append(dict(conf.getAll())))
    secrets = {"spark.authenticate.secret": "a", "spark.ssl.keyPassword": "b", "spark.ssl.ui.keyStorePassword": "c"}
    others = {"spark.authenticate": "true", "spark.ssl.keyStore": "/tls/keystore.p12", "spark.master": "local[1]"}
    jvm.launch_jvm(others | secrets, tmp_path / "log")
    assert started == [others]
