"""What was set, where it is not what Spark does anyway; secrets are not shown."""

import re
from dataclasses import dataclass
from typing import Final

from app.redaction import setting
from app.report.limits import Limits
from app.report.scope import Scope
from app.report.sections.defaults import default_of, is_default

_BY_SPARK: Final = re.compile(
    r"spark\.(app\.(id|startTime|submitTime|initial\..*)|driver\.(host|port|appUIAddress)|executor\.id|rdd\.compress"
    r"|serializer\.objectStreamReset|submit\.(pyFiles|deployMode)|sql\.artifact\..*|hadoop\.fs\.s3a\.vectored\..*"
    r"|databricks\.delta\.(lastCommitVersionInSession|commitInfo\..*)|sql\.execution\..*root\.id)"
)
_JAVA_BY_SPARK: Final = re.compile(
    r"--add-opens=\S+|--add-modules=jdk\.incubator\.vector|--enable-native-access=ALL-UNNAMED"
    r"|-XX:\+(IgnoreUnrecognizedVMOptions|UnlockExperimentalVMOptions)"
    r"|-D(java\.net\.preferIPv6Addresses=false|jdk\.reflect\.useDirectMethodHandle=false"
    r"|io\.netty\.tryReflectionSetAccessible=true|io\.netty\.noUnsafe=false)"
)
"""What Spark adds to the options of every JVM; source: its `JavaModuleOptions`."""


@dataclass(frozen=True, slots=True)
class Property:
    """A property, its value, and what Spark would have taken, if that is known."""

    key: str
    value: str
    default: str | None


@dataclass(frozen=True, slots=True)
class Configuration:
    """What was set, by name."""

    shown: list[Property]
    total: int


def configuration(scope: Scope, limits: Limits) -> Configuration:
    """The properties that someone set; without those that Spark sets for itself, and those set to the default."""
    version = scope.app.spark_version
    told = ((key, _own(key, value)) for key, value in sorted(_told(scope).items()))
    kept = ((key, value) for key, value in told if value and not _BY_SPARK.fullmatch(key))
    found = [Property(key, setting(key, value), default_of(key, version)) for key, value in kept]
    differing = [each for each in found if not is_default(each.key, each.value, version)]
    return Configuration(differing[: limits.properties], len(differing))


def _told(scope: Scope) -> dict[str, str]:
    """What the application was started with, and after it what the program changed for its queries."""
    told = {key: [value] for key, value in scope.app.properties.items()}
    for query in scope.queries:
        for key, value in query.settings.items():
            if value not in told.setdefault(key, []):
                told[key].append(value)
    return {key: ", then ".join(values) for key, values in told.items()}


def _own(key: str, value: str) -> str:
    return " ".join(_JAVA_BY_SPARK.sub("", value).split()) if key.endswith("JavaOptions") else value
