"""Typed settings from configuration files and the environment; no other module reads these."""

import os
import re
from collections.abc import Mapping, MutableMapping, Sequence
from contextlib import suppress
from decimal import Decimal
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeVar

import yaml
from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError
from yaml.constructor import ConstructorError

from spark_app import project
from spark_app.errors import ConfigError
from spark_app.local_files import STATE, project_folder
from spark_app.redaction import is_secret, setting

PACKAGE: Final = Path(__file__).resolve().parent
PROJECT: Final = PACKAGE.parents[1]
PACKAGED: Final = PACKAGE / "config"
"""The copy of `config/` in an installed wheel (`setup.py`); a clone has none."""
IS_INSTALLED: Final = PACKAGED.is_dir()
"""Whether this program is an installed wheel and no clone: nothing is written below it."""
DEFAULTS: Final = Path("spark", "spark-defaults.conf")
STREAMING: Final = Path("spark", "streaming.conf")
DEMO_RAW: Final = "data/raw"
DEMO_STREAM: Final = "data/stream"
PREFIX: Final = "SPARK_APP_"
LEVELS: Final = "__"
OF_COMPOSE: Final = frozenset({"SPARK_APP_IMAGE"})
"""Variables with the prefix that are for Compose and not settings."""
ENV_FILES: Final = (".env.local", ".env", "stack/.env.local", "stack/.env")
"""What Compose reads beside the compose files, which are beside the configuration folder, or in `stack/` there, where
`spark-app init --stack` writes them; the last file wins."""
MIN_ALIKE: Final = 0.7
"""How alike an unknown key and the one that is meant are at least, from 0 to 1."""
INPUTS: Final = (("raw", "path"), ("stream", "landing"))
"""Keys that name folders that are read."""
VARIABLE: Final = re.compile(r"\$\{(\w+_PORT|STACK_SCHEME):-(\w+)\}")
VALUE: Final = re.compile(r"\d+|https?")
"""What the variable of a port, or of the scheme, has if it is for Compose."""
SECTIONS: Final = ("retention", "raw", "stream", "kafka", "backends", "prices", "labels")
"""Keys of `app.yml` that hold keys."""
ELSEWHERE: Final = {"home": "set SPARK_APP_HOME", "config": "use the option --config"}
"""Keys that cannot be set in the file, and how to set them."""

RawFormat = Literal["json", "csv", "parquet"]
Encoding = Literal["UTF-8", "ISO-8859-1", "windows-1252"]
"""How text is stored as bytes: in each of them a line ends with the same byte."""
Url = Annotated[str, Field(pattern=r"^https?://[^/]")] | None
INTERVAL: Final = r"^[1-9]\d* (millisecond|second|minute|hour)s?$"
Interval = Annotated[str, Field(pattern=INTERVAL)]
"""A time as Spark writes it: `10 minutes`."""
Share = Annotated[float, Field(strict=True, ge=0, le=1)]
ConfigModel = TypeVar("ConfigModel", bound=BaseModel)


def _local(path: str) -> str:
    if ":/" in path:
        raise ValueError("must be a local folder, not a URI")
    return path


LocalFolder = Annotated[str, AfterValidator(_local)]
STORES: Final = ("s3", "s3a", "gs", "gcs", "abfs", "abfss")
"""The schemes of storages where a file appears whole, by one request."""


def _store(location: str) -> str:
    scheme, is_url, _ = location.partition("://")
    if is_url and scheme not in STORES:
        raise ValueError(f"must be a folder, or one of {', '.join(f'{each}://' for each in STORES)}")
    return location.rstrip("/")


StoreLocation = Annotated[str, AfterValidator(_store)]


def _without_secret(name: str) -> str:
    if is_secret(name):
        raise ValueError("is the name of a secret, which no label may show")
    return name


LabelName = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,29}$")]
LabelProperty = Annotated[str, Field(pattern=r"^spark\.\S+$"), AfterValidator(_without_secret)]
LabelProperties = Annotated[
    list[LabelProperty], BeforeValidator(lambda names: [names] if isinstance(names, str) else names)
]
MAX_LABELS: Final = 20
SHIPPED_METRIC_LABELS: Final = ("cluster", "namespace", "team")
"""Where `labels` has others only, these say nothing."""


