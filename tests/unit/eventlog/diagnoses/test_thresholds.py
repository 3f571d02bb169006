from pathlib import Path

import pytest

from spark_app.errors import ConfigError
from spark_app.eventlog.diagnoses.thresholds import Thresholds, load_thresholds


def test_the_shipped_file_has_the_defaults() -> None:
    """What stands in the file is what holds where it is missing."""
    assert load_thresholds().values == Thresholds().values


def test_a_threshold_can_be_changed_alone(tmp_path: Path) -> None:
    """The others keep their defaults."""
    (tmp_path / "diagnoses.yml").write_text("skew_ratio: 3\n", encoding="utf-8")
    assert load_thresholds(tmp_path).values == Thresholds(skew_ratio=3).values


@pytest.mark.parametrize(("text", "words"), [("skew: 3", "unknown key 'skew'"), ("skew_ratio: 0.5", "skew_ratio")])
def test_a_wrong_threshold_is_named(tmp_path: Path, text: str, words: str) -> None:
    """A key that is none, and a ratio below 1."""
    (tmp_path / "diagnoses.yml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=words):
        load_thresholds(tmp_path)
