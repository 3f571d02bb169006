import re
from pathlib import Path

import pytest

from app.eventlog.findings import Finding
from app.eventlog.reading import read
from app.report import page, runs
from app.report.limits import MAX_BYTES, Limits
from app.report.scope import scope
from app.report.sections.configuration import configuration
from app.report.sections.findings import findings
from app.report.sections.headline import headline
from app.report.sections.logs import logs
from app.report.sections.queries import queries
from app.report.sections.stages import stages
from app.report.sections.timeline import Bar, timeline
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import TRACE, Read, record_of

PARENT = f"00-{TRACE}-{'2'.zfill(16)}-01"


def test_a_report_of_a_large_hostile_application_stays_small(reading: Read, tmp_path: Path) -> None:
    """50,000 tasks, 500 stages and 200 queries with texts of 10,000 characters: below 5 MB, and what is cut is said."""
    lines = made.large(stages=500, tasks=50_000, queries=200, text=made.HOSTILE)
    content = page.write(reading(lines), output=tmp_path / "r.html").read_text()
    assert len(content.encode()) < 5_000_000
    assert "plan left out" in content
    assert "<script>document" not in content


def test_what_is_listed_is_halved_until_it_fits(reading: Read, tmp_path: Path) -> None:
    """Texts that grow when they are escaped do not make the file grow without bound."""
    lines = made.large(stages=500, tasks=500, queries=200, text='"' * 2000)
    content = page.write(reading(lines), output=tmp_path / "r.html", compared=['"' * 800] * 10).read_bytes()
    assert len(content) <= MAX_BYTES


def test_nothing_in_it_leads_to_a_network(reading: Read, tmp_path: Path) -> None:
    """No source, style or script from elsewhere: the file is whole."""
    content = page.write(reading(made.large(stages=4, tasks=8, queries=1)), output=tmp_path / "r.html").read_text()
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import', content) == []


def test_a_report_is_put_in_place_whole(reading: Read, tmp_path: Path) -> None:
    """One that cannot be leaves nothing beside it, and what is there stays."""
    (tmp_path / "out" / "taken").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        page.write(reading([log.started(), log.ended()]), output=tmp_path / "out" / "taken")
    page.write(reading([log.started(), log.ended()]), output=tmp_path / "out" / "below" / "r.html")
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == ["below", "r.html", "taken"]


def test_what_no_task_told_is_not_known(reading: Read) -> None:
    """An application without tasks has no rows, bytes or shares, rather than 0 of them."""
    told = headline(scope(reading([log.started(), log.ended()]).app, None))
    assert (told.rows_read, told.spilled, told.gc_share, told.cores_busy, told.cores) == (None,) * 5
    assert (told.tasks, told.idle_share) == (0, 1.0)


def test_bytes_without_rows_leave_the_rows_unknown(reading: Read) -> None:
    """Some sources count only one of the two."""
    task = made.ended_task(1, 0, 2000, 100)
    task["Task Metrics"]["Input Metrics"] = {"Bytes Read": 77}
    told = headline(scope(reading([log.started(), log.job(0, [0]), log.stage(0), task, log.ended()]).app, None))
    assert (told.bytes_read, told.rows_read, told.bytes_written) == (77, None, 0)


def test_cores_busy_is_time_of_tasks_over_time_of_cores(reading: Read) -> None:
    """From when an executor came; where tasks took more than all cores told of, it is not known."""
    lines = [log.started(1000), log.executor("1", time=6000, host="host-a"), log.job(0, [0]), log.stage(0, tasks=2)]
    busy = made.ended_task(1, 0, 6000, 5000)
    apps = [reading([*lines, *tasks, log.ended(11_000)]).app for tasks in ([busy], [busy] * 9)]
    assert [headline(scope(app, None)).cores_busy for app in apps] == [0.25, None]


def test_an_application_without_end_is_not_called_good(reading: Read) -> None:
    """Nor is one of which jobs failed, or that ended with an exit code."""
    failed = [log.started(), log.job(0, [0]), log.job_ended(0, error="no"), log.ended()]
    exited = [log.started(), log.ended() | {"ExitCode": 3}]
    moods = [
        headline(scope(reading(lines).app, None)).mood for lines in ([log.started(), log.job(0, [])], failed, exited)
    ]
    assert moods == ["unsure", "bad", "bad"]


def test_a_run_shows_its_part_of_a_shared_log(reading: Read, run_folder: Path) -> None:
    """What other runs of the same application did is not in it, and findings on that neither."""
    record_of(run_folder, seconds=4.0)
    other = f"00-{'b' * 32}-{'3'.zfill(16)}-01"
    lines = [log.started(), log.job(0, [0], traceparent=PARENT), log.stage(0), log.task(1, 0), log.stage(0, end=2900)]
    lines += [
        log.job_ended(0),
        log.job(1, [1], traceparent=other),
        log.stage(1),
        log.task(2, 1),
        log.stage(1, end=2900),
    ]
    about = scope(reading([*lines, log.job_ended(1), log.ended()]).app, runs.of(run_folder))
    assert ([job.id for job in about.jobs], [stage.info.id for stage in about.stages]) == ([0], [0])
    found = [Finding("r", "info", "t", "a", stage=(number, 0)) for number in (0, 1)]
    assert [finding.stage for finding in findings(about, found, Limits()).shown] == [(0, 0)]
    step = timeline(about, Limits()).root.children[0]
    assert (step.kind, [job.kind for job in step.children]) == ("step", ["job"])


