from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from app.errors import ConfigError
from app.settings import config_folder, load_pipeline_config, load_settings, read_spark_properties, read_yaml


class Config(BaseModel):
    """A pipeline's configuration."""

    model_config = ConfigDict(extra="forbid")

    limit: float


def written(path: Path, text: str) -> Path:
    """A file with its folders."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def app_yml(folder: Path, old: str = "", new: str = "") -> Path:
    """A folder with the shipped settings, but for one text."""
    shipped = (config_folder() / "app.yml").read_text(encoding="utf-8")
    assert old in shipped
    return written(folder / "app.yml", shipped.replace(old, new)).parent


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key can be set by a variable, the nested ones too; an empty variable is none."""
    monkeypatch.setenv("SPARK_APP_RAW__PATH", "/landing")
    monkeypatch.setenv("SPARK_APP_ENVIRONMENT", "night")
    monkeypatch.setenv("SPARK_APP_CURRENCY", "")
    settings = load_settings(app_yml(tmp_path))
    assert (settings.raw_path, settings.environment, settings.currency) == ("/landing", "night", "EUR")
    assert not settings.is_demo


def test_null_in_the_environment_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the file can leave out, a variable can."""
    monkeypatch.setenv("SPARK_APP_BACKENDS__KIBANA", "null")
    monkeypatch.setenv("SPARK_APP_BACKENDS__JAEGER", "http://jaeger:16686")
    backends = load_settings().backends
    assert (backends.kibana, backends.jaeger, backends.grafana) == (
        None,
        "http://jaeger:16686",
        "http://localhost:3000",
    )


def test_the_demo_shop_is_where_no_source_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies below the home folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    settings = load_settings()
    assert settings.is_demo
    assert settings.raw_path == str(tmp_path / "data" / "raw")


def test_a_uri_is_left_as_it_is() -> None:
    """Only a relative path starts from the home folder."""
    settings = load_settings()
    assert settings.located("s3a://bucket/raw") == "s3a://bucket/raw"
    assert settings.located("/absolute") == "/absolute"
    assert settings.located("below") == str(settings.home / "below")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("currency: EUR", "currency: euro", r"app\.yml: currency: .*found 'euro'"),
        ("currency: EUR", "", r"app\.yml: key 'currency' is missing"),
        ("currency: EUR", "currency: EUR\ncolour: red", r"app\.yml: unknown key 'colour'; allowed are "),
        ("currency: EUR", "currency: [", r"app\.yml is not valid YAML: "),
        ("jaeger: http://", "jaeger: ", r"app\.yml: backends\.jaeger: .*found 'localhost:16686'"),
        ("kafka: localhost:9092", "kafka: localhost", r"app\.yml: backends\.kafka: .*found 'localhost'"),
        ("backends:", "backends:\n  jager: null", r"unknown key 'backends\.jager'; allowed are .*jaeger"),
    ],
)
def test_what_is_wrong_in_the_settings_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    """One line with the file, the key and what was found."""
    with pytest.raises(ConfigError, match=told) as raised:
        load_settings(app_yml(tmp_path, old, new))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "must hold keys and values"), ("- a\n", "must hold keys and values"), ("limit: much\n", "limit: ")],
)
def test_what_is_wrong_in_a_pipeline_config_is_named(tmp_path: Path, text: str, told: str) -> None:
    """An empty file, a list and a value of the wrong kind are errors of configuration."""
    written(tmp_path / "etl" / "x.yml", text)
    with pytest.raises(ConfigError, match=told):
        load_pipeline_config("etl.x", Config, tmp_path)


def test_a_config_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Missing, a folder, or no text."""
    with pytest.raises(ConfigError, match=r"cannot read configuration file .*gone\.yml: No such file"):
        read_yaml(tmp_path / "gone.yml")
    with pytest.raises(ConfigError, match="cannot read configuration file"):
        read_yaml(tmp_path)
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not valid YAML"):
        read_yaml(tmp_path / "binary.yml")


def test_spark_properties_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    """White space or `=` between key and value; comments and blank lines are none."""
    file = written(tmp_path / "d.conf", "# spark.a 1\n\nspark.a   x y\nspark.b=2\n spark.c = 3 \n")
    assert read_spark_properties(file) == {"spark.a": "x y", "spark.b": "2", "spark.c": "3"}
    with pytest.raises(ConfigError, match="cannot read Spark properties"):
        read_spark_properties(tmp_path / "gone.conf")
