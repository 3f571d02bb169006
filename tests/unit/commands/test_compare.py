import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from spark_app import __main__ as program
from spark_app.commands.compare import print_comparison
from spark_app.commands.terminal import Terminal
from spark_app.eventlog.comparison import baselines, profiling
from spark_app.eventlog.comparison.compare import compare
from spark_app.eventlog.reader import read
from spark_app.runs import run_record
from tests.unit.conftest import Printed, Screen
from tests.unit.eventlog.made import Run, Stage, Task
from tests.unit.run_records import example_record
from tests.unit.stack_samples.made import beside

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
    document: dict[str, Any] = json.loads(capsys.readouterr().out)
    return document


def changes(rows: str, cpu: str) -> list[str]:
    """The printed table of what changed."""
    return [
        "",
        "what       now and before",
        "settings   the same",
        "plans      the same",
        f"rows read  {rows}",
        "shuffled   0 B, the same",
        "tasks      2, the same",
        f"CPU time   {cpu}",
    ]


def test_a_killed_run_is_compared_as_one(capsys: pytest.CaptureFixture[str], home: Path) -> None:
    """Its log may end as if all was well; `observe` has stored its exit code."""
    before, now = (write_log(home / "spark-events", run) for run in (BEFORE, NOW))
    reading = read(now)
    reading.app.process_exit_code = 143
    baselines.save(home / "reports" / "records", profiling.run_profile(reading))
    remarks = compared(capsys, now, before)["comparison"]["remarks"]
    assert remarks == ["app-2 was killed: its time lacks the work that it did not reach"]


def test_causes_have_seconds_evidence_and_advice(printed: Printed) -> None:
    """The headline has both durations."""
    print_comparison(printed.terminal, compare(BEFORE.summary, NOW.summary))
    assert printed.out.getvalue().splitlines() == [
        "shop: now 10.0 s, before 5.0 s: +5.0 s",
        "app-2 compared with app-1",
        "",
        "  time  cause",
        f"+5.0 s  {SENTENCE}",
        "        -> check whether the data was expected to grow",
        " +0 ms  unexplained, or in causes below 5 % of the difference",
        *changes("400, before 200", "16.0 s, before 8.0 s"),
    ]


def test_causes_of_a_faster_run_have_no_advice(printed: Printed) -> None:
    """That the run failed is printed first."""
    print_comparison(printed.terminal, compare(NOW.summary, replace(BEFORE, has_failed=True).summary))
    assert printed.out.getvalue().splitlines() == [
        "shop: now 5.0 s, before 10.0 s: -5.0 s",
        "app-1 compared with app-2",
        "app-1 failed: its time lacks the work that it did not reach",
        "",
        "  time  cause",
        "-5.0 s  less input: sum up [result] read 200 rows (2.0 KiB), before 400 rows (3.9 KiB)",
        " +0 ms  unexplained, or in causes below 5 % of the difference",
        *changes("200, before 400", "8.0 s, before 16.0 s"),
    ]


@pytest.mark.parametrize("screen", [60], indirect=True)
def test_sentences_are_wrapped_between_words(screen: Screen) -> None:
    """On a terminal; the next line stays below its sentence."""
    print_comparison(Terminal(out=screen.stream), compare(BEFORE.summary, NOW.summary))
    shown = ANSI.sub("", screen.text()).splitlines()
    assert shown[4:6] == [
        "+5.0 s  more input: sum up [result] read 400 rows (3.9 KiB),",
        "        before 200 rows (2.0 KiB)",
    ]


def test_equal_runs_have_no_causes(printed: Printed) -> None:
    """The noise threshold is printed, and what changed all the same."""
    print_comparison(printed.terminal, compare([BEFORE.summary] * 3, BEFORE.summary))
    assert printed.out.getvalue().splitlines() == [
        "shop: now 5.0 s, before 5.0 s: +0 ms",
        "app-1 compared with app-1, the median of 3 earlier runs",
        "no significant difference (noise threshold 1.0 s)",
        *changes("200, the same", "8.0 s, the same"),
    ]


