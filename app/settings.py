"""Reads configuration and the environment into typed settings; nothing else in the program reads either."""

import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from app.errors import ConfigError

PROJECT: Final = Path(__file__).resolve().parent.parent
DEMO_RAW: Final = "data/raw"

RawFormat = Literal["json", "csv", "parquet"]
Source = Literal["transactions", "customers"]
Url = Annotated[str, Field(pattern=r"^https?://[^/]")] | None
ConfigModel = TypeVar("ConfigModel", bound=BaseModel)


class Raw(BaseModel):
    """Where raw files land and in which format each source comes."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str | None
    transactions: RawFormat
    customers: RawFormat

    @property
    def formats(self) -> Mapping[str, RawFormat]:
        """The file format of each source."""
        return {"transactions": self.transactions, "customers": self.customers}


class Schedule(BaseModel):
    """When runs of a pipeline are expected, in seconds; alerts tell of a run that does not come."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: float = Field(gt=0)
    grace: float = Field(ge=0)
    max_age: float = Field(gt=0)


class Backends(BaseModel):
    """Where the programs of the stack are asked how they do; None leaves one out."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    otlp: Url
    collector: Url
    jaeger: Url
    prometheus: Url
    alertmanager: Url
    elasticsearch: Url
    kibana: Url
    grafana: Url
    spark_master: Url
    kafka: Annotated[str, Field(pattern=r"^[^/:]+:\d+$")] | None
    reports: Url


class Settings(BaseSettings):
    """Everything of `config/app.yml`, each key overridable as `SPARK_APP_<KEY>`."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        env_prefix="SPARK_APP_",
        env_nested_delimiter="__",
        env_ignore_empty=True,
        env_parse_none_str="null",
    )

    home: Path = PROJECT
    config: Path = PROJECT / "config"
    environment: str
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    warehouse: str
    runs: str
    reports: str
    reports_url: Url
    event_log_exporter: Literal["runner", "bridge"]
    cluster: str | None
    raw: Raw
    backends: Backends

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment wins over the file; no other source is read."""
        return env_settings, init_settings

    @property
    def is_demo(self) -> bool:
        """Whether missing days are made up, because no real source is configured."""
        return self.raw.path is None

    @property
    def raw_path(self) -> str:
        """The folder (a path or URI) under which raw files land."""
        return self.located(self.raw.path or DEMO_RAW)

    @property
    def warehouse_path(self) -> str:
        """The folder (a path or URI) that holds the Delta tables."""
        return self.located(self.warehouse)

    @property
    def runs_path(self) -> Path:
        """The local folder that holds one folder per run."""
        return self.home / self.runs

    @property
    def reports_path(self) -> Path:
        """The local folder that holds one HTML file per run, and what runs are compared by."""
        return self.home / self.reports

    @property
    def records_path(self) -> Path:
        """The local folder of the small records that runs are compared by."""
        return self.reports_path / "records"

    @property
    def spark_properties(self) -> dict[str, str]:
        """The Spark properties of `spark-defaults.conf`, with those of the cluster on top if there is one."""
        own, ours = (folder / "spark" / "spark-defaults.conf" for folder in (self.config, config_folder()))
        everywhere = read_spark_properties(own if own.is_file() else ours)
        return everywhere | (read_spark_properties(PROJECT / self.cluster) if self.cluster else {})

    @property
    def events_path(self) -> Path:
        """The local folder that Spark event logs go to, unless Spark's own properties name another."""
        return self.home / "spark-events"

    def located(self, path: str) -> str:
        """A path relative to the home folder made absolute; a URI as it is."""
        return path if ":/" in path else str(self.home / path)


def config_folder() -> Path:
    """The folder `config/` of the project."""
    return PROJECT / "config"


def load_settings(folder: Path | None = None) -> Settings:
    """The settings of `app.yml` in a configuration folder, with the environment on top.

    Raises:
        ConfigError: A key is missing, unknown or wrong, or the file cannot be read.
    """
    path = (folder or config_folder()) / "app.yml"
    settings = _validated(Settings, read_yaml(path), where=path)
    return settings.model_copy(update={"config": path.parent})


def load_pipeline_config(name: str, model: type[ConfigModel], folder: Path) -> ConfigModel:
    """The configuration of one pipeline, or of `diagnoses`: `etl.daily_sales` is read from `etl/daily_sales.yml`.

    Raises:
        ConfigError: A key is missing, unknown or wrong, or the file cannot be read.
    """
    path = folder / (name.replace(".", "/") + ".yml")
    return _validated(model, read_yaml(path), where=path)


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        ConfigError: The file is missing, unreadable, not YAML or not a mapping.
    """
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read configuration file {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold keys and values, not {type(content).__name__}")
    return content


def read_spark_properties(path: Path) -> dict[str, str]:
    """Spark properties of a file in the format of `spark-defaults.conf`: a key, white space or `=`, a value."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read Spark properties {path}: {error.strerror}") from error
    return dict(_property(line) for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _property(line: str) -> tuple[str, str]:
    key, _, value = re.sub(r"[\s=]+", " ", line.strip(), count=1).partition(" ")
    return key, value.strip()


def _validated(model: type[ConfigModel], content: Mapping[str, Any], *, where: Path) -> ConfigModel:
    try:
        return model(**content)
    except ValidationError as error:
        raise ConfigError("; ".join(_explained(model, problem, where) for problem in error.errors())) from error


def _explained(model: type[BaseModel], problem: Any, where: Path) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    if problem["type"] == "extra_forbidden":
        allowed = ", ".join(sorted(_owner(model, problem["loc"]).model_fields))
        return f"{where}: unknown key {key!r}; allowed are {allowed}"
    if problem["type"] == "missing":
        return f"{where}: key {key!r} is missing"
    return f"{where}: {key or 'content'}: {problem['msg']} (found {problem['input']!r})"


def _owner(model: type[BaseModel], location: tuple[Any, ...]) -> type[BaseModel]:
    """The model that the last part of a location belongs to."""
    for part in location[:-1]:
        field = model.model_fields.get(str(part))
        if field is not None and isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            model = field.annotation
    return model


def process_environment() -> MutableMapping[str, str]:
    """The variables of this process: where Java is, where caches go, and what a JVM started here inherits."""
    return os.environ
