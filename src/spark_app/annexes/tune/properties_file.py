"""Writes settings as a file for `spark-submit --properties-file`, with why each is there."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from spark_app.errors import ConfigError
from spark_app.local_files import write_atomic
from spark_app.observe.event_log_injection import DEFAULTS, Launch, options_of
from spark_app.redaction import is_secret, redacted
from spark_app.settings import read_spark_properties

PROPERTIES_FILE: Final = "--properties-file"


@dataclass(frozen=True, slots=True)
class Property:
    """A setting with the comment above it."""

    name: str
    value: str
    comment: str


def write(file: Path, head: Sequence[str], properties: Sequence[Property], launch: Launch | None = None) -> None:
    """Writes the settings, and after them those of the file that this one replaces.

    Args:
        file: To write.
        head: Lines of comment at its beginning.
        properties: The settings.
        launch: How the program was launched: its own properties are carried over, but secrets; None without one.

    Raises:
        OSError: It cannot be written.
    """
    lines = [f"# {line}" for line in head]
    for each in properties:
        lines += ["", *(f"# {line}" for line in each.comment.splitlines()), f"{each.name} {each.value}"]
    lines += _carried({each.name for each in properties}, launch) if launch else []
    write_atomic(file, ("\n".join(lines) + "\n").encode())


def _carried(own: set[str], launch: Launch) -> list[str]:
    """The properties of the file that the launch had: `--properties-file` takes its place."""
    source, properties = replaced(launch)
    kept = {name: value for name, value in properties.items() if name not in own}
    if not kept:
        return []
    lines = ["", f"# From {source}, which --properties-file takes the place of:"]
    for name, value in kept.items():
        is_hidden = is_secret(name) or redacted(value) != value
        lines.append(f"# {name} is left out, since it may be a secret: add it" if is_hidden else f"{name} {value}")
    return lines


def replaced(launch: Launch) -> tuple[str, Mapping[str, str]]:
    """The file that `--properties-file` takes the place of, and its properties; empty if there is none."""
    given = [value for name, value in options_of(launch.arguments) if name == PROPERTIES_FILE]
    file = Path(given[-1]) if given else launch.conf / DEFAULTS
    with suppress(ConfigError, ValueError):
        return str(file) if given else DEFAULTS, read_spark_properties(file)
    return str(file), {}


def overridden(names: Sequence[str], launch: Launch | None) -> list[str]:
    """Which of some settings the command sets by `--conf`, which counts more than a file."""
    options = options_of(launch.arguments) if launch else []
    set_ = {value.partition("=")[0].strip() for name, value in options if name in ("--conf", "-c")}
    return [name for name in names if name in set_]
