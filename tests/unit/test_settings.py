from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

from app.errors import ConfigError
from app.settings import config_folder, load_pipeline_config, load_settings


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
        ("currency: EUR", "currency: EUR\nhome: /x", r"app\.yml: 'home' cannot be set here: set SPARK_APP_HOME"),
        (
            "currency: EUR",
            "currency: EUR\nconfig: /x",
            r"app\.yml: 'config' cannot be set here: use the option --config",
        ),
        ("runs: runs", "runs: s3a://b/runs", r"app\.yml: runs: .*must be a folder of this machine, not an address"),
    ],
)
def test_what_is_wrong_in_the_settings_is_named(tmp_path: Path, old: str, new: str, told: str) -> None:
    """One line with the file, the key and what was found."""
    with pytest.raises(ConfigError, match=told) as raised:
        load_settings(app_yml(tmp_path, old, new))
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("SPARK_APP_CURRENCY", "euro", r"^SPARK_APP_CURRENCY: .*found 'euro'"),
        ("SPARK_APP_RAW", "x", r"^SPARK_APP_RAW cannot be read: set SPARK_APP_RAW__<KEY>"),
        ("SPARK_APP_RAW", '{"path": 1}', r"^SPARK_APP_RAW: raw\.path: .*found 1"),
        ("SPARK_APP_RAW__FORMAT", "csv", r"^SPARK_APP_RAW__FORMAT: unknown key 'raw\.format'; allowed are customers, "),
        ("SPARK_APP_WAREHOSE", "x", r"^unknown variable SPARK_APP_WAREHOSE; allowed are .*SPARK_APP_WAREHOUSE"),
        ("SPARK_APP_CONFIG", "x", "^unknown variable SPARK_APP_CONFIG; allowed are "),
    ],
)
def test_what_is_wrong_in_a_variable_is_told_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, told: str
) -> None:
    """The file, which says something else, is not blamed."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=told) as raised:
        load_settings()
    assert "app.yml" not in str(raised.value)


def test_a_variable_of_compose_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `.env` sets for the stack may be exported."""
    monkeypatch.setenv("SPARK_APP_IMAGE", "spark-app:0.1.0")
    load_settings()


@pytest.mark.parametrize(
    ("text", "told"),
    [("", "must hold keys and values"), ("- a\n", "must hold keys and values"), ("limit: much\n", "limit: ")],
)
def test_what_is_wrong_in_a_pipeline_config_is_named(tmp_path: Path, text: str, told: str) -> None:
    """An empty file, a list and a value of the wrong kind are errors of configuration."""
    written(tmp_path / "etl" / "x.yml", text)
    with pytest.raises(ConfigError, match=told):
        load_pipeline_config("etl.x", Config, tmp_path)
