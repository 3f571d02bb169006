"""The code lies where its name says, in pieces that can be read at once."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from spark_app.execution import pipelines as loader

ROOT: Final = Path(__file__).resolve().parents[2]
PIPELINE_PACKAGES: Final = ("etl", "streaming", "ml")
MAX_MODULES_AT_THE_ROOT: Final = 8
LIBRARY: Final = ROOT / "src" / "spark_app"
PROJECT: Final = ROOT / "app"
CODE: Final = (LIBRARY, PROJECT)
LONGEST_FUNCTION: Final = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


def modules(folder: Path) -> list[Path]:
    """The Python files under a folder, without `__init__.py`."""
    return sorted(path for path in folder.rglob("*.py") if path.name != "__init__.py")


def is_module(path: Path) -> bool:
    """Whether a path, without its suffix, is a module or a package."""
    return path.with_suffix(".py").is_file() or path.is_dir()


def pipelines() -> list[Path]:
    """The modules of all pipeline packages."""
    return [path for package in PIPELINE_PACKAGES for path in modules(PROJECT / package)]


def named(path: Path) -> str:
    """A path as it is written in the repository."""
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


def test_a_pipeline_has_a_test_of_its_name_and_the_config_that_it_needs() -> None:
    """`app/etl/x.py` comes with `tests/unit/etl/test_x.py`, and with `config/etl/x.yml` if a key has no default."""
    loaded = {name: each for package in PIPELINE_PACKAGES for name, each in loader.load(package).items()}
    needed = [
        name for name, each in loaded.items() if any(key.is_required() for key in each.config.model_fields.values())
    ]
    companions = [ROOT / "config" / f"{name.replace('.', '/')}.yml" for name in needed]
    companions += [ROOT / "tests" / "unit" / path.parent.name / f"test_{path.stem}.py" for path in pipelines()]
    assert len(companions) >= 4
    assert [named(path) for path in companions if not path.is_file()] == []


def test_a_pipeline_config_belongs_to_a_pipeline() -> None:
    """No configuration stays behind when a pipeline is deleted or renamed."""
    configs = [path for package in PIPELINE_PACKAGES for path in (ROOT / "config" / package).glob("*.yml")]
    owners = {(path.parent.name, path.stem) for path in pipelines()}
    assert configs
    assert [named(path) for path in configs if (path.parent.name, path.stem) not in owners] == []


def test_a_unit_test_mirrors_a_module() -> None:
    """`tests/unit/etl/test_x.py` tests `app/etl/x.py`, or one of the library or of `truth` (or a package)."""
    unit = ROOT / "tests" / "unit"
    tests = sorted(unit.rglob("test_*.py"))
    tested = {test: test.relative_to(unit).parent / test.stem.removeprefix("test_") for test in tests}
    assert tested
    assert [
        named(test) for test, path in tested.items() if not any(is_module(code / path) for code in (*CODE, ROOT))
    ] == []


def test_the_root_of_the_program_holds_few_modules() -> None:
    """A module belongs in a package: at most eight lie loose in `src/spark_app/`."""
    loose = [path.name for path in sorted(LIBRARY.glob("*.py")) if path.name != "__init__.py"]
    assert "settings.py" in loose
    assert len(loose) <= MAX_MODULES_AT_THE_ROOT, loose


def test_a_function_fits_on_a_screen() -> None:
    """A function has at most 40 lines, its docstring not counted."""
    lengths = {
        f"{named(module)}: {function.name}": lines_of(function)
        for code in CODE
        for module in modules(code)
        for function in functions(ast.parse(module.read_text(encoding="utf-8")))
    }
    assert lengths
    assert {function: lines for function, lines in lengths.items() if lines > LONGEST_FUNCTION} == {}
