import os
import shutil
from pathlib import Path

import pytest
from pydantic import BaseModel, ConfigDict

import spark_app.settings
from spark_app.errors import ConfigError
from spark_app.settings import config_folder, load_pipeline_config, load_settings, read_spark_properties, read_yaml


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
    return written(folder / "app.yml", shipped.replace(old, new, 1)).parent


def test_the_environment_wins_over_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each key can be set by a variable, the nested ones too; an empty variable is none."""
    monkeypatch.setenv("SPARK_APP_RAW__PATH", "/landing")
    monkeypatch.setenv("SPARK_APP_ENVIRONMENT", "night")
    monkeypatch.setenv("SPARK_APP_CURRENCY", "")
    settings = load_settings(app_yml(tmp_path))
    assert (settings.raw_path, settings.environment, settings.currency) == ("/landing", "night", "EUR")
    assert not settings.is_demo


def test_a_key_that_the_file_does_not_have_is_as_shipped(tmp_path: Path) -> None:
    """So a project says only what it wants otherwise; names that a user chooses are not mixed with those shipped."""
    folder = written(tmp_path / "config" / "app.yml", "currency: CHF\nraw: {formats: {orders: csv}}\n").parent
    own, shipped = load_settings(folder), load_settings()
    assert (own.currency, own.raw.formats) == ("CHF", {"orders": "csv"})
    assert (own.raw.path, own.kafka, own.retention) == (shipped.raw.path, shipped.kafka, shipped.retention)


def test_a_project_has_its_configuration_and_its_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From any folder below it; one without a file has what is shipped."""
    written(tmp_path / "shop" / "pyproject.toml", "[tool.spark-app]\npackage = 'shop'\n")
    (tmp_path / "shop" / "jobs").mkdir()
    monkeypatch.chdir(tmp_path / "shop" / "jobs")
    assert (load_settings().home, load_settings().config) == (tmp_path / "shop", config_folder())
    written(tmp_path / "shop" / "config" / "app.yml", "currency: CHF\n")
    assert (load_settings().home, load_settings().currency) == (tmp_path / "shop", "CHF")


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


