import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from app.commands.observe import figures, list_applications, outcome, report_each, send_ended, worst
from app.eventlog import events, reading
from app.eventlog.application import Application
from app.eventlog.comparison import history, summary
from app.eventlog.diagnoses.thresholds import Thresholds
from app.eventlog.findings import Finding
from app.eventlog.follow import Troubles
from app.eventlog.parts import StageInfo, TaskEndReason, TaskInfo, TaskMetrics
from app.eventlog.reading import Reading
from app.observe.launches import LAUNCH
from app.observe.seen import Seen
from app.settings import Settings, load_settings
from tests.polling import poll_until
from tests.receivers import Receiver, receiver
from tests.unit.commands.conftest import Printed
from tests.unit.eventlog.made import Run, Stage, Task

OBSERVE: Final = (sys.executable, "-m", "app", "observe")


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


def read(*told: events.Event, is_finished: bool = True) -> Reading:
    """A log with certain events."""
    app = Application("app-1")
    for event in told:
        app.take(event)
    return Reading(Path("local-1"), app, Troubles(), 0, is_finished)


STARTED: Final = events.ApplicationStart("one", 1000)


@pytest.mark.parametrize("before", [[], ["--"]])
def test_the_options_of_a_command_are_its_own(tmp_path: Path, before: list[str]) -> None:
    """What follows the command is handed to it, `--json`, `--help` and `--` too, with or without `--` before it."""
    done = observed(tmp_path, *before, "echo", "--json", "--help", "--", "--debug")
    assert (done.returncode, done.stdout) == (0, "--json --help -- --debug\n")


def test_a_program_without_spark_is_said_in_a_line(tmp_path: Path) -> None:
    """The exit code is the program's, nothing of ours is on standard output, and one line says what was not there."""
    done = observed(tmp_path, "sh", "-c", "echo hi; exit 3")
    assert (done.returncode, done.stdout) == (3, "hi\n")
    assert "no Spark was started" in done.stderr


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    """The exit code is that of a shell, and one line says which command it was."""
    done = observed(tmp_path, "no-such-command", "--json")
    assert (done.returncode, done.stdout) == (127, "")
    assert done.stderr == "error: no-such-command: command not found\n"


@pytest.mark.parametrize(
    ("end", "is_running", "told"),
    [
        ([events.ApplicationEnd(3000)], False, "ended"),
        ([events.ApplicationEnd(3000, 0)], False, "ended"),
        ([events.ApplicationEnd(3000, 3)], False, "failed"),
        ([], False, "incomplete"),
        ([], True, "still running"),
    ],
)
def test_the_outcome_is_what_the_log_tells(*, end: list[events.Event], is_running: bool, told: str) -> None:
    """A log without an end is of an application that was killed, or goes on."""
    assert outcome(read(STARTED, *end, is_finished=bool(end)), is_running=is_running) == told


def test_a_hostile_name_is_text() -> None:
    """What a terminal would act on is shown as it is written."""
    told = figures(read(events.ApplicationStart("\x1b[31mred\n", 1000)), is_running=False)
    assert told["application"] == "\\x1b[31mred\\n"


@pytest.mark.parametrize(("metrics", "told"), [(None, "-"), (TaskMetrics(disk_spilled=7), "7 B")])
def test_what_no_task_has_told_is_unknown(metrics: TaskMetrics | None, told: str) -> None:
    """A task that was lost with its executor has no metrics: its bytes are not 0, they are not known."""
    info = StageInfo(0, 0, "collect", 1)
    end = events.TaskEnd(0, 0, TaskEndReason("Success"), TaskInfo(0, 0, 0, 1, "1", "host", finished=2), metrics)
    assert figures(read(STARTED, events.StageSubmitted(info), end), is_running=False)["spilled"] == told


def test_the_worst_findings_are_listed() -> None:
    """The first three are told, the rest is counted."""
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


def seen(home: Path, run: Run, id: str, *running: str) -> Seen:  # noqa: A002 - it is what Spark calls it
    """A command with one application, whose log is there."""
    log = home / "spark-events" / (id if run.is_finished else f"{id}.inprogress")
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"".join(msgspec.json.encode(line) + b"\n" for line in replace(run, id=id).lines()))
    return Seen([reading.read(log)], frozenset(running), [])


def told(printed: Printed, found: Seen, home: Path, *, code: int = 0, **changes: Any) -> str:
    """What is printed of a command."""
    list_applications(printed.terminal, found, code=code, seconds=1)
    report_each(printed.terminal, found, settings(home, **changes), Thresholds(), is_good=code == 0, report=None)
    return printed.out.getvalue()


