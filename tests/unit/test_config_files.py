from pathlib import Path

import pytest

from app.config_files import read_spark_properties, read_yaml
from app.errors import ConfigError


def test_a_config_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    """Missing, a folder, or no text."""
    with pytest.raises(ConfigError, match=r"cannot read configuration file .*gone\.yml: No such file"):
        read_yaml(tmp_path / "gone.yml")
    with pytest.raises(ConfigError, match="cannot read configuration file"):
        read_yaml(tmp_path)
    (tmp_path / "binary.yml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match="is not valid YAML"):
        read_yaml(tmp_path / "binary.yml")


def test_spark_properties_are_read_as_spark_reads_them(tmp_path: Path) -> None:
    """White space or `=` between key and value; comments and blank lines are none."""
    file = tmp_path / "d.conf"
    file.write_text("# spark.a 1\n\nspark.a   x y\nspark.b=2\n spark.c = 3 \n")
    assert read_spark_properties(file) == {"spark.a": "x y", "spark.b": "2", "spark.c": "3"}
    with pytest.raises(ConfigError, match="cannot read Spark properties"):
        read_spark_properties(tmp_path / "gone.conf")
    file.write_bytes(b"spark.a \xff")
    with pytest.raises(ConfigError, match=r"cannot read Spark properties .*d\.conf: it is not UTF-8"):
        read_spark_properties(file)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("2024: x\n", "the key 2024 is no text"),
        ("on: x\n", "the key True is no text"),
        ("a: 1\nb: 2\na: 3\n", "the key 'a' is there twice .*line 1"),
        ("a:\n  b: 1\n  b: 2\n", "the key 'b' is there twice .*line 2"),
    ],
)
def test_a_key_that_is_not_what_it_seems_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """YAML takes `on` for true, and the last of two silently."""
    (tmp_path / "x.yml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=told):
        read_yaml(tmp_path / "x.yml")
