"""The exceptions of the program and their exit codes.

::

    SparkAppError                 1  a bug, or row counts that do not reconcile
    ├── ReconciliationError       1  rows read differ from rows published, quarantined and removed as duplicates
    ├── UsageError                2  an invalid argument
    ├── ConfigError               2  a missing, unknown or invalid configuration value
    ├── MachineError              2  Java missing or dead, disk full, permission denied, port or folder in use
    ├── InputError                3  raw data or an event log is missing or unreadable
    │   └── NotReadyError         3  what a streaming query needs is not there yet: it waits
    ├── QualityGateError          4  more rows violate an expectation than its threshold allows
    │   ├── PromotionError        4  a version of a model is not better than the one in production, or not good enough
    │   └── FeatureLeakError      4  a feature of a model knows what is not known yet when it is served
    └── FailOnError               5  a condition of --fail-on holds

Each message is one line: what happened, where, and what to do.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

EXIT_INTERRUPTED: Final = 130


class SparkAppError(Exception):
    """A failure that the program explains in one line.

    Attributes:
        document: Further keys of the `--json` document.
    """

    exit_code: ClassVar[int] = 1
    document: Mapping[str, Any] = MappingProxyType({})


def message_of(error: Exception) -> str:
    """What an error says; of one that this program does not expect, its type, too."""
    return str(error) if isinstance(error, SparkAppError | OSError) else repr(error)


class ReconciliationError(SparkAppError):
    """Rows read differ from rows published, quarantined and removed as duplicates."""


class UsageError(SparkAppError):
    """An invalid argument on the command line."""

    exit_code = 2


class ConfigError(SparkAppError):
    """A missing, unknown or invalid configuration value."""

    exit_code = 2


class MachineError(SparkAppError):
    """The machine lacks something: Java, disk space, a permission."""

    exit_code = 2


class InputError(SparkAppError):
    """Raw data or an event log is missing or unreadable."""

    exit_code = 3


class NotReadyError(InputError):
    """What a streaming query needs beside its topics is not there yet; the query waits until it is."""


class NoBrokerError(InputError):
    """No broker of Kafka can be reached; a query that waits and starts again may find one."""


class QualityGateError(SparkAppError):
    """More rows violate an expectation than its threshold allows; nothing was published."""

    exit_code = 4


class PromotionError(QualityGateError):
    """A version of a model is not better than the one in production, or not good enough; what is there stays."""


class FeatureLeakError(QualityGateError):
    """A feature of a model knows what is not known yet when it is served; nothing is trained on it."""


class FailOnError(SparkAppError):
    """A condition of `--fail-on` holds; the document has all that the command found."""

    exit_code = 5

    def __init__(self, message: str, document: Mapping[str, Any]) -> None:
        """The message names the conditions that hold."""
        super().__init__(message)
        self.document = document
