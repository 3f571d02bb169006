import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.installation import extras

ROOT = Path(__file__).parents[3]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = PYPROJECT["project"]
DISTRIBUTIONS = {
    "delta": "delta-spark",
    "kafka": "kafka-python",
    "openlineage": "openlineage-python",
    "sklearn": "scikit-learn",
}


@pytest.mark.parametrize(
    ("missing", "command", "extra"),
    [
        ("delta", ["etl", "--date", "2024-01-01"], "etl"),
        ("kafka", ["data", "stream"], "streaming"),
        ("sklearn", ["ml"], "ml"),
    ],
)
def test_a_missing_extra_is_an_error_before_anything_starts(
    missing: str, command: list[str], extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what is missing and what to install."""
    monkeypatch.setitem(sys.modules, missing, None)
    assert program.run(command) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert f"of which {missing} is not installed here: install spark-app[{extra}]" in line


def test_a_start_imports_nothing_of_an_extra() -> None:
    """Another command needs none of it, and answers sooner."""
    script = "import sys; from spark_app import __main__; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert not {name for names in extras.MODULES.values() for name in names} & set(loaded.stdout.split())


def test_each_command_that_is_no_core_command_has_an_extra() -> None:
    """Those that observe any application need none; `init` only writes files."""
    (pipelines, *core) = program.VERBS.values()
    assert {name.partition(" ")[0] for name in pipelines} - {"init"} == set(extras.EXTRAS)
    assert core


def test_the_import_contract_holds_for_each_command_that_needs_no_spark() -> None:
    """So that an import of Spark in one of them is seen before a wheel without extras fails."""
    (_, *core) = program.VERBS.values()
    contracts = {each["id"]: each for each in PYPROJECT["tool"]["importlinter"]["contracts"]}
    modules = {verb.__module__ for verbs in core for verb in verbs.values()}
    assert modules - set(contracts["core"]["source_modules"]) == set()


def test_an_extra_brings_what_is_checked() -> None:
    """The modules of an extra are those of the packages that it and the extras in it name."""
    pins = {extra: PROJECT["optional-dependencies"][extra] for extra in extras.MODULES}
    own = {extra: {pin.partition("==")[0] for pin in given} for extra, given in pins.items()}
    etl = "spark-app[etl]"
    brought = {extra: names | own["etl"] if etl in names else names for extra, names in own.items()}
    checked = {extra: {DISTRIBUTIONS.get(name, name) for name in names} for extra, names in extras.MODULES.items()}
    assert checked == {extra: names - {etl} for extra, names in brought.items()}
