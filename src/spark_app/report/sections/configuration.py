"""The Spark properties that the application, its defaults file or its queries set; secrets are masked."""

import re
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.parse.events import PROPERTIES_OF_RUN
from spark_app.redaction import setting
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope

_SET_BY_SPARK: Final = re.compile(
    rf"{PROPERTIES_OF_RUN}|spark\.(driver\.appUIAddress|rdd\.compress|serializer\.objectStreamReset"
    r"|submit\.(pyFiles|deployMode)|sql\.artifact\..*|hadoop\.fs\.s3a\.vectored\..*)"
)
_JAVA_OPTIONS_OF_SPARK: Final = re.compile(
    r"--add-opens=\S+|--add-modules=jdk\.incubator\.vector|--enable-native-access=ALL-UNNAMED"
    r"|-XX:\+(IgnoreUnrecognizedVMOptions|UnlockExperimentalVMOptions)"
    r"|-D(java\.net\.preferIPv6Addresses=false|jdk\.reflect\.useDirectMethodHandle=false"
    r"|io\.netty\.(tryReflectionSetAccessible=true|noUnsafe=false|allocator\.type=pooled"
    r"|handler\.ssl\.defaultEndpointVerificationAlgorithm=NONE))|--sun-misc-unsafe-memory-access=allow"
)
"""What Spark adds to the options of every JVM; source: its `JavaModuleOptions`."""


@dataclass(frozen=True, slots=True)
class Property:
    """A Spark property and the value that the application ran with."""

    key: str
    value: str


@dataclass(frozen=True, slots=True)
class Configuration:
    """Properties by name; `total` counts those that are not listed, too."""

    shown: list[Property]
    total: int


def configuration(scope: Scope, limits: Limits) -> Configuration:
    """The properties that a person set, without those that Spark sets for itself in every application."""
    values = ((key, _without_sparks_options(key, value)) for key, value in sorted(_values(scope).items()))
    properties = [
        Property(key, setting(key, value)) for key, value in values if value and not _SET_BY_SPARK.fullmatch(key)
    ]
    return Configuration(properties[: limits.properties], len(properties))


def _values(scope: Scope) -> dict[str, str]:
    """What the application started with, then the values that queries ran with after the program changed them."""
    values = {key: [value] for key, value in scope.app.properties.items()}
    for query in scope.queries:
        for key, value in query.settings.items():
            if value not in values.setdefault(key, []):
                values[key].append(value)
    return {key: ", then ".join(changes) for key, changes in values.items()}


def _without_sparks_options(key: str, value: str) -> str:
    return " ".join(_JAVA_OPTIONS_OF_SPARK.sub("", value).split()) if key.endswith("JavaOptions") else value
