"""Each annex can be left out: the core works without it, and its commands say what is missing."""

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

import spark_app
from spark_app import __main__ as program
from spark_app.commands import plugins
from spark_app.installation import annexes as installation
from spark_app.runs import model_card
from tests.unit.eventlog import log
from tests.unit.report import cards, made
from tests.unit.report.conftest import line, span

ROOT = Path(__file__).resolve().parents[3]


def without(tmp_path: Path, *annexes: str) -> Path:
    """A copy of the program without some annexes."""
    copied = tmp_path / "src" / "spark_app"
    shutil.copytree(Path(spark_app.__file__).parent, copied, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "config", tmp_path / "config")
    for annex in annexes:
        shutil.rmtree(copied / "annexes" / annex)
    return copied.parent


def run(source: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs Python with a copy of the program."""
    variables = {**os.environ, "PYTHONPATH": f"{source}{os.pathsep}{ROOT}", "COLUMNS": "200"}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=variables, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("command", sorted(plugins.ANNEXES))
def test_a_command_of_an_annex_that_was_left_out_says_so(tmp_path: Path, command: str) -> None:
    """In one line, with exit code 2; the other commands are there."""
    annex = plugins.ANNEXES[command]
    source = without(tmp_path, annex)
    asked = run(source, "-m", "spark_app", command, "x")
    assert (asked.returncode, asked.stdout) == (2, "")
    assert f"spark-app {command} is a command of the annex {annex}, which was left out" in asked.stderr
    shown = run(source, "-m", "spark_app", "--help").stdout
    assert [name for name in plugins.ANNEXES if f" {name} " in shown] == [
        name for name in plugins.ANNEXES if plugins.ANNEXES[name] != annex
    ]


def test_an_annex_that_cannot_be_loaded_hurts_no_other(tmp_path: Path) -> None:
    """What it would add says why; every other command is there."""
    source = without(tmp_path)
    plugin = source / "spark_app" / "annexes" / "tune" / "plugin.py"
    plugin.write_text('raise LookupError("of its own")\n', encoding="utf-8")
    asked = run(source, "-m", "spark_app", "tune", "x")
    (line,) = asked.stderr.splitlines()
    assert asked.returncode == 2
    assert "is a command of the annex tune, which cannot be loaded: LookupError: of its own" in line
    shown = run(source, "-m", "spark_app", "--help")
    assert [name for name in plugins.ANNEXES if f" {name} " not in shown.stdout] == ["tune"]


@pytest.mark.parametrize(
    ("annex", "arguments"),
    [
        ("live", ["report", "--follow", "x"]),
        ("live", ["observe", "--live", "--", "true"]),
        ("flames", ["report", "--profile-out", "out", "x"]),
        ("flames", ["compare", "--flame-graph", "grew.html", "x"]),
    ],
)
def test_an_option_of_an_annex_that_was_left_out_says_so(tmp_path: Path, annex: str, arguments: list[str]) -> None:
    """In one line, with exit code 2, before anything is done."""
    asked = run(without(tmp_path, annex), "-m", "spark_app", *arguments)
    assert (asked.returncode, asked.stdout) == (2, "")
    option = f"spark-app {arguments[0]} {arguments[1]}"
    (line,) = asked.stderr.splitlines()
    assert f"{option} is an option of the annex {annex}, which was left out of this installation: install" in line


REPORT = """
import sys
from pathlib import Path
from spark_app.eventlog.reader import read
from spark_app.report import page, run_info

log, run, output = map(Path, sys.argv[1:])
page.write(read(log), output=output, run=run_info.read(run))
"""


def test_a_report_says_which_section_was_left_out(tmp_path: Path) -> None:
    """Where it would have something to show: here that of a model."""
    log_file = made.written(tmp_path / "log", [log.started(), log.ended()])
    contents = []
    for name, has_card in (("of a model", True), ("of none", False)):
        run_folder = tmp_path / name
        run_folder.mkdir()
        (run_folder / "traces.jsonl").write_text(
            line("resourceSpans", "scopeSpans", "spans", span("1", "", "run ml.refunds", 1000, 2000))
        )
        if has_card:
            model_card.write(run_folder, cards.card())
        source = without(tmp_path / "copies" / name, "model_page")
        done = run(source, "-c", REPORT, str(log_file), str(run_folder), str(tmp_path / "r.html"))
        assert done.returncode == 0, done.stderr
        contents.append((tmp_path / "r.html").read_text("utf-8"))
    sentence = "The section Model is one of the annex model_page, which was left out of this installation: install"
    assert [sentence in content for content in contents] == [True, False]
    assert ['href="#model"' in content for content in contents] == [True, False]


@pytest.mark.parametrize("command", [["report"], ["observe", "--", "true"]])
def test_a_port_without_a_page_is_refused(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is done."""
    assert program.run([command[0], "--port", "18000", *command[1:]]) == 2
    assert "--port is the port of the live page: give --" in capsys.readouterr().err


def test_an_application_of_a_cluster_whose_annex_was_left_out_says_so(tmp_path: Path) -> None:
    """In one line, before the cluster is asked."""
    asked = run(without(tmp_path, "kubernetes"), "-m", "spark_app", "report", "k8s://jobs/flights")
    (line,) = asked.stderr.splitlines()
    assert asked.returncode == 2
    assert "k8s:// is a scheme of the annex kubernetes, which was left out of this installation: install" in line


def test_every_annex_is_known_by_its_commands() -> None:
    """Else a command that was left out would be an unknown one."""
    of_annexes = {name: annex for annex, values in installation.installed().items() for name in names(values)}
    assert of_annexes == plugins.ANNEXES


def names(values: Sequence[object]) -> list[str]:
    """The names of the commands of an annex."""
    return [each.function.__name__ for each in values if isinstance(each, plugins.Command)]


def test_the_core_works_without_any_annex(tmp_path: Path) -> None:
    """Its own tests of what reads annexes pass, in a copy of the program."""
    source = without(tmp_path, *installation.installed())
    folders = ["tests/unit/report", "tests/unit/installation", "tests/unit/eventlog/model/test_failed_parts.py"]
    commands = [f"tests/unit/commands/test_{name}.py" for name in ("compare", "options", "report")]
    # With `pythonpath` of pyproject.toml, pytest would import the program of this clone, which has all annexes.
    options = ("-q", "-p", "no:cacheprovider", "-o", "pythonpath=")
    imported = run(source, "-m", "pytest", *options, "tests/unit/annexes/flames")
    assert "No module named 'spark_app.annexes.flames'" in imported.stdout
    done = run(source, "-m", "pytest", *options, *folders, *commands)
    assert done.returncode == 0, done.stdout[-3000:]