class Csv(BaseModel):
    """How the CSV files of a source are written.

    Attributes:
        separator: What stands between two values.
        header: Whether the first line of each file names its columns; without, they are those of the schema, in order.
        quote: What stands around a value that has a separator; within such a value it is doubled.
        encoding: How their text is stored.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    separator: Annotated[str, Field(min_length=1, max_length=1)] = ","
    header: bool = True
    quote: Annotated[str, Field(min_length=1, max_length=1)] = '"'
    encoding: Encoding = "UTF-8"


class Raw(BaseModel):
    """The folder of the raw files, the format of each source, and how its CSV files are written."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str | None
    formats: dict[str, RawFormat]
    csv: dict[str, Csv] = Field(default_factory=dict)

    def csv_of(self, source: str) -> Csv:
        """How the CSV files of a source are written."""
        return self.csv.get(source, Csv())

    def format_of(self, source: str) -> RawFormat:
        """The file format of a source: JSON Lines unless configured otherwise."""
        return self.formats.get(source, "json")


class Stream(BaseModel):
    """What streaming queries read.

    Attributes:
        landing: The folder of their files, if no Kafka is configured; None for the demo shop.
        event_time_after_max: How much later than its record an event may say that it happened; None for any time.
        event_time_after_max_of: The same of single topics.
        maintain_tables: Whether tables are compacted and vacuumed while queries run that have time for it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    landing: str | None
    event_time_after_max: Interval | None
    event_time_after_max_of: dict[str, Interval | None]
    maintain_tables: bool = True


class Kafka(BaseModel):
    """The brokers that streaming queries read and write; without servers they read and write files.

    Passwords come from the environment only. Stores are PEM, PKCS12 or JKS files, at the same path on every machine
    of a cluster.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    servers: Annotated[str, Field(pattern=r"^[^\s,]+:\d+(,[^\s,]+:\d+)*$")] | None
    security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"]
    sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER"] | None
    username: str | None
    password: SecretStr | None
    kerberos_service_name: str | None
    kerberos_keytab: str | None
    kerberos_principal: str | None
    truststore: str | None
    truststore_password: SecretStr | None
    keystore: str | None
    keystore_password: SecretStr | None
    key_password: SecretStr | None
    options: dict[str, SecretStr]

    @model_validator(mode="after")
    def _is_complete(self) -> Self:
        has_sasl = self.security_protocol.startswith("SASL_")
        if has_sasl != (self.sasl_mechanism is not None):
            protocol, mechanism = self.security_protocol, self.sasl_mechanism
            raise ValueError(f"security_protocol {protocol} does not fit sasl_mechanism {mechanism}")
        needs_user = self.sasl_mechanism in {"PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"}
        if needs_user and not (self.username and self.password):
            raise ValueError(f"sasl_mechanism {self.sasl_mechanism} needs username and {PREFIX}KAFKA__PASSWORD")
        if (self.kerberos_keytab is None) != (self.kerberos_principal is None):
            raise ValueError("kerberos_keytab and kerberos_principal belong together")
        return self


class Schedule(BaseModel):
    """When runs of a pipeline are expected, in seconds; alerts report overdue runs."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every: float = Field(gt=0)
    grace: float = Field(ge=0)
    max_age: float = Field(gt=0)


class Retention(BaseModel):
    """How long, and up to which total size, event logs, reports, runs and logs of Spark are kept; None is no limit.

    Attributes:
        days: Since the last write.
        gigabytes: Of all together.
        stream_megabytes: Of the event log of queries that run; at least three of its files of 10 MiB.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    days: Annotated[float, Field(gt=0)] | None
    gigabytes: Annotated[float, Field(gt=0)] | None
    stream_megabytes: Annotated[float, Field(ge=30)] | None = 256


class Backends(BaseModel):
    """Addresses of the components of the stack; None leaves a component out."""

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
    spark_history: Url
    jupyter: Url
    kafka: Annotated[str, Field(pattern=r"^[^/:]+:\d+$")] | None
    reports: Url

    def reached_at(self, addresses: Mapping[str, str]) -> Self:
        """The same components at other addresses; what is left out stays so."""
        known = {name: address for name, address in addresses.items() if getattr(self, name) is not None}
        return self.model_copy(update=known)