def test_control_characters_in_names_are_escaped(printed: Printed) -> None:
    """In names of applications and of stages."""
    name = "\x1b[31m[bold]<script>"
    before = replace(BEFORE, name=name, stages=[replace(BEFORE.stages[0], name=name)])
    now = replace(NOW, name=name, stages=[replace(NOW.stages[0], name=name)])
    print_comparison(printed.terminal, compare(before.summary, now.summary))
    assert "\x1b" not in printed.out.getvalue()
    assert r"\x1b[31m[bold]<script>: now" in printed.out.getvalue()
    assert r"more input: \x1b[#[bold]<script> [result] read" in printed.out.getvalue()


def test_long_names_are_truncated(printed: Printed) -> None:
    """So that the durations stay on the screen."""
    before, now = (replace(run, name="n" * 9999, id=run.id * 999) for run in (BEFORE, NOW))
    comparison = compare(before.summary, now.summary)
    print_comparison(printed.terminal, comparison)
    assert max(map(len, printed.out.getvalue().splitlines())) < 300
    assert max(map(len, comparison.sentences)) < 400


def test_a_run_may_be_named_by_log_profile_id_or_folder(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All resolve to the same profile."""
    log = write_log(home / "logs", NOW)
    record = baselines.save(home / "kept", BEFORE.summary)
    run = example_record(folder=home / "runs" / "a-run", event_log=log.as_uri())
    run.folder.mkdir(parents=True)
    run_record.write(run, note=pytest.fail)
    for named in (log, run.folder, "a-run"):
        document = compared(capsys, named, record)
        assert [cause["text"] for cause in document["comparison"]["causes"]] == [SENTENCE]
        assert document["comparison"]["difference_ms"] == 5000


def test_the_default_baseline_is_the_last_successful_runs(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Stored profiles of the same name; without any, the logs in the same folder."""
    log = write_log(home / "logs", NOW)
    write_log(home / "logs", BEFORE)
    assert compared(capsys, log)["comparison"]["before"] == "app-1"
    for number in range(3):
        baselines.save(home / "reports" / "records", replace(BEFORE, id=f"kept-{number}").summary)
    document = compared(capsys, log)["comparison"]
    assert (document["before"], document["runs"]) == ("kept-1", 3)


@pytest.mark.parametrize(
    ("named", "said"),
    [
        ("nowhere", "no run 'nowhere'"),
        ("logs/app-2", "no earlier successful run of 'shop'"),
        ("notes.txt", "is not a Spark event log"),
        ("broken.json", "is not a run profile"),
    ],
)
def test_what_cannot_be_compared_is_missing_input(
    home: Path, named: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One line says what is missing."""
    write_log(home / "logs", NOW)
    for name in ("notes.txt", "broken.json"):
        (home / name).write_text("nothing of the kind\n", encoding="utf-8")
    monkeypatch.chdir(home)
    assert program.run(["compare", named]) == 3
    assert said in capsys.readouterr().err


def test_a_slower_run_ends_with_5(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After the comparison, with one line that says by how much."""
    logs = [str(write_log(home / "logs", run)) for run in (NOW, BEFORE)]
    summary = home / "summary.md"
    assert program.run(["compare", *logs, "--fail-on", "slower:20%", "--summary-md", str(summary)]) == 5
    out, err = capsys.readouterr()
    assert (SENTENCE in out, err) == (True, "error: --fail-on slower:20%: 100 % slower, 10.0 s, before 5.0 s\n")
    assert "**Compared with an earlier run:** 10.0 s, before 5.0 s: +5.0 s" in summary.read_text(encoding="utf-8")
    assert program.run(["compare", *reversed(logs), "--fail-on", "slower:20%"]) == 0


def test_a_comparison_judges_no_findings(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A stored profile has none, and a check that looks at nothing must not look green."""
    assert program.run(["compare", "x", "--fail-on", "warning"]) == 2
    assert "--fail-on warning is for observe and report" in capsys.readouterr().err


def test_functions_that_grew_are_named(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Where both runs have samples of their stacks."""
    now, before = write_log(home, NOW), write_log(home, BEFORE)
    beside(now, executor="e1", task=0, udf=200)
    beside(before, executor="e1", task=0, udf=40)
    (grown,) = compared(capsys, now, before)["comparison"]["functions"]
    assert (grown["function"], grown["is_own"], grown["difference_ms"]) == ("score", True, 1600)
    assert (grown["samples"], grown["samples_before"]) == (200, 40)
    assert program.run(["compare", str(now), str(before)]) == 0
    printed = capsys.readouterr().out
    assert re.search(r"\+1\.6 s +score \(your program\) +91 %, 200 samples +67 %, 40 samples", printed)