def test_a_comparison_in_the_report_of_a_run_says_what_it_is_of(
    reading: Read, run_folder: Path, tmp_path: Path
) -> None:
    """The runs of one command share an application, and it is applications that are compared."""
    told, output = reading([log.started(), log.ended()]), tmp_path / "r.html"
    whole = "Of the whole application, other runs included."
    pages = [
        page.write(told, output=output, run=run, compared=compared).read_text()
        for run, compared in ((runs.of(run_folder), ["longer"]), (runs.of(run_folder), []), (None, ["longer"]))
    ]
    assert [whole in content for content in pages] == [True, False, False]


def test_the_same_warning_is_listed_once_with_its_step(reading: Read, run_folder: Path) -> None:
    """And how often it was said."""
    told = logs(scope(reading([log.started(), log.ended()]).app, runs.of(run_folder)), Limits())
    assert told is not None
    assert [(entry.line.message, entry.step, entry.times) for entry in told.shown] == [
        ("rows came late", "step write t", 2)
    ]


def test_quantiles_are_times_of_tasks_that_there_were(reading: Read) -> None:
    """By nearest rank, of 10 tasks of 200 to 2,000 ms."""
    tasks = [made.ended_task(number, 0, 2000, (number + 1) * 200) for number in range(10)]
    lines = [log.started(), log.job(0, [0]), log.stage(0, tasks=10), *tasks, log.stage(0, end=4100), log.ended()]
    spread = stages(scope(reading(lines).app, None), Limits()).shown[0].spread
    assert spread is not None
    assert list(spread.times) == [200, 600, 1000, 1600, 2000, 2000]
    assert spread.skew == 2.0
    assert spread.at[5] == pytest.approx(65.1)


def test_the_longest_are_listed_and_the_rest_is_counted(reading: Read) -> None:
    """A cut timeline keeps what its bars are a part of, and says how many are missing where."""
    about = scope(reading(made.large(stages=40, tasks=40, queries=4)).app, None)
    cut = timeline(about, Limits(rows=6, stages=3, queries=2))
    assert (cut.shown, cut.total) == (7, 85)
    assert len(stages(about, Limits(stages=3)).shown) == 3
    assert (len(queries(about, Limits(queries=2)).shown), queries(about, Limits(queries=2)).total) == (2, 4)

    def left_out(bar: Bar) -> int:
        return bar.left_out + sum(left_out(child) for child in bar.children)

    assert left_out(cut.root) == 85 - 7


def test_time_without_tasks_is_seen(reading: Read) -> None:
    """From the start to the first task, between tasks, and to the end."""
    tasks = [made.ended_task(1, 0, 2000, 1000), made.ended_task(2, 0, 5000, 1000)]
    lines = [log.started(1000), log.job(0, [0]), log.stage(0, tasks=2), *tasks, log.ended(11_000)]
    found = timeline(scope(reading(lines).app, None), Limits()).gaps
    assert found == [(0.0, 10.0, 1000), (20.0, 20.0, 2000), (50.0, 50.0, 5000)]


def test_only_branches_of_a_plan_are_indented(reading: Read) -> None:
    """A chain of operators stays in line, however long."""
    lines = [log.started(), made.started_query(0, 1500, "t", 6), log.query_ended(0), log.ended()]
    nodes = queries(scope(reading(lines).app, None), Limits()).shown[0].nodes
    assert [(node.name, node.depth) for node in nodes or []] == [
        ("Join", 0), ("Project 3", 1), ("Project 2", 1), ("Project 1", 1), ("Project 0", 1), ("Scan", 1), ("Scan", 1),
    ]  # fmt: skip


def test_configuration_shows_what_differs_and_no_secret(reading: Read) -> None:
    """Neither what Spark sets for itself, nor a default that was set again."""
    told = {
        "spark.sql.shuffle.partitions": "16",
        "spark.task.cpus": "1",
        "spark.app.id": "x",
        "spark.jdbc.password": "p",
    }
    told |= {"spark.driver.extraJavaOptions": "-Dstore.secret=s"}
    told |= {"spark.executor.extraJavaOptions": "--add-opens=java.base/java.io=ALL-UNNAMED -XX:+UseZGC"}
    shown = configuration(scope(reading([log.environment(told), log.started(), log.ended()]).app, None), Limits()).shown
    assert [(each.key, each.value, each.default) for each in shown] == [
        ("spark.driver.extraJavaOptions", "-Dstore.secret=(redacted)", None),
        ("spark.executor.extraJavaOptions", "-XX:+UseZGC", None),
        ("spark.jdbc.password", "(redacted)", None),
        ("spark.sql.shuffle.partitions", "16", "200"),
    ]


def test_what_a_program_changes_on_its_way_is_configuration_too(reading: Read) -> None:
    """By queries with another value; what a query ran with as all others is told once."""
    changed = [{"modifiedConfigs": {"spark.sql.shuffle.partitions": value, "spark.sql.x": "1"}} for value in "448"]
    queries = [log.query(number) | told for number, told in enumerate(changed)]
    lines = [log.environment({"spark.sql.shuffle.partitions": "16"}), log.started(), *queries, log.ended()]
    shown = configuration(scope(reading(lines).app, None), Limits()).shown
    assert [(each.key, each.value) for each in shown] == [
        ("spark.sql.shuffle.partitions", "16, then 4, then 8"),
        ("spark.sql.x", "1"),
    ]


def test_what_could_not_be_read_is_said_on_top(tmp_path: Path) -> None:
    """Lines that are no events, and a log without an end, before anything else."""
    file = made.written(tmp_path / "log.inprogress", [log.started(), log.job(0, [])])
    file.write_bytes(file.read_bytes() + b"{broken}\n{torn")
    content = page.write(read(file), output=tmp_path / "r.html").read_text()
    head = content[: content.index("<main>")]
    assert [part in head for part in ("no end of the application", "1 lines of the log", "1 lines end")] == [True] * 3