class Prices(BaseModel):
    """What the time of a cluster costs; None where the configuration has no prices."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    currency: Annotated[str, Field(pattern=r"^[A-Z]{3}$")]
    core_hour: Annotated[Decimal, Field(ge=0)] | None
    gib_hour: Annotated[Decimal, Field(ge=0)] | None

    @property
    def has_any(self) -> bool:
        """Whether anything has a price."""
        return self.core_hour is not None or self.gib_hour is not None


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

    home: Path
    config: Path
    environment: str
    currency: str = Field(pattern=r"^[A-Z]{3}$")
    warehouse: str
    checkpoints: str
    runs: LocalFolder
    reports: LocalFolder
    run_store: StoreLocation | None
    reports_url: Url
    serve_password: SecretStr | None
    event_log_exporter: Literal["runner", "bridge"]
    cluster: str | None
    profile: bool
    profile_executors: LocalFolder | None
    retention: Retention
    raw: Raw
    stream: Stream
    kafka: Kafka
    backends: Backends
    backends_inside: dict[str, str]
    prices: Prices
    labels: dict[LabelName, LabelProperties | None] = Field(max_length=MAX_LABELS)
    metric_labels: list[LabelName]

    @field_validator("backends_inside")
    @classmethod
    def _are_backends(cls, addresses: dict[str, str]) -> dict[str, str]:
        unknown = sorted(addresses.keys() - Backends.model_fields.keys())
        if unknown:
            raise ValueError(f"{unknown[0]} is none of backends: {', '.join(Backends.model_fields)}")
        Backends.model_validate({**dict.fromkeys(Backends.model_fields), **addresses})
        return addresses

    @model_validator(mode="after")
    def _has_metric_labels(self) -> Self:
        for label in self.metric_labels:
            if label not in self.labels and label not in SHIPPED_METRIC_LABELS:
                raise ValueError(f"metric_labels: {label} is none of labels: {', '.join(self.labels)}")
        return self

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """The environment overrides the file; no other source is read."""
        return env_settings, init_settings

    @property
    def is_demo(self) -> bool:
        """Whether missing days are generated, because no raw folder is configured."""
        return self.raw.path is None

    @property
    def reached_backends(self) -> Backends:
        """The components of the stack as this process reaches them: a container of the stack does so by other names."""
        return self.backends.reached_at(self.backends_inside)

    @property
    def label_properties(self) -> dict[str, list[str]]:
        """The Spark properties that each label of an application may be in."""
        return {label: names for label, names in self.labels.items() if names is not None}

    @property
    def raw_path(self) -> str:
        """The folder (a path or URI) of the raw files."""
        return self.located(self.raw.path or DEMO_RAW)

    @property
    def warehouse_path(self) -> str:
        """The folder (a path or URI) of the Delta tables."""
        return self.located(self.warehouse)

    @property
    def checkpoints_path(self) -> str:
        """The folder (a path or URI) with the checkpoint of each streaming query."""
        return self.located(self.checkpoints)

    @property
    def is_stream_demo(self) -> bool:
        """Whether the built-in generator feeds the streaming queries, because no source is configured."""
        return self.stream.landing is None and self.kafka.servers is None

    @property
    def landing_path(self) -> str:
        """The folder (a path or URI) with one folder of JSON Lines files per topic."""
        return self.located(self.stream.landing or DEMO_STREAM)

    @property
    def runs_path(self) -> Path:
        """The local folder with one folder per run."""
        return self.home / self.runs

    @property
    def reports_path(self) -> Path:
        """The local folder with one HTML file per run, and the run profiles."""
        return self.home / self.reports

    @property
    def profiles_path(self) -> Path:
        """The local folder of the run profiles, which comparisons use."""
        return self.reports_path / "records"

    @property
    def run_store_path(self) -> str | None:
        """The folder (a path or URL) that the runs of several machines are copied to; None without one."""
        return self.run_store and self.located(self.run_store)

    @property
    def profile_executors_path(self) -> Path | None:
        """The local folder that executors on other hosts share; None where they are not sampled."""
        return self.home / self.profile_executors if self.profile_executors else None

    @property
    def spark_properties(self) -> dict[str, str]:
        """The Spark properties of `spark-defaults.conf`, overridden by those of the configured cluster."""
        properties = _first_properties(self.config / DEFAULTS, config_folder() / DEFAULTS)
        if self.cluster:
            properties |= _first_properties(self.config.parent / self.cluster, config_folder().parent / self.cluster)
        return properties

    @property
    def stream_properties(self) -> dict[str, str]:
        """The Spark properties of `streaming.conf`, which override all others in sessions of streaming queries."""
        return _first_properties(self.config / STREAMING, config_folder() / STREAMING)

    @property
    def events_path(self) -> Path:
        """The local folder of Spark event logs, unless Spark properties name another."""
        return self.home / "spark-events"

    @property
    def logs_path(self) -> Path:
        """The local folder of Spark's own logs, one file per application."""
        return self.home / "logs"

    def located(self, path: str) -> str:
        """A path as absolute path, relative to the home folder; a URI unchanged."""
        return _located(path, self.home)


