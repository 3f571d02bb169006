"""The code lies where its name says, in pieces that can be read at once."""

import ast
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
PIPELINE_PACKAGES: Final = ("etl", "streaming", "ml")
LONGEST_MODULE: Final = 250
LONGEST_FUNCTION: Final = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(folder: Path) -> list[Path]:
    """The Python files under a folder, without `__init__.py`."""
    return sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")


def named(path: Path) -> str:
    """A path as it is written in the repository; the id of a test case."""
    return path.relative_to(ROOT).as_posix()


def functions(tree: ast.AST) -> Iterator[Function]:
    """Every function and method of a module, the inner ones too."""
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


def lines_of(function: Function) -> int:
    """How many lines a function has, its signature included and its docstring left out."""
    lines = (function.end_lineno or function.lineno) - function.lineno + 1
    if ast.get_docstring(function) is None:
        return lines
    docstring = function.body[0]
    return lines - ((docstring.end_lineno or docstring.lineno) - docstring.lineno + 1)


PIPELINES: Final = list(chain.from_iterable(modules(ROOT / "app" / package) for package in PIPELINE_PACKAGES))
MODULES: Final = modules(ROOT / "app")
UNIT_TESTS: Final = sorted((ROOT / "tests" / "unit").rglob("test_*.py"))


@pytest.mark.parametrize("module", PIPELINES, ids=named)
def test_a_pipeline_has_a_config_and_a_test_of_its_name(module: Path) -> None:
    """`app/etl/x.py` comes with `config/etl/x.yml` and `tests/unit/etl/test_x.py`."""
    package, name = module.parent.name, module.stem
    companions = [ROOT / "config" / package / f"{name}.yml", ROOT / "tests" / "unit" / package / f"test_{name}.py"]
    assert [named(path) for path in companions if not path.is_file()] == []


def test_a_pipeline_config_belongs_to_a_pipeline() -> None:
    """No configuration is left behind by a pipeline that is gone or was renamed."""
    configs = chain.from_iterable((ROOT / "config" / package).glob("*.yml") for package in PIPELINE_PACKAGES)
    owners = {(path.parent.name, path.stem) for path in PIPELINES}
    assert [named(path) for path in configs if (path.parent.name, path.stem) not in owners] == []


@pytest.mark.parametrize("test", UNIT_TESTS, ids=named)
def test_a_unit_test_mirrors_a_module(test: Path) -> None:
    """`tests/unit/etl/test_x.py` tests `app/etl/x.py` (or the package of that name)."""
    inside = test.relative_to(ROOT / "tests" / "unit").parent
    tested = ROOT / "app" / inside / test.stem.removeprefix("test_")
    assert tested.with_suffix(".py").is_file() or tested.is_dir()


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_module_can_be_read_at_once(module: Path) -> None:
    """A module has at most 250 lines."""
    assert len(module.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE


@pytest.mark.parametrize("module", MODULES, ids=named)
def test_a_function_fits_on_a_screen(module: Path) -> None:
    """A function has at most 40 lines, its docstring not counted."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    lengths = [(function.name, lines_of(function)) for function in functions(tree)]
    assert [(name, lines) for name, lines in lengths if lines > LONGEST_FUNCTION] == []
