"""The JSON document of `observe`, `report` and `compare` is what docs/results.schema.json says."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from spark_app.__main__ import run
from spark_app.report.results.schema import Results, json_schema

ROOT: Final = Path(__file__).resolve().parents[2]
SCHEMA: Final = ROOT / "docs" / "results.schema.json"
LOGS: Final = ROOT / "tests" / "eventlogs"
RECORDED: Final = [
    *sorted(LOGS.glob("*.*.*/plain/*.zst")),
    LOGS / "streaming" / "4.2.0.zst",
    LOGS / "clusters" / "fetch-failure.zst",
    LOGS / "connect" / "server.zst",
    LOGS / "diagnoses" / "plans.zst",
]
SPILLING: Final = LOGS / "causes" / "spill-planted.zst"


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder for reports and records."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def valid(text: str | bytes) -> dict[str, Any]:
    """The document in a text: each key of the schema is there, with a value of its type, and no other key."""
    found: dict[str, Any] = json.loads(text)
    assert msgspec.to_builtins(msgspec.json.decode(text, type=Results)) == found
    return found


def test_the_documented_schema_is_that_of_the_program() -> None:
    """After a change of it: python -m spark_app.report.results.schema > docs/results.schema.json."""
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == json_schema()


def test_every_key_of_the_schema_is_required_and_described() -> None:
    """A program may rely on it; each struct says what it is."""
    for name, struct in json_schema()["$defs"].items():
        assert struct["required"] == list(struct["properties"]), name
        assert struct["description"].endswith("."), name


@pytest.mark.parametrize("log", RECORDED, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_report_of_each_recorded_log_is_valid(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Of every version of Spark."""
    assert run(["report", str(log), "--json"]) == 0
    (about,) = valid(capsys.readouterr().out)["applications"]
    assert about["figures"]["duration_ms"] > 0


def test_a_report_that_fails_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    """It has all that the report found, and one document only."""
    many = str(SPILLING.with_name("tiny_tasks-planted.zst"))
    assert run(["report", many, "--json", "--fail-on", "tiny_tasks", "--fail-on", "warning"]) == 5
    found = valid(capsys.readouterr().out)
    assert [each["condition"] for each in found["failed_on"]] == ["tiny_tasks", "warning"]
    assert found["applications"][0]["findings"][0]["rule"] == "tiny_tasks"


def test_a_comparison_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    """With its changed settings."""
    quiet = SPILLING.with_name("spill-quiet.zst")
    assert run(["compare", str(SPILLING), str(quiet), "--json"]) == 0
    found = valid(capsys.readouterr().out)["comparison"]
    assert {"name": "spark.memory.fraction", "now": "0.05", "before": None} in found["settings"]


@pytest.mark.parametrize("arguments", [["report", "nothing"], ["compare", "nothing"], ["report", "x", "--nonsense"]])
def test_an_error_is_valid(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A reader finds the same keys, whatever went wrong."""
    assert run([*arguments, "--json"]) in (2, 3)
    found = valid(capsys.readouterr().out)
    assert (found["command"], found["applications"], found["error"] is None) == (arguments[0], [], False)


@pytest.mark.parametrize(
    ("options", "command", "code"),
    [
        ([], ["sh", "-c", "exit 3"], 3),
        ([], ["no-such-command"], 127),
        (["--keep", "/proc/x"], ["true"], 2),
        (["--fail-on", "warning"], ["true"], 5),
    ],
    ids=("failed", "missing", "no-folder", "nothing-judged"),
)
def test_what_observe_writes_is_valid(home: Path, options: list[str], command: list[str], code: int) -> None:
    """Whatever the command does; the exit code is the one in the file."""
    file = home / "new" / "observed.json"
    file.parent.mkdir()
    started = [sys.executable, "-m", "spark_app", "observe", "--json", str(file), *options, "--", *command]
    done = subprocess.run(started, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (code, "")
    found = valid(file.read_bytes())
    assert (found["command"], found["exit_code"]) == ("observe", code)
