import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from spark_app.commands.observe import figures, list_applications, report_each, to_open, worst
from spark_app.eventlog import reader
from spark_app.eventlog.comparison import baselines, profiling
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Input, StageInfo, TaskEndReason, TaskInfo, TaskMetrics
from spark_app.eventlog.parse.log_tailer import ReadErrors
from spark_app.eventlog.reader import Reading
from spark_app.observe.analysis import analyze
from spark_app.observe.event_log_injection import LAUNCH
from spark_app.observe.results import ObservedApplications
from spark_app.report import index
from spark_app.report.results import schema
from spark_app.settings import Settings, load_settings
from tests.unit.conftest import Printed
from tests.unit.eventlog.made import Run, Stage, Task
from tests.unit.report.results.test_fail_on import application

OBSERVE: Final = (sys.executable, "-m", "spark_app", "observe")


def observed(home: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """A command after it was observed."""
    return subprocess.run(
        [*OBSERVE, *command],
        env={"PATH": "/usr/bin:/bin", "SPARK_APP_HOME": str(home)},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        check=False,
    )


def read(*logged: events.Event, is_finished: bool = True) -> Reading:
    """A log with certain events."""
    app = Application("app-1")
    for event in logged:
        app.apply(event)
    return Reading(Path("local-1"), app, ReadErrors(), 0, is_finished)


STARTED: Final = events.ApplicationStart("one", 1000)


@pytest.mark.parametrize("before", [[], ["--"]])
def test_options_after_the_command_belong_to_the_command(tmp_path: Path, before: list[str]) -> None:
    """`--json`, `--help` and `--` too, with or without `--` before the command."""
    done = observed(tmp_path, *before, "echo", "--json", "--help", "--", "--debug")
    assert (done.returncode, done.stdout) == (0, "--json --help -- --debug\n")


def test_a_program_without_spark_gets_one_line(tmp_path: Path) -> None:
    """The exit code is the program's, and standard output has only the program's output."""
    done = observed(tmp_path, "sh", "-c", "echo hi; exit 3")
    assert (done.returncode, done.stdout) == (3, "hi\n")
    assert "no Spark was started" in done.stderr


def test_a_missing_command_exits_like_a_shell(tmp_path: Path) -> None:
    """One line names the command."""
    done = observed(tmp_path, "no-such-command", "--json")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "error: no-such-command: command not found\n"


def test_control_characters_in_a_name_are_escaped() -> None:
    """The terminal shows them and does not act on them."""
    row = figures(read(events.ApplicationStart("\x1b[31mred\n", 1000)))
    assert row["application"] == "\\x1b[31mred\\n"


@pytest.mark.parametrize(("metrics", "expected"), [(None, "-"), (TaskMetrics(disk_spilled=7), "7 B")])
def test_bytes_of_tasks_without_metrics_are_unknown(metrics: TaskMetrics | None, expected: str) -> None:
    """A task that was lost with its executor has no metrics: its bytes are not 0."""
    info = StageInfo(0, 0, "collect", 1)
    end = events.TaskEnd(0, 0, TaskEndReason("Success"), TaskInfo(0, 0, 0, 1, "1", "host", finished=2), metrics)
    assert figures(read(STARTED, events.StageSubmitted(info), end))["spilled"] == expected


@pytest.mark.parametrize(
    ("rows", "size", "expected"),
    [(3, 5, "3 rows, 5 B"), (3, 0, "3 rows"), (0, 5, "5 B"), (0, 0, "0 rows, 0 B")],
)
def test_a_zero_beside_another_amount_was_not_counted(rows: int, size: int, expected: str) -> None:
    """Some sources count rows only, others bytes only: the table claims no 0."""
    info = StageInfo(0, 0, "collect", 1)
    metrics = TaskMetrics(input=Input(records=rows, bytes=size))
    end = events.TaskEnd(0, 0, TaskEndReason("Success"), TaskInfo(0, 0, 0, 1, "1", "host", finished=2), metrics)
    assert figures(read(STARTED, events.StageSubmitted(info), end))["read"] == expected


def test_the_three_worst_findings_are_listed() -> None:
    """The rest is counted."""
    found = [Finding(f"rule_{number}", "info", f"finding {number}", "") for number in range(5)]
    first = [("info", "finding 0"), ("info", "finding 1"), ("info", "finding 2")]
    assert worst(found) == [*first, ("", "2 more in the report")]
    assert worst(found[:1]) == first[:1]


BEFORE: Final = Run(5000, [Stage("sum up", 0, 5000, [Task(0, 5000, cpu=4000, rows=100)] * 2)], settings={LAUNCH: "l-1"})
NOW: Final = replace(
    BEFORE, end=10_000, stages=[Stage("sum up", 0, 10_000, [Task(0, 10_000, cpu=8000, rows=200)] * 2)], at=2_000_000
)


def settings(home: Path, **changes: Any) -> Settings:
    """Settings of a home of its own."""
    return load_settings().model_copy(update={"home": home, **changes})


def seen(home: Path, run: Run, id: str, *, code: int = 0, is_running: bool = False) -> ObservedApplications:  # noqa: A002 - it is what Spark calls it
    """A command with one application, whose log is there."""
    log = home / "spark-events" / (id if run.is_finished else f"{id}.inprogress")
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in replace(run, id=id).lines()))
    reading = reader.read(log)
    reading.app.is_alive, reading.app.process_exit_code = is_running, None if is_running else code
    return ObservedApplications([reading], [])


