import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from app import __main__ as program
from app import records
from app.commands.compare import tell
from app.commands.terminal import Terminal
from app.eventlog.comparison import history
from app.eventlog.comparison.compare import compare
from tests.unit.commands.conftest import Printed, Screen
from tests.unit.eventlog.made import Run, Stage, Task
from tests.unit.run_records import run_record

BEFORE = Run(5000, [Stage("sum up", 0, 5000, [Task(0, 5000, cpu=4000, rows=100)] * 2)], id="app-1")
NOW = Run(10_000, [Stage("sum up", 0, 10_000, [Task(0, 10_000, cpu=8000, rows=200)] * 2)], id="app-2", at=2_000_000)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
SENTENCE = "more input: sum up [result] read 400 rows (3.9 KiB), before 200 rows (2.0 KiB)"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The home folder of the program."""
    monkeypatch.setenv("SPARK_APP_HOME", str(tmp_path))
    return tmp_path


def write_log(folder: Path, run: Run) -> Path:
    """The event log of a run, in a folder of logs."""
    folder.mkdir(exist_ok=True)
    log = folder / run.id
    log.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in run.lines()))
    return log


def compared(capsys: pytest.CaptureFixture[str], *arguments: object) -> dict[str, Any]:
    """What the program says of two runs."""
    assert program.run(["compare", *map(str, arguments), "--json"]) == 0, capsys.readouterr().err
    told: dict[str, Any] = json.loads(capsys.readouterr().out)
    return told


def test_causes_are_told_with_numbers_and_what_to_do(printed: Printed) -> None:
    """The headline has both times; each cause its seconds, its evidence and an advice."""
    tell(printed.terminal, compare(BEFORE.summary, NOW.summary))
    assert printed.out.getvalue().splitlines() == [
        "shop: now 10.0 s, before 5.0 s: +5.0 s",
        "app-2 compared with app-1",
        "",
        "  time  went to",
        f"+5.0 s  {SENTENCE}",
        "        -> see whether the data is meant to have grown",
        " +0 ms  unexplained, or in causes too small to name",
    ]


def test_what_a_run_gained_is_told_without_advice(printed: Printed) -> None:
    """Nothing has to be changed where it became faster; that it failed is said before all."""
    tell(printed.terminal, compare(NOW.summary, replace(BEFORE, has_failed=True).summary))
    assert printed.out.getvalue().splitlines() == [
        "shop: now 5.0 s, before 10.0 s: -5.0 s",
        "app-1 compared with app-2",
        "app-1 failed: what it did not get to is missing in its time",
        "",
        "  time  went to",
        "-5.0 s  less input: sum up [result] read 200 rows (2.0 KiB), before 400 rows (3.9 KiB)",
        " +0 ms  unexplained, or in causes too small to name",
    ]


@pytest.mark.parametrize("screen", [60], indirect=True)
def test_sentences_are_folded_between_words(screen: Screen) -> None:
    """On a terminal; what goes on stays below its sentence."""
    tell(Terminal(out=screen.stream), compare(BEFORE.summary, NOW.summary))
    shown = ANSI.sub("", screen.text()).splitlines()
    assert shown[4:6] == [
        "+5.0 s  more input: sum up [result] read 400 rows (3.9 KiB),",
        "        before 200 rows (2.0 KiB)",
    ]


def test_no_difference_is_said_plainly(printed: Printed) -> None:
    """Equal runs have no causes; what counts as equal is told."""
    tell(printed.terminal, compare([BEFORE.summary] * 3, BEFORE.summary))
    assert printed.out.getvalue().splitlines() == [
        "shop: now 5.0 s, before 5.0 s: +0 ms",
        "app-1 compared with app-1, the median of 3 earlier runs",
        "no difference to speak of: less than 1.0 s is noise",
    ]


def test_hostile_names_stay_text(printed: Printed) -> None:
    """Names of applications and of their work are shown literally."""
    name = "\x1b[31m[bold]<script>"
    before = replace(BEFORE, name=name, stages=[replace(BEFORE.stages[0], name=name)])
    now = replace(NOW, name=name, stages=[replace(NOW.stages[0], name=name)])
    tell(printed.terminal, compare(before.summary, now.summary))
    assert "\x1b" not in printed.out.getvalue()
    assert r"\x1b[31m[bold]<script>: now" in printed.out.getvalue()
    assert r"more input: \x1b[#[bold]<script> [result] read" in printed.out.getvalue()


def test_endless_names_are_cut(printed: Printed) -> None:
    """What a log calls itself cannot push the times off the screen."""
    before, now = (replace(run, name="n" * 9999, id=run.id * 999) for run in (BEFORE, NOW))
    told = compare(before.summary, now.summary)
    tell(printed.terminal, told)
    assert max(map(len, printed.out.getvalue().splitlines())) < 300
    assert max(map(len, told.sentences)) < 400


def test_logs_records_and_runs_of_ours_can_be_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A run is what has its log: the log itself, its record, or a run of ours by its folder or its id."""
    log = write_log(home / "logs", NOW)
    record = history.keep(home / "kept", BEFORE.summary)
    run = run_record(folder=home / "runs" / "a-run", event_log=log.as_uri())
    run.folder.mkdir(parents=True)
    records.write(run, note=pytest.fail)
    for named in (log, run.folder, "a-run"):
        told = compared(capsys, named, record)
        assert [cause["text"] for cause in told["comparison"]["causes"]] == [SENTENCE]
        assert told["difference_ms"] == 5000


def test_the_last_good_runs_on_record_are_what_it_is_measured_by(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without another run, records of the same name count; without records, the logs beside its own."""
    log = write_log(home / "logs", NOW)
    write_log(home / "logs", BEFORE)
    assert compared(capsys, log)["comparison"]["before"] == "app-1"
    for number in range(3):
        history.keep(home / "reports" / "records", replace(BEFORE, id=f"kept-{number}").summary)
    told = compared(capsys, log)["comparison"]
    assert (told["before"], told["runs"]) == ("kept-1", 3)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere", "there is neither a run 'nowhere'"),
        ("logs/app-2", "no earlier good run of 'shop' is known"),
        ("notes.txt", "is no Spark event log"),
        ("broken.json", "is no record of an application"),
    ],
)
def test_what_cannot_be_compared_is_said(
    home: Path, named: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what is missing; the exit code is that of missing input."""
    write_log(home / "logs", NOW)
    for name in ("notes.txt", "broken.json"):
        (home / name).write_text("nothing of the kind\n", encoding="utf-8")
    monkeypatch.chdir(home)
    assert program.run(["compare", named]) == 3
    assert said in capsys.readouterr().err