def test_addresses_have_the_ports_of_env_local(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that Compose publishes: the shell overrides the file, and what is no port is not meant for Compose."""
    folder = app_yml(tmp_path / "config")
    written(tmp_path / ".env.local", "# mine\nexport KAFKA_PORT='9192' # moved\nJAEGER_PORT=26686\nGRAFANA_PORT=\n")
    monkeypatch.setenv("JAEGER_PORT", "36686")
    monkeypatch.setenv("KIBANA_PORT", "tcp://10.0.0.1:5601")
    backends = load_settings(folder).backends
    assert (backends.kafka, backends.jaeger) == ("localhost:9192", "http://localhost:36686")
    assert (backends.grafana, backends.kibana) == ("http://localhost:3000", "http://localhost:5601")
    monkeypatch.setenv("SPARK_APP_BACKENDS__JAEGER", "https://jaeger.example")
    assert load_settings(folder).backends.jaeger == "https://jaeger.example"
    written(tmp_path / "stack" / ".env.local", "GRAFANA_PORT=3001\n")
    assert load_settings(folder).backends.grafana == "http://localhost:3001", "of a stack that init has written"


def test_addresses_have_the_scheme_of_the_stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By HTTPS where it runs with TLS; Kafka's has none, and another scheme is not meant."""
    folder = app_yml(tmp_path / "config")
    written(tmp_path / ".env.local", "STACK_SCHEME=https\n")
    backends = load_settings(folder).backends
    assert (backends.jaeger, backends.kafka) == ("https://localhost:16686", "localhost:9092")
    monkeypatch.setenv("STACK_SCHEME", "ftp")
    assert load_settings(folder).backends.jaeger == "http://localhost:16686"


def test_the_demo_shop_is_where_no_source_is_configured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It lies below the home folder."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    settings = load_settings()
    assert settings.is_demo
    assert settings.raw_path == str(tmp_path / "data" / "raw")


def test_relative_paths_start_at_the_folder_that_contains_the_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the clone and of `--config` alike, however the folder is written; the environment wins."""
    assert load_settings().home == config_folder().parent
    app_yml(tmp_path / "shop" / "config")
    monkeypatch.chdir(tmp_path / "shop")
    assert load_settings(Path("config")).home == tmp_path / "shop"
    monkeypatch.chdir(tmp_path / "shop" / "config")
    assert load_settings(Path()).events_path == tmp_path / "shop" / "spark-events"
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    assert load_settings(Path()).raw_path == str(tmp_path / "home" / "data" / "raw")


def test_inputs_of_a_file_are_in_the_project_wherever_its_home_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in the stack, where a project is read-only; those of the environment are where it has its home."""
    folder = written(tmp_path / "shop" / "config" / "app.yml", "raw: {path: raw}\nstream: {landing: landing}\n").parent
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    settings = load_settings(folder)
    assert (settings.raw_path, settings.landing_path) == (
        str(tmp_path / "shop" / "raw"),
        str(tmp_path / "shop" / "landing"),
    )
    assert settings.warehouse_path == str(tmp_path / "home" / "data" / "warehouse")
    monkeypatch.setenv("SPARK_APP_RAW__PATH", "raw")
    assert load_settings(folder).raw_path == str(tmp_path / "home" / "raw")
    monkeypatch.delenv("SPARK_APP_RAW__PATH")
    written(folder / "app.yml", "raw: {path: 's3://bucket/raw'}\n")
    assert load_settings(folder).raw_path == "s3://bucket/raw"


def test_the_file_of_a_cluster_is_beside_the_configuration_or_in_the_project(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stack names that of the image, whatever the configuration is."""
    monkeypatch.setenv("SPARK_APP_CLUSTER", "config/spark/cluster.conf")
    folder = app_yml(tmp_path / "config")
    assert load_settings(folder).spark_properties["spark.master"].startswith("spark://")
    written(folder / "spark" / "cluster.conf", "spark.master yarn\n")
    assert load_settings(folder).spark_properties["spark.master"] == "yarn"


@pytest.fixture
def wheel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The package folder of an installed wheel, with its copy of the configuration."""
    package = tmp_path / "site-packages" / "spark_app"
    shutil.copytree(config_folder(), package / "config")
    monkeypatch.setattr(spark_app.settings, "PACKAGED", package / "config")
    monkeypatch.setattr(spark_app.settings, "IS_INSTALLED", True)
    return package


def test_an_installed_wheel_writes_to_the_current_project(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its built-in configuration is below the package, where nothing is written, also where `--config` names it."""
    deep = tmp_path / "shop" / "jobs"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert load_settings().home == deep / ".spark-app"
    (tmp_path / "shop" / "pyproject.toml").touch()
    settings = load_settings(wheel / "config")
    assert (settings.config, settings.home) == (wheel / "config", tmp_path / "shop" / ".spark-app")
    assert settings.spark_properties
    assert load_settings(app_yml(tmp_path / "own" / "config")).home == tmp_path / "own"
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path / "home"))
    assert load_settings().home == tmp_path / "home"


def test_an_installed_wheel_writes_to_the_folder_of_the_user_where_it_cannot_write_to_the_project(
    wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a read-only checkout."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, _mode: not wheel.is_relative_to(path))  # root may write anywhere
    monkeypatch.setenv("XDG_STATE_HOME", "")
    monkeypatch.setenv("HOME", "/users/me")
    assert load_settings().home == Path("/users/me/.local/state/spark-app")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert load_settings().home == Path("/state/spark-app")


def test_a_uri_is_left_as_it_is() -> None:
    """Only a relative path starts from the home folder."""
    settings = load_settings()
    assert settings.located("s3a://bucket/raw") == "s3a://bucket/raw"
    assert settings.located("/absolute") == "/absolute"
    assert settings.located("below") == str(settings.home / "below")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("currency: EUR", "currency: euro", r"app\.yml:\d+: currency: .*found 'euro'"),
        ("currency: EUR", "currency: EUR\ncolour: red", r"app\.yml:\d+: unknown key 'colour'; allowed are "),
        ("currency: EUR", "currency: [", r"app\.yml is not valid YAML: "),
        ("jaeger: ${STACK_SCHEME:-http}://", "jaeger: ", r"app\.yml:\d+: backends\.jaeger: .*found 'localhost:16686'"),
        (
            "kafka: localhost:${KAFKA_PORT:-9092}",
            "kafka: localhost",
            r"app\.yml:\d+: backends\.kafka: .*found 'localhost'",
        ),
        (
            "backends:",
            "backends:\n  jager: null",
            r"unknown key 'backends\.jager'; do you mean jaeger\? allowed are .*jaeger",
        ),
        (
            "backends_inside: {}",
            "backends_inside: {jager: x}",
            r"backends_inside: .*jager is none of backends",
        ),
        ("backends_inside: {}", "backends_inside: {kafka: broker}", r"backends_inside\.kafka: .*broker"),
        ("currency: EUR", "currency: EUR\nhome: /x", r"app\.yml: 'home' cannot be set here: set SPARK_APP_HOME"),
        (
            "currency: EUR",
            "currency: EUR\nconfig: /x",
            r"app\.yml: 'config' cannot be set here: use the option --config",
        ),
        ("labels:", "labels:\n  Team: spark.team", r"app\.yml:\d+: labels\.Team.*"),
        ("labels:", "labels:\n  owner: team", r"app\.yml:\d+: labels\.owner.*found 'team'"),
        ("labels:", "labels:\n  owner: spark.token", r"app\.yml:\d+: labels\.owner\.0: is the name of a secret"),
        ("runs: runs", "runs: s3a://b/runs", r"app\.yml:\d+: runs: .*must be a local folder, not a URI"),
    ],
)
def test_what_is_wrong_in_the_settings_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    """One line with the file, the key and what was found."""
    with pytest.raises(ConfigError, match=message) as raised:
        load_settings(app_yml(tmp_path, old, new))
    assert "\n" not in str(raised.value)


def test_labels_are_added_replaced_and_taken_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the file, and by the variable as JSON; the others stay."""
    monkeypatch.setenv("SPARK_APP_LABELS", '{"cost_center": ["spark.cost"]}')
    folder = written(tmp_path / "config" / "app.yml", "labels: {team: spark.squad, queue: null}\n").parent
    found = load_settings(folder).label_properties
    assert (found["team"], found["cost_center"]) == (["spark.squad"], ["spark.cost"])
    assert list(found) == ["user", "namespace", "cluster", "team", "databricks_cluster", "tags", "cost_center"]


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("SPARK_APP_CURRENCY", "euro", r"^SPARK_APP_CURRENCY: .*found 'euro'"),
        ("SPARK_APP_RAW", "x", r"^SPARK_APP_RAW cannot be read: set SPARK_APP_RAW__<KEY>"),
        ("SPARK_APP_RAW", '{"path": 1}', r"^SPARK_APP_RAW: raw\.path: .*found 1"),
        (
            "SPARK_APP_RAW__FORMAT",
            "csv",
            r"^SPARK_APP_RAW__FORMAT: unknown key 'raw\.format'; do you mean formats\? allowed are csv, formats, path",
        ),
        ("SPARK_APP_WAREHOSE", "x", r"^unknown variable SPARK_APP_WAREHOSE; allowed are .*SPARK_APP_WAREHOUSE"),
        ("SPARK_APP_CONFIG", "x", "^unknown variable SPARK_APP_CONFIG; allowed are "),
    ],
)
def test_what_is_wrong_in_a_variable_is_told_of_the_variable(
    monkeypatch: pytest.MonkeyPatch, name: str, value: str, message: str
) -> None:
    """The file, which says something else, is not blamed."""
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message) as raised:
        load_settings()
    assert "app.yml" not in str(raised.value)


