"""docs/reference.md says of the options, configuration keys and exit codes just what the program does."""

import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from pydantic import BaseModel

from spark_app import errors
from spark_app.__main__ import command_line
from spark_app.commands import tables as tables_verb
from spark_app.settings import Settings
from spark_app.warehouse import tables

ROOT: Final = Path(__file__).resolve().parents[2]
REFERENCE: Final = ROOT / "docs" / "reference.md"
CONFIGS: Final = sorted(
    path.relative_to(ROOT).as_posix()
    for path in chain((ROOT / "config").glob("*.yml"), (ROOT / "config").glob("*/*.yml"))
)
COMMAND: Final[Any] = command_line()
VERBS: Final = {"spark-app": COMMAND} | {f"spark-app {name}": verb for name, verb in COMMAND.commands.items()}


def documented(section: str) -> list[list[str]]:
    """The rows of the table in a section of the page, as cells; none if there is no such section."""
    found = re.search(
        rf"^## {re.escape(section)}\n(.*?)(?=^## |\Z)", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL
    )
    lines = found.group(1).splitlines() if found else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    return rows[2:]


def options(verb: Any) -> set[str]:
    """The options of a command, without `--help`, which all have."""
    return {name for param in verb.params if param.param_type_name == "option" for name in param.opts}


FREE: Final = ("formats", "csv", "options", "backends_inside", "event_time_after_max_of", "labels")
"""Keys whose own keys are names of sources, options, topics or labels."""


def keys(content: Any, prefix: str = "") -> Iterator[str]:
    """The keys of a configuration file; a key that holds others is named too where their names are free."""
    for key, value in content.items():
        if isinstance(value, dict):
            yield from [f"{prefix}{key}"] if key in ("limits", *FREE) else []
            yield from keys(value, f"{prefix}{key}.") if key not in FREE else []
        else:
            yield f"{prefix}{key}"


def fields(model: type[BaseModel], prefix: str = "") -> Iterator[str]:
    """The keys that a settings model takes."""
    for name, field in model.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, BaseModel):
            yield from fields(field.annotation, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def failures(kind: type[errors.SparkAppError]) -> Iterator[type[errors.SparkAppError]]:
    """A kind of failure and all kinds below it."""
    yield kind
    for below in kind.__subclasses__():
        yield from failures(below)


@pytest.mark.parametrize("name", VERBS)
def test_the_options_of_a_command_are_those_documented(name: str) -> None:
    """No option is undocumented, and none is documented that is not there."""
    rows = {re.findall(r"`(--[\w-]+)`", row[0])[0] for row in documented(name)}
    assert rows - {"--help"} == options(VERBS[name])


@pytest.mark.parametrize("name", VERBS)
def test_every_option_says_in_the_help_what_it_does(name: str) -> None:
    """`--help` has a text for each option and argument."""
    assert [param.name for param in VERBS[name].params if not param.help] == []


def test_every_documented_command_exists() -> None:
    """The page has a section for each command and for no other."""
    headings = re.findall(r"^## (spark-app.*)$", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(headings) == sorted(VERBS)


@pytest.mark.parametrize("path", CONFIGS)
def test_the_keys_of_a_configuration_file_are_those_documented(path: str) -> None:
    """No key of app.yml or of a pipeline is undocumented, and none is documented that is not there."""
    content = yaml.safe_load((ROOT / path).read_text(encoding="utf-8"))
    assert [row[0].strip("`") for row in documented(path)] == list(keys(content))


def test_app_yml_has_every_setting() -> None:
    """Each setting is in app.yml, but for the folders that the environment and `--config` move."""
    content = yaml.safe_load((ROOT / "config" / "app.yml").read_text(encoding="utf-8"))
    assert set(fields(Settings)) - {"home", "config"} == set(keys(content))


def test_the_documented_variables_are_the_keys_in_capitals() -> None:
    """The environment column names the variable that sets the key of its row."""
    rows = documented("config/app.yml")
    assert [row[1].strip("`") for row in rows] == [
        "SPARK_APP_" + row[0].strip("`").upper().replace(".", "__") for row in rows
    ]


def test_the_exit_codes_are_those_documented() -> None:
    """Each code that a failure can end with is on the page and in the help, and no other."""
    codes = {0, errors.EXIT_INTERRUPTED} | {kind.exit_code for kind in failures(errors.SparkAppError)}
    assert {int(row[0]) for row in documented("Exit codes")} == codes
    assert {int(code) for code in re.findall(r"\b(\d+) \w", COMMAND.epilog)} == codes


def test_the_least_days_that_a_vacuum_keeps_are_said_once() -> None:
    """The command line refuses what the tables would refuse."""
    assert tables_verb.SAFE_DAYS == tables.MIN_RETAIN_DAYS