def config_folder() -> Path:
    """The folder `config/` of the clone, or its copy in an installed wheel."""
    return PACKAGED if IS_INSTALLED else PROJECT / "config"


def load_settings(folder: Path | None = None) -> Settings:
    """The settings of `app.yml` in a configuration folder, overridden by the environment.

    A key that the file does not have has the value of the file that this program comes with.

    Args:
        folder: The configuration folder, and what contains it is the home folder; None takes those of the current
            project, or else those of the clone, or of an installed wheel the built-in ones and `.spark-app/` of the
            folder's project.

    Raises:
        ConfigError: A key or variable is unknown or invalid, or the file cannot be read.
    """
    found = project.find(Path.cwd().resolve()) if folder is None else None
    config = folder or (found.config if found and (found.config / "app.yml").exists() else config_folder())
    path = config / "app.yml"
    content = read_yaml(path)
    for key in ELSEWHERE.keys() & content:
        raise ConfigError(f"{path}: {key!r} cannot be set here: {ELSEWHERE[key]}")
    _refuse_secrets(content, path)
    _refuse_unknown_variables()
    content = _with_inputs(content, config.resolve().parent)
    content = _with_variables(_merged(read_yaml(config_folder() / "app.yml"), content), config.resolve().parent)
    home = found.folder if found else _home(config)
    return _validated(Settings, content | {"home": home, "config": config}, where=path)


