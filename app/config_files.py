"""Configuration files as what they hold: YAML, and the format of Spark's properties."""

import re
from pathlib import Path
from typing import Any

import yaml
from yaml.constructor import ConstructorError

from app.errors import ConfigError


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
            raise ConfigError(f"{path}: the key {key!r} is no text; if it is meant so, put it in quotes")
    return content


class _Loader(yaml.SafeLoader):
    """Refuses a key that is there twice, of which YAML would silently take the last."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:  # noqa: FBT001, FBT002
        keys = [key.value for key, _ in node.value]
        for key in keys:
            if keys.count(key) > 1:
                raise ConstructorError(None, None, f"the key {key!r} is there twice", node.start_mark)
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


def _property(line: str) -> tuple[str, str]:
    key, _, value = re.sub(r"[\s=]+", " ", line.strip(), count=1).partition(" ")
    return key, value.strip()
