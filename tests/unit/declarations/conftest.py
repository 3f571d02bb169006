"""A project as `spark-app init` writes it."""

import importlib
import itertools
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from spark_app.commands.init import contents

NUMBERS: Final = itertools.count()


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The package of a project as `spark-app init` writes it, and the folder that commands are given in."""
    before, package = list(sys.path), f"shop{next(NUMBERS)}"
    for name, text in contents(package, package).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    importlib.invalidate_caches()
    yield tmp_path / package
    sys.path[:] = before