def _merged(shipped: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a file over those that it does not have; names that a user chooses are not mixed."""
    return {
        **shipped,
        **{
            key: _merged(shipped[key], value) if key in SECTIONS and isinstance(value, Mapping) else value
            for key, value in own.items()
        },
    }


def _located(path: str, folder: Path) -> str:
    return path if ":/" in path else str(folder / path)


def _with_inputs(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings of a file, whose relative inputs are beside its folder, wherever the home folder is."""
    found = dict(content)
    for section, key in INPUTS:
        values = found.get(section)
        if not isinstance(values, Mapping):
            continue
        path = values.get(key)
        if isinstance(path, str):
            found[section] = {**values, key: _located(path, folder)}
    return found


def _with_variables(content: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """The settings with `${JAEGER_PORT:-16686}` and the like in an address of `backends` as Compose replaces it.

    A value that is no port is not for Compose: Kubernetes sets `JAEGER_PORT=tcp://10.0.0.1:16686` for a service of that
    name.
    """
    backends = content.get("backends")
    if not isinstance(backends, Mapping):
        return dict(content)
    variables = compose_variables(folder)

    def value(match: re.Match[str]) -> str:
        found = variables.get(match[1]) or ""
        return found if VALUE.fullmatch(found) else match[2]

    urls = {key: VARIABLE.sub(value, url) if isinstance(url, str) else url for key, url in backends.items()}
    return {**content, "backends": urls}


def compose_variables(folder: Path) -> dict[str, str | None]:
    """What Compose sees beside a configuration folder: the variables of the shell, of `.env`, then of `.env.local`."""
    variables: dict[str, str | None] = {}
    for name in ENV_FILES:
        with suppress(OSError, UnicodeDecodeError):  # only root may read one that was written by sudo
            variables |= dotenv_values(folder / name, interpolate=False)
    return variables | os.environ


def _home(config: Path) -> Path:
    """Where relative paths start: at the folder that contains the configuration, unless that is a wheel."""
    folder = config.resolve()
    return _state() if folder == PACKAGED else folder.parent


def _state() -> Path:
    """`.spark-app/` of the current project; where that cannot be written, the user's folder for state."""
    project = project_folder(Path.cwd())
    state = project / STATE
    if os.access(state if state.exists() else project, os.W_OK):
        return state
    users = os.environ.get("XDG_STATE_HOME", "")
    try:
        return (Path(users) if users.startswith("/") else Path.home() / ".local" / "state") / "spark-app"
    except RuntimeError as error:  # a user without a home
        raise ConfigError(f"{project} cannot be written: change to another folder, or set {PREFIX}HOME") from error


def load_pipeline_config(name: str, model: type[ConfigModel], folder: Path) -> ConfigModel:
    """The configuration of one pipeline, or of `diagnoses`: `etl.daily_sales` is read from `etl/daily_sales.yml`.

    The file may be missing where every key has a default.

    Raises:
        ConfigError: A key is missing, unknown or invalid, or the file cannot be read.
    """
    path = folder / (name.replace(".", "/") + ".yml")
    is_optional = not any(field.is_required() for field in model.model_fields.values())
    content = {} if is_optional and not path.exists() else read_yaml(path)
    return _validated(model, content, where=path)


def _validated(model: type[ConfigModel], content: Mapping[str, Any], *, where: Path) -> ConfigModel:
    try:
        return model(**content)
    except ValidationError as error:
        raise ConfigError("; ".join(_explained(model, problem, where) for problem in error.errors())) from error
    except SettingsError as error:  # it names only the key that holds others
        key = re.sub(r'.*field "(\w+)".*', r"\1", str(error))
        raise ConfigError(f"{PREFIX}{key.upper()} cannot be read: set {PREFIX}{key.upper()}{LEVELS}<KEY>") from error


def _refuse_secrets(content: Mapping[str, Any], file: Path, *above: str) -> None:
    for key, value in content.items():
        levels = (*above, str(key))
        if isinstance(value, Mapping):
            _refuse_secrets(value, file, *levels)
        elif value is not None and is_secret(str(key)):
            variable = PREFIX + LEVELS.join(level.upper() for level in levels if "." not in level)
            raise ConfigError(f"{file}: {'.'.join(levels)!r} is a secret and must not be in a file: set {variable}")


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
    where = (_variable(problem["loc"]) if issubclass(model, BaseSettings) else None) or _place(file, problem)
    if problem["type"] == "extra_forbidden":
        allowed = sorted(_owner(model, problem["loc"]).model_fields)
        near = get_close_matches(str(problem["loc"][-1]), allowed, n=1, cutoff=MIN_ALIKE)
        meant = f"do you mean {near[0]}? " if near else ""
        return f"{where}: unknown key {key!r}; {meant}allowed are {', '.join(allowed)}"
    if problem["type"] == "missing":
        return f"{where}: key {key!r} is missing"
    names_key = problem["type"] == "value_error" and isinstance(problem["input"], dict)  # whose message names it
    found = "" if names_key else f" (found {setting(key, repr(problem['input']))})"
    return f"{where}: {key or 'content'}: {problem['msg'].removeprefix('Value error, ')}{found}"


def _place(file: Path, problem: Any) -> str:
    """The file of a value that is wrong, and the line of its key, or of the key in it that the message quotes."""
    quoted, keys = re.search(r"'([^']+)'", problem["msg"]), [*problem["loc"]]
    if quoted and isinstance(problem["input"], Mapping) and quoted[1] in problem["input"]:
        keys.append(quoted[1])
    return located(file, keys)


def located(file: Path, keys: Sequence[object]) -> str:
    """A file of configuration, and the line of a key in it, as far as it is there: `config/app.yml:12`."""
    line = 0
    with suppress(OSError, yaml.YAMLError, UnicodeDecodeError):
        node = yaml.compose(file.read_text(encoding="utf-8"))
        for key in keys:
            entries = node.value if isinstance(node, yaml.MappingNode) else ()
            name, node = next((each for each in entries if each[0].value == key), (None, None))
            if name is None:
                break
            line = name.start_mark.line + 1
    return f"{file}:{line}" if line else str(file)


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


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping that a YAML file holds.

    Raises:
        ConfigError: The file is missing, unreadable, not YAML or not a mapping of text, or has a key twice.
    """
    try:
        content = _Loader(path.read_text(encoding="utf-8")).get_single_data()
    except OSError as error:
        raise ConfigError(f"cannot read configuration file {path}: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(content, dict):
        raise ConfigError(f"{path} must hold keys and values, not {type(content).__name__}")
    for key in content:
        if not isinstance(key, str):
            raise ConfigError(f"{path}: the key {key!r} is not a string; put it in quotes if it is meant as one")
    return content


class _Loader(yaml.SafeLoader):
    """Refuses duplicate keys, of which YAML would silently use the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise ConstructorError(None, None, f"duplicate key {key!r}", node.start_mark)
        return super().construct_mapping(node, deep)


def read_spark_properties(path: Path) -> dict[str, str]:
    """Spark properties of a file in the format of `spark-defaults.conf`: a key, white space or `=`, a value."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise ConfigError(f"cannot read Spark properties {path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"cannot read Spark properties {path}: it is not UTF-8") from error
    return dict(_property(line) for line in lines if line.strip() and not line.lstrip().startswith("#"))


def _first_properties(own: Path, default: Path) -> dict[str, str]:
    return read_spark_properties(own if own.is_file() else default)


def _property(line: str) -> tuple[str, str]:
    key, _, value = re.sub(r"[\s=]+", " ", line.strip(), count=1).partition(" ")
    return key, value.strip()