def report_text(printed: Printed, found: ObservedApplications, home: Path, *, code: int = 0, **changes: Any) -> str:
    """What is printed of a command."""
    list_applications(printed.terminal, found, code=code, seconds=1)
    report_each(printed.terminal, found, settings(home, **changes), Thresholds(), code=code, report=None, found=[])
    return printed.out.getvalue()


def test_a_slower_application_is_compared_with_the_earlier_one(tmp_path: Path, printed: Printed) -> None:
    """On the terminal and in its report; only with applications of commands that succeeded."""
    report_text(printed, seen(tmp_path, replace(BEFORE, at=900_000), "app-0", code=1), tmp_path, code=1)
    report_text(printed, seen(tmp_path, BEFORE, "app-1"), tmp_path)
    assert "more input" not in (tmp_path / "reports" / "app-1.html").read_text(encoding="utf-8")
    assert "compared with" not in printed.out.getvalue()
    now = seen(tmp_path, NOW, "app-2")
    assert "more input: sum up" in report_text(printed, now, tmp_path)
    assert "more input" in (tmp_path / "reports" / "app-2.html").read_text(encoding="utf-8")
    earlier = baselines.last_good(settings(tmp_path).profiles_path, profiling.run_profile(now.readings[0]))
    assert [each.id for each in earlier] == ["app-1"]
    assert "app-2.html" in (tmp_path / "reports" / "index.html").read_text(encoding="utf-8")


def test_a_running_application_is_no_baseline(tmp_path: Path, printed: Printed) -> None:
    """It has a report of its state so far."""
    going_on = seen(tmp_path, replace(BEFORE, is_finished=False), "app-1", is_running=True)
    assert " running " in report_text(printed, going_on, tmp_path)
    assert not (tmp_path / "reports" / "records").exists()


def test_each_of_several_applications_has_its_name_above_its_findings(tmp_path: Path, printed: Printed) -> None:
    """So that findings and reports can be distinguished."""
    logs = [seen(tmp_path, replace(BEFORE, name=name), name).readings[0] for name in ("one", "two")]
    lines = report_text(printed, ObservedApplications(logs, []), tmp_path).splitlines()
    places = [lines.index(name) for name in ("one", "two")]
    assert [lines[place - 1] for place in places] == ["", ""]
    assert [next(line for line in lines[place:] if line.startswith("report")).split("/")[-1] for place in places] == [
        "one.html",
        "two.html",
    ]


ENDS: Final = [
    (143, "killed", "killed by SIGTERM (exit code 143)", "bad"),
    (3, "failed", "failed with exit code 3", "bad"),
    (0, "succeeded", "succeeded", "good"),
]


@pytest.mark.parametrize(("code", "outcome", "text", "mood"), ENDS)
def test_the_outcome_is_the_same_everywhere(
    tmp_path: Path, printed: Printed, *, code: int, outcome: str, text: str, mood: str
) -> None:
    """In the table, the title and the badge of the report, the list of reports, the stored profile, and findings."""
    found = seen(tmp_path, BEFORE, "app-1", code=code)
    said = report_text(printed, found, tmp_path, code=code)
    assert figures(found.readings[0])["outcome"] == outcome
    content = (tmp_path / "reports" / "app-1.html").read_text(encoding="utf-8")
    assert f"<title>shop · {text}</title>" in content
    assert f'<span class="pill {mood}">{text}</span>' in content
    (entry,) = index.entries(tmp_path / "reports")
    assert (entry.outcome, entry.mood) == (text, mood)
    (record,) = (tmp_path / "reports" / "records").glob("*/*.json")
    assert baselines.load(record).outcome == outcome
    assert (f"The application was {text}" in said or f"The application {text}" in said) == (mood == "bad")


