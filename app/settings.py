"""Puts configuration and the environment into typed settings; nothing else in the program reads the environment."""

import os
import re
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from app.config_files import read_spark_properties, read_yaml
from app.errors import ConfigError

PROJECT: Final = Path(__file__).resolve().parent.parent
DEMO_RAW: Final = "data/raw"
PREFIX: Final = "SPARK_APP_"
LEVELS: Final = "__"
OF_COMPOSE: Final = frozenset({"SPARK_APP_IMAGE"})
"""Variables with the prefix that are not the program's."""
ELSEWHERE: Final = {"home": "set SPARK_APP_HOME", "config": "use the option --config"}
"""Keys that the file cannot set, and what does."""

RawFormat = Literal["json", "csv", "parquet"]
Source = Literal["transactions", "customers"]
Url = Annotated[str, Field(pattern=r"^https?://[^/]")] | None
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
ConfigModel = TypeVar("ConfigModel", bound=BaseModel)


def _local(path: str) -> str:
    if ":/" in path:
        raise ValueError("must be a folder of this machine, not an address")
    return path


LocalFolder = Annotated[str, AfterValidator(_local)]


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
        env_prefix=PREFIX,
        env_nested_delimiter=LEVELS,
        env_ignore_empty=True,
        env_parse_none_str="null",
    )

    home: Path = PROJECT
    config: Path = PROJECT / "config"
    environment: str
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    warehouse: str
    runs: LocalFolder
    reports: LocalFolder
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
        ConfigError: A key or variable is missing, unknown or wrong, or the file cannot be read.
    """
    path = (folder or config_folder()) / "app.yml"
    content = read_yaml(path)
    for key in ELSEWHERE.keys() & content:
        raise ConfigError(f"{path}: {key!r} cannot be set here: {ELSEWHERE[key]}")
    _refuse_unknown_variables()
    settings = _validated(Settings, content, where=path)
    return settings.model_copy(update={"config": path.parent})


def load_pipeline_config(name: str, model: type[ConfigModel], folder: Path) -> ConfigModel:
    """The configuration of one pipeline, or of `diagnoses`: `etl.daily_sales` is read from `etl/daily_sales.yml`.

    Raises:
        ConfigError: A key is missing, unknown or wrong, or the file cannot be read.
    """
    path = folder / (name.replace(".", "/") + ".yml")
    return _validated(model, read_yaml(path), where=path)


def _validated(model: type[ConfigModel], content: Mapping[str, Any], *, where: Path) -> ConfigModel:
    try:
        return model(**content)
    except ValidationError as error:
        raise ConfigError("; ".join(_explained(model, problem, where) for problem in error.errors())) from error
    except SettingsError as error:  # tells only the key, which holds others
        key = re.sub(r'.*field "(\w+)".*', r"\1", str(error))
        raise ConfigError(f"{PREFIX}{key.upper()} cannot be read: set {PREFIX}{key.upper()}{LEVELS}<KEY>") from error


def _refuse_unknown_variables() -> None:
    allowed = {f"{PREFIX}{key}".upper() for key in Settings.model_fields if key != "config"}
    for name in sorted(os.environ):
        if name.startswith(PREFIX) and name.partition(LEVELS)[0] not in allowed | OF_COMPOSE:
            raise ConfigError(f"unknown variable {name}; allowed are {', '.join(sorted(allowed))}")


def _variable(location: tuple[Any, ...]) -> str | None:
    """The variable that sets a key, or what holds it, if there is one."""
    given = {name.upper() for name, value in os.environ.items() if value}
    parts = [str(part).upper() for part in location]
    names = [PREFIX + LEVELS.join(parts[:count]) for count in range(len(parts), 0, -1)]
    return next((name for name in names if name in given), None)


def _explained(model: type[BaseModel], problem: Any, file: Path) -> str:
    key = ".".join(str(part) for part in problem["loc"])
    where = (_variable(problem["loc"]) if issubclass(model, BaseSettings) else None) or file
    if problem["type"] == "extra_forbidden":
        allowed = ", ".join(sorted(_owner(model, problem["loc"]).model_fields))
        return f"{where}: unknown key {key!r}; allowed are {allowed}"
    if problem["type"] == "missing":
        return f"{where}: key {key!r} is missing"
    is_told = problem["type"] == "value_error" and isinstance(problem["input"], dict)  # which of its keys, by us
    found = "" if is_told else f" (found {problem['input']!r})"
    return f"{where}: {key or 'content'}: {problem['msg'].removeprefix('Value error, ')}{found}"


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