def test_a_variable_of_compose_is_none_of_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """What `.env` sets for the stack may be exported."""
    monkeypatch.setenv("SPARK_APP_IMAGE", "spark-app:0.1.0")
    load_settings()


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "must hold keys and values"), ("- a\n", "must hold keys and values"), ("limit: much\n", "limit: ")],
)
def test_what_is_wrong_in_a_pipeline_config_is_named(tmp_path: Path, text: str, message: str) -> None:
    """An empty file, a list and a value of the wrong kind are errors of configuration."""
    written(tmp_path / "etl" / "x.yml", text)
    with pytest.raises(ConfigError, match=message):
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
    file = tmp_path / "d.conf"
    file.write_text("# spark.a 1\n\nspark.a   x y\nspark.b=2\n spark.c = 3 \n")
    assert read_spark_properties(file) == {"spark.a": "x y", "spark.b": "2", "spark.c": "3"}
    with pytest.raises(ConfigError, match="cannot read Spark properties"):
        read_spark_properties(tmp_path / "gone.conf")
    file.write_bytes(b"spark.a \xff")
    with pytest.raises(ConfigError, match=r"cannot read Spark properties .*d\.conf: it is not UTF-8"):
        read_spark_properties(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("2024: x\n", "the key 2024 is not a string"),
        ("on: x\n", "the key True is not a string"),
        ("a: 1\nb: 2\na: 3\n", "duplicate key 'a' .*line 1"),
        ("a:\n  b: 1\n  b: 2\n", "duplicate key 'b' .*line 2"),
    ],
)
def test_a_key_that_is_not_what_it_seems_is_refused(tmp_path: Path, text: str, message: str) -> None:
    """YAML takes `on` for true, and the last of two silently."""
    (tmp_path / "x.yml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        read_yaml(tmp_path / "x.yml")


def test_a_secret_in_a_file_is_refused(tmp_path: Path) -> None:
    """The message names the key and the variable to set, and not the secret."""
    with pytest.raises(ConfigError) as raised:
        load_settings(app_yml(tmp_path, "  password: null", "  password: sesame"))
    assert str(raised.value).endswith(
        "'kafka.password' is a secret and must not be in a file: set SPARK_APP_KAFKA__PASSWORD"
    )
    with pytest.raises(
        ConfigError, match=r"'kafka\.options\.kafka\.ssl\.key\.password' .*: set SPARK_APP_KAFKA__OPTIONS$"
    ):
        load_settings(app_yml(tmp_path, "options: {}", 'options: {kafka.ssl.key.password: "sesame"}'))


def test_a_secret_of_the_environment_is_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither by the settings nor by the message about another key or about its own type."""
    for name, value in {"PASSWORD": "sesame", "USERNAME": "shop", "OPTIONS": '{"kafka.x": "sesame"}'}.items():
        monkeypatch.setenv(f"SPARK_APP_KAFKA__{name}", value)
    settings = load_settings()
    assert settings.kafka.password is not None
    assert settings.kafka.password.get_secret_value() == "sesame"
    assert "sesame" not in f"{settings!r} {settings.model_dump_json()}"
    monkeypatch.setenv("SPARK_APP_KAFKA", '{"password": ["sesame"]}')
    monkeypatch.delenv("SPARK_APP_KAFKA__PASSWORD")
    with pytest.raises(ConfigError, match=r"^SPARK_APP_KAFKA: kafka\.password: .*found \(redacted\)") as raised:
        load_settings()
    assert "sesame" not in str(raised.value)


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"SERVERS": "localhost"}, r"^SPARK_APP_KAFKA__SERVERS: .*found 'localhost'"),
        ({"SECURITY_PROTOCOL": "SASL_SSL"}, "security_protocol SASL_SSL does not fit sasl_mechanism None$"),
        ({"SASL_MECHANISM": "PLAIN"}, "security_protocol PLAINTEXT does not fit sasl_mechanism PLAIN$"),
        (
            {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_MECHANISM": "PLAIN", "USERNAME": "shop"},
            "sasl_mechanism PLAIN needs username and SPARK_APP_KAFKA__PASSWORD$",
        ),
        ({"KERBEROS_KEYTAB": "a.keytab"}, "kerberos_keytab and kerberos_principal belong together$"),
    ],
)
def test_kafka_settings_that_do_not_fit_each_other_are_refused(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], message: str
) -> None:
    """A client would fail later, with a message of Java."""
    for name, value in variables.items():
        monkeypatch.setenv(f"SPARK_APP_KAFKA__{name}", value)
    with pytest.raises(ConfigError, match=message):
        load_settings()


def test_streaming_queries_have_properties_of_their_own(tmp_path: Path) -> None:
    """Those of the given configuration folder, or else of the project."""
    assert load_settings().stream_properties["spark.sql.shuffle.partitions"] == "4"
    shutil.copytree(config_folder(), tmp_path / "config")
    (tmp_path / "config" / "spark" / "streaming.conf").write_text("spark.sql.shuffle.partitions 64\n", encoding="utf-8")
    assert load_settings(tmp_path / "config").stream_properties == {"spark.sql.shuffle.partitions": "64"}