def test_a_later_report_of_the_log_has_the_outcome_that_observe_saw(tmp_path: Path, printed: Printed) -> None:
    """The log itself says that the application ended well."""
    reading = seen(tmp_path, BEFORE, "app-1").readings[0]
    reading.app.process_exit_code = 143
    report_text(printed, ObservedApplications([reading], []), tmp_path, code=143)
    again = analyze(reader.read(reading.log), settings(tmp_path), Thresholds())
    assert (again.profile.outcome, again.findings[0].rule) == ("killed", "failed_application")


def test_a_served_report_is_named_by_its_url(tmp_path: Path, printed: Printed) -> None:
    """Instead of its path."""
    assert "http://localhost:8088/app-1.html" in report_text(
        printed, seen(tmp_path, BEFORE, "app-1"), tmp_path, reports_url="http://localhost:8088/"
    )


def test_an_observed_etl_does_not_export_its_event_log(tmp_path: Path) -> None:
    """`observe` exports it."""
    assert observed(tmp_path, "printenv", "SPARK_APP_EVENT_LOG_EXPORTER").stdout == "bridge\n"


def test_the_results_have_what_is_printed(tmp_path: Path, printed: Printed) -> None:
    """Of each application, with its comparison."""
    report_text(printed, seen(tmp_path, BEFORE, "app-1"), tmp_path)
    found: list[schema.Application] = []
    now = seen(tmp_path, NOW, "app-2")
    report_each(printed.terminal, now, settings(tmp_path), Thresholds(), code=0, report=None, found=found)
    (about,) = found
    assert about.comparison is not None
    assert (about.id, about.outcome, about.comparison.difference_ms) == ("app-2", "succeeded", 5000)
    assert about.report == str(tmp_path / "reports" / "app-2.html")


def test_a_log_that_cannot_be_analysed_leaves_the_others(tmp_path: Path, printed: Printed) -> None:
    """What was found before it stays."""
    both = ObservedApplications([*seen(tmp_path, BEFORE, "app-1").readings, read(STARTED)], [])
    (tmp_path / "reports" / "local-1.html").mkdir(parents=True)
    found: list[schema.Application] = []
    with pytest.raises(IsADirectoryError):
        report_each(printed.terminal, both, settings(tmp_path), Thresholds(), code=0, report=None, found=found)
    assert len(found) == 1


@pytest.mark.parametrize(("options", "code"), [([], 0), (["--fail-on", "warning"], 5)])
def test_a_condition_that_cannot_be_judged_fails(tmp_path: Path, options: list[str], code: int) -> None:
    """No Spark, no verdict: one line says so, and standard output is still that of the command."""
    done = observed(tmp_path, *options, "--", "echo", "hi")
    assert (done.returncode, done.stdout) == (code, "hi\n")
    expected = ["error: --fail-on warning: cannot be judged: no Spark application was observed"] if code else []
    assert [line for line in done.stderr.splitlines() if line.startswith("error")] == expected


def test_the_exit_code_of_the_command_comes_first(tmp_path: Path) -> None:
    """A condition that holds as well is said, and in the file."""
    file = tmp_path / "observed.json"
    done = observed(tmp_path, "--fail-on", "warning", "--json", str(file), "--", "sh", "-c", "exit 7")
    assert done.returncode == 7
    content = msgspec.json.decode(file.read_bytes())
    assert (content["exit_code"], content["program"]["exit_code"], len(content["failed_on"])) == (7, 7, 1)


def test_a_document_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    """After the command, whose own exit code stays."""
    for command, code in (["true"], 2), (["false"], 1):
        done = observed(tmp_path, "--json", str(tmp_path), "--", *command)
        assert (done.returncode, f"error: cannot write {tmp_path}: " in done.stderr) == (code, True)


def test_a_summary_that_cannot_be_written_is_in_the_document(tmp_path: Path) -> None:
    """As the exit code."""
    file = tmp_path / "observed.json"
    done = observed(tmp_path, "--json", str(file), "--summary-md", str(tmp_path), "--", "true")
    assert (done.returncode, f"error: cannot write summary {tmp_path}: " in done.stderr) == (2, True)
    assert msgspec.json.decode(file.read_bytes())["exit_code"] == 2


def test_a_folder_that_cannot_be_made_is_told_before_the_command_runs(tmp_path: Path) -> None:
    """Hours of work would otherwise end without their results."""
    done = observed(tmp_path, "--json", "/proc/x/observed.json", "--", "echo", "ran")
    assert (done.returncode, done.stdout) == (2, "")


def test_of_several_reports_the_list_is_opened(tmp_path: Path) -> None:
    """Unless they are written elsewhere, where there is no list."""
    home, one, two = settings(tmp_path), application(), application(id="app-2")
    assert to_open([one], home, None) == one.report
    assert to_open([one, two], home, None) == str(tmp_path / "reports" / "index.html")
    assert to_open([one, two], home, tmp_path / "mine.html") == one.report