def test_the_report_of_a_second_one_says_why_it_was_slower(tmp_path: Path, printed: Printed) -> None:
    """It is compared with the first, which was good; one of a command that failed is nothing to be measured by."""
    told(printed, seen(tmp_path, replace(BEFORE, at=900_000), "app-0"), tmp_path, code=1)
    told(printed, seen(tmp_path, BEFORE, "app-1"), tmp_path)
    assert "more input" not in (tmp_path / "reports" / "app-1.html").read_text(encoding="utf-8")
    now = seen(tmp_path, NOW, "app-2")
    told(printed, now, tmp_path)
    assert "more input" in (tmp_path / "reports" / "app-2.html").read_text(encoding="utf-8")
    earlier = history.last_good(settings(tmp_path).records_path, summary.of(now.readings[0]))
    assert [each.id for each in earlier] == ["app-1"]
    assert "app-2.html" in (tmp_path / "reports" / "index.html").read_text(encoding="utf-8")


def test_one_that_goes_on_is_not_remembered(tmp_path: Path, printed: Printed) -> None:
    """It has a report, as it is now."""
    going_on = seen(tmp_path, replace(BEFORE, is_finished=False), "app-1", "l-1")
    assert "still running" in told(printed, going_on, tmp_path)
    assert [path.name for path in (tmp_path / "reports").iterdir()] == ["app-1.html", "index.html"]


def test_of_several_applications_each_has_its_name_above_what_is_found(tmp_path: Path, printed: Printed) -> None:
    """Whose findings and whose report it is can be told, also where nobody knows the id."""
    logs = [seen(tmp_path, replace(BEFORE, name=name), name).readings[0] for name in ("one", "two")]
    lines = told(printed, Seen(logs, frozenset(), []), tmp_path).splitlines()
    places = [lines.index(name) for name in ("one", "two")]
    assert [lines[place - 1] for place in places] == ["", ""]
    assert [next(line for line in lines[place:] if line.startswith("report")).split("/")[-1] for place in places] == [
        "one.html",
        "two.html",
    ]


def test_where_reports_are_served_their_address_is_told(tmp_path: Path, printed: Printed) -> None:
    """In place of the path."""
    assert "http://localhost:8088/app-1.html" in told(
        printed, seen(tmp_path, BEFORE, "app-1"), tmp_path, reports_url="http://localhost:8088/"
    )


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    """A receiver that the environment names."""
    with receiver() as found:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.http_endpoint)
        monkeypatch.setattr("app.eventlog.bridge.once.STALLED_SECONDS", 60.0)
        yield found


def test_what_an_application_did_is_sent_once(
    tmp_path: Path, collector: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By us, as there is no bridge: its spans, and what it counts."""
    monkeypatch.setattr("app.conclusions.SENDING_SECONDS", 60.0)
    send_ended(seen(tmp_path, BEFORE, "app-1"), settings(tmp_path), Thresholds())
    ids = [span.span_id for span in collector.spans]
    assert {span.name.split()[0] for span in collector.spans} >= {"application", "job", "stage"}
    assert len(ids) == len(set(ids))
    tasks = [metric for metric in collector.metrics if metric.name == "spark.task.duration"]
    assert sum(point.count for metric in tasks for point in metric.histogram.data_points) == 2


@pytest.mark.parametrize("why", ["a bridge does", "it goes on"])
def test_what_others_send_or_has_not_ended_is_not_sent(tmp_path: Path, collector: Receiver, why: str) -> None:
    """A bridge does it where there is one, and an application that goes on would be told as if it were killed."""
    found = seen(tmp_path, replace(BEFORE, is_finished=why == "a bridge does"), "app-1", "l-1")
    exporter = "bridge" if why == "a bridge does" else "runner"
    send_ended(found, settings(tmp_path, event_log_exporter=exporter), Thresholds())
    assert (collector.spans, collector.metrics) == ([], [])


def test_an_endpoint_that_takes_nothing_is_waited_for_once(
    tmp_path: Path, collector: Receiver, capfd: pytest.CaptureFixture[str]
) -> None:
    """However many applications there are; nothing is said and nothing is raised."""
    collector.mode = "refusing"
    (one,) = seen(tmp_path, BEFORE, "app-1").readings
    send_ended(Seen([one] * 20, frozenset(), []), settings(tmp_path), Thresholds())
    poll_until(lambda: bool(collector.headers), "the first request")
    assert len(collector.headers) < 20
    assert capfd.readouterr() == ("", "")


def test_an_etl_that_is_observed_does_not_send_what_we_send(tmp_path: Path) -> None:
    """Its variable says so; what Spark did is told by one of us only."""
    assert observed(tmp_path, "printenv", "SPARK_APP_EVENT_LOG_EXPORTER").stdout == "bridge\n"
