"""What can go wrong, and the exit code each kind ends the program with.

::

    SparkAppError                 1  a bug, or rows that cannot be accounted for
    ├── ReconciliationError       1  rows read are not the rows published, quarantined and removed
    ├── UsageError                2  a wrong argument
    ├── ConfigError               2  a missing, unknown or wrong configuration value
    ├── MachineError              2  no Java or one that died, no space, no permission, a port or folder in the way
    ├── InputError                3  raw data that is missing or cannot be read
    └── QualityGateError          4  a promise was broken by more rows than its threshold allows

The message of each is one line that names the thing, where it is and what to do.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, ClassVar, Final

EXIT_INTERRUPTED: Final = 130


class SparkAppError(Exception):
    """Any failure that this program explains itself.

    Attributes:
        document: What `--json` tells of it beside its kind and message.
    """

    exit_code: ClassVar[int] = 1
    document: Mapping[str, Any] = MappingProxyType({})


class ReconciliationError(SparkAppError):
    """Rows read are not the rows published, quarantined and removed as duplicates."""


class UsageError(SparkAppError):
    """A wrong argument on the command line."""

    exit_code = 2


class ConfigError(SparkAppError):
    """A missing, unknown or wrong configuration value."""

    exit_code = 2


class MachineError(SparkAppError):
    """The machine lacks something: Java, disk space, permission."""

    exit_code = 2


class InputError(SparkAppError):
    """Raw data is missing or cannot be read."""

    exit_code = 3


class QualityGateError(SparkAppError):
    """A promise was broken by more rows than its threshold allows; nothing was published."""

    exit_code = 4
