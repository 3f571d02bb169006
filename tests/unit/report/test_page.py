import re
from pathlib import Path

import pytest
from msgspec.structs import astuple, replace

from spark_app.eventlog.document import StageKey
from spark_app.eventlog.findings import Place
from spark_app.eventlog.reader import read
from spark_app.report import page, run_info
from spark_app.report.limits import MAX_BYTES, Limits
from spark_app.report.scope import scope
from spark_app.report.sections.configuration import configuration
from spark_app.report.sections.headline import headline
from spark_app.report.sections.queries import queries
from spark_app.report.sections.run import logs
from spark_app.report.sections.stages import stages
from spark_app.report.sections.timeline import Bar, timeline
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line
from tests.unit.report import made
from tests.unit.report.conftest import TRACE, Read, line, record_of, span

PARENT = f"00-{TRACE}-{'2'.zfill(16)}-01"


def test_a_report_of_a_large_hostile_application_stays_small(reading: Read, tmp_path: Path) -> None:
    """50,000 tasks, 500 stages and 200 queries with texts of 10,000 characters: below 5 MB, and what is cut is said."""
    lines = made.large(stages=500, tasks=50_000, queries=200, text=made.HOSTILE)
    content = page.write(reading(lines), output=tmp_path / "r.html").path.read_text()
    assert len(content.encode()) < 5_000_000
    assert "plan omitted" in content
    assert "<script>document" not in content


def test_limits_are_halved_until_the_report_fits(reading: Read, tmp_path: Path) -> None:
    """Text that grows when it is escaped does not make the file grow without bound."""
    lines = made.large(stages=500, tasks=500, queries=200, text='"' * 2000)
    compared = made.comparison('"' * 800)
    content = page.write(reading(lines), output=tmp_path / "r.html", compared=compared).path.read_bytes()
    assert len(content) <= MAX_BYTES


def test_a_report_needs_no_network(reading: Read, tmp_path: Path) -> None:
    """It loads no image, style or script from elsewhere."""
    content = page.write(reading(made.large(stages=4, tasks=8, queries=1)), output=tmp_path / "r.html").path.read_text()
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import', content) == []


def test_a_report_is_written_whole_or_not_at_all(reading: Read, tmp_path: Path) -> None:
    """A failed write leaves no part behind and keeps what was there."""
    (tmp_path / "out" / "taken").mkdir(parents=True)
    with pytest.raises(OSError, match="taken"):
        page.write(reading([log.started(), log.ended()]), output=tmp_path / "out" / "taken")
    page.write(reading([log.started(), log.ended()]), output=tmp_path / "out" / "below" / "r.html")
    assert sorted(path.name for path in (tmp_path / "out").rglob("*")) == ["below", "r.html", "taken"]


def test_numbers_that_no_task_reported_are_unknown(reading: Read) -> None:
    """An application without tasks has no row counts, sizes or shares, rather than 0."""
    top = headline(scope(reading([log.started(), log.ended()]).app, None)).figures
    assert (top.rows_read, top.spilled_bytes, top.gc_ratio, top.cores_busy_ratio, top.cores) == (None,) * 5
    assert (top.tasks, top.idle_ratio) == (0, 1.0)


def test_bytes_without_rows_leave_the_rows_unknown(reading: Read) -> None:
    """Some sources count only one of the two."""
    task = made.ended_task(1, 0, 2000, 100)
    task["Task Metrics"]["Input Metrics"] = {"Bytes Read": 77}
    top = headline(scope(reading([log.started(), log.job(0, [0]), log.stage(0), task, log.ended()]).app, None))
    assert (top.figures.bytes_read, top.figures.rows_read, top.figures.bytes_written) == (77, None, 0)


def test_cores_busy_is_task_time_over_core_time(reading: Read) -> None:
    """Since each executor was added; unknown where tasks took more than all known cores."""
    lines = [log.started(1000), log.executor("1", time=6000, host="host-a"), log.job(0, [0]), log.stage(0, tasks=2)]
    busy = [made.ended_task(number, 0, 6000, 5000) for number in range(9)]
    apps = [reading([*lines, *tasks, log.ended(11_000)]).app for tasks in (busy[:1], busy)]
    assert [headline(scope(app, None)).figures.cores_busy_ratio for app in apps] == [0.25, None]


def test_only_an_application_that_ended_without_failures_is_good(reading: Read) -> None:
    """No end in the log is unsure, and so is a failed job before the last; a failed last job or exit code is bad."""
    recovered = [
        log.started(),
        log.job(0, [0]),
        log.job_ended(0, error="no"),
        log.job(1, []),
        log.job_ended(1, time=4000),
    ]
    failed = [log.started(), log.job(0, [0]), log.job_ended(0, error="no"), log.ended()]
    exited = [log.started(), log.ended() | {"ExitCode": 3}]
    moods = [
        headline(scope(reading(lines).app, None)).mood
        for lines in ([log.started(), log.job(0, [])], [*recovered, log.ended()], failed, exited)
    ]
    assert moods == ["unsure", "unsure", "bad", "bad"]


def test_the_report_of_a_run_shows_its_part_of_a_shared_log(reading: Read, run_folder: Path) -> None:
    """Jobs of other runs in the same application are left out, and so are findings about them."""
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
    about = scope(reading([*lines, log.job_ended(1), log.ended()]).app, run_info.read(run_folder))
    assert ([job.id for job in about.jobs], [stage.info.id for stage in about.stages]) == ([0], [0])
    assert [about.covers()(Place(StageKey(number, 0), None, None, None)) for number in (0, 1)] == [True, False]
    step = timeline(about, Limits()).root.children[0]
    assert (step.kind, [job.kind for job in step.children]) == ("step", ["job"])


def test_fits_are_told_apart_in_the_timeline(reading: Read, run_folder: Path) -> None:
    """By parameters and fold, of which all fits of an algorithm have the same name; those run side by side."""
    record_of(run_folder)
    fits = []
    for number, fold in enumerate(("1", "2", None)):
        values: dict[str, Line] = {"ml.parameters": {"stringValue": "maxDepth=8"}}
        values |= {"ml.fold": {"intValue": fold}} if fold else {}
        attributes = [{"key": key, "value": value} for key, value in values.items()]
        fits.append(span(str(7 + number), "2", "fit random_forest", 2100, 2500 + number) | {"attributes": attributes})
    lines = "".join(line("resourceSpans", "scopeSpans", "spans", fit) for fit in fits)
    (run_folder / "traces.jsonl").write_text(lines)
    about = scope(reading([log.started(), log.ended()]).app, run_info.read(run_folder))
    (step,) = timeline(about, Limits()).root.children
    assert [bar.label for bar in step.children] == [
        "fit random_forest maxDepth=8 (fold 1)",
        "fit random_forest maxDepth=8 (fold 2)",
        "fit random_forest maxDepth=8",
    ]


def test_the_report_of_a_run_shows_the_batches_of_its_streaming_queries(reading: Read, run_folder: Path) -> None:
    """With their queries, jobs and stages; the batches of another run of the same application are not in it."""
    record_of(run_folder)
    streams = {"query-1": PARENT, "query-2": f"00-{'b' * 32}-{'3'.zfill(16)}-01"}
    lines = [log.started()]
    for number, (query, parent) in enumerate(streams.items()):
        group = {"sql.streaming.queryId": query, "spark.jobGroup.id": f"run-{query}", "streaming.sql.batchId": "7"}
        execution = {"spark.sql.execution.id": str(number)}
        lines += [log.query(number), log.job(number, [number], traceparent=parent, **group, **execution)]
        lines += [log.stage(number), log.task(number, number), log.stage(number, end=2900), log.job_ended(number)]
        lines += [log.query_ended(number)]
    about = scope(reading([*lines, log.ended()]).app, run_info.read(run_folder))
    assert [batch.key.query for batch in about.batches] == ["query-1"]
    assert ([query.id for query in about.queries], [job.id for job in about.jobs]) == ([0], [0])
    assert [stage.info.id for stage in about.stages] == [0]
    (batch,) = [bar for bar in timeline(about, Limits()).root.children if bar.kind == "batch"]
    assert (batch.label, [bar.kind for bar in batch.children]) == ("stream: batch 7", ["query"])


def test_a_comparison_in_the_report_of_a_run_says_that_it_compares_applications(
    reading: Read, run_folder: Path, tmp_path: Path
) -> None:
    """The runs of one command share an application."""
    log_reading, output, longer = reading([log.started(), log.ended()]), tmp_path / "r.html", made.comparison("longer")
    whole = "This compares whole applications; other runs share this one."
    pages = [
        page.write(log_reading, output=output, run=run, compared=compared).path.read_text()
        for run, compared in (
            (run_info.read(run_folder), longer),
            (run_info.read(run_folder), None),
            (None, longer),
        )
    ]
    assert [whole in content for content in pages] == [True, False, False]


def test_a_comparison_lists_causes_and_what_changed(reading: Read, tmp_path: Path) -> None:
    """What changed is a table; it is there as well where the difference is noise."""
    for compared in (made.comparison("longer"), replace(made.comparison("longer"), noise_ms=9999, causes=[])):
        content = page.write(reading([log.started()]), output=tmp_path / "r.html", compared=compared).path.read_text()
        assert content.count('class="foreign">longer</td>') == 9
        assert content.count('<li class="foreign">+8.0 s longer') == len(compared.causes)


def test_only_a_spark_app_run_has_sections_about_quality_and_logs(
    reading: Read, run_folder: Path, tmp_path: Path
) -> None:
    """The log of another application has nothing to show there, nor in the bar of links."""
    log_reading, output = reading([log.started(), log.ended()]), tmp_path / "r.html"
    for run, count in ((None, 0), (run_info.read(run_folder), 2)):
        content = page.write(log_reading, output=output, run=run).path.read_text()
        assert [content.count(f'id="{name}"') + content.count(f'href="#{name}"') for name in ("quality", "logs")] == [
            count
        ] * 2


def test_the_same_warning_is_listed_once_with_its_step(reading: Read, run_folder: Path) -> None:
    """And how often it was logged."""
    section = logs(scope(reading([log.started(), log.ended()]).app, run_info.read(run_folder)), Limits())
    assert section is not None
    assert [(entry.line.message, entry.step, entry.times) for entry in section.shown] == [
        ("rows came late", "step write t", 2)
    ]


def test_quantiles_are_times_of_real_tasks(reading: Read) -> None:
    """By the rank that Spark takes in its UI, of 10 tasks of 200 to 2,000 ms."""
    tasks = [made.ended_task(number, 0, 2200, (number + 1) * 200) for number in range(10)]
    lines = [log.started(), log.job(0, [0]), log.stage(0, tasks=10), *tasks, log.stage(0, end=4300), log.ended()]
    section = stages(scope(reading(lines).app, None), Limits())
    (stage,) = section.shown
    assert stage.task_times is not None
    assert astuple(stage.task_times) == (200, 600, 1200, 1600, 2000, 2000)
    assert stage.skew == pytest.approx(2000 / 1200)
    assert section.at(2000) == pytest.approx(65.1)


def test_limits_keep_the_longest_and_count_the_rest(reading: Read) -> None:
    """A cut timeline keeps the ancestors of its bars and counts what is missing below each."""
    about = scope(reading(made.large(stages=40, tasks=40, queries=4)).app, None)
    cut = timeline(about, Limits(rows=6, stages=3, queries=2))
    assert (cut.shown, cut.total) == (7, 85)
    assert len(stages(about, Limits(stages=3)).shown) == 3
    assert (len(queries(about, Limits(queries=2)).shown), queries(about, Limits(queries=2)).total) == (2, 4)

    def left_out(bar: Bar) -> int:
        return bar.left_out + sum(left_out(child) for child in bar.children)

    assert left_out(cut.root) == 85 - 7


def test_gaps_are_times_without_a_task(reading: Read) -> None:
    """From the start to the first task, between tasks, and to the end."""
    tasks = [made.ended_task(1, 0, 2000, 1000), made.ended_task(2, 0, 5000, 1000)]
    begun = made.submitted(0, 2000, 2, "save at job.py:7")
    lines = [log.started(1000), log.job(0, [0]), begun, *tasks, log.ended(11_000)]
    found = timeline(scope(reading(lines).app, None), Limits()).gaps
    assert found == [(0.0, 10.0, 1000), (20.0, 20.0, 2000), (50.0, 50.0, 5000)]


def test_only_branches_of_a_plan_are_indented(reading: Read) -> None:
    """A chain of operators stays in line, however long."""
    lines = [log.started(), made.started_query(0, 1500, "t", 6), log.query_ended(0), log.ended()]
    nodes = queries(scope(reading(lines).app, None), Limits()).shown[0].nodes
    assert [(node.name, node.depth) for node in nodes or []] == [
        ("Join", 0), ("Project 3", 1), ("Project 2", 1), ("Project 1", 1), ("Project 0", 1), ("Scan", 1), ("Scan", 1),
    ]  # fmt: skip


def test_configuration_shows_what_was_set_and_no_secret(reading: Read) -> None:
    """Properties and Java options that Spark sets for itself are left out."""
    properties = {
        "spark.sql.shuffle.partitions": "16",
        "spark.task.cpus": "1",
        "spark.app.id": "x",
        "spark.jdbc.password": "p",
    }
    properties |= {"spark.driver.extraJavaOptions": "-Dstore.secret=s"}
    properties |= {"spark.executor.extraJavaOptions": "--add-opens=java.base/java.io=ALL-UNNAMED -XX:+UseZGC"}
    shown = configuration(
        scope(reading([log.environment(properties), log.started(), log.ended()]).app, None), Limits()
    ).shown
    assert [(each.key, each.value) for each in shown] == [
        ("spark.driver.extraJavaOptions", "-Dstore.secret=(redacted)"),
        ("spark.executor.extraJavaOptions", "-XX:+UseZGC"),
        ("spark.jdbc.password", "(redacted)"),
        ("spark.sql.shuffle.partitions", "16"),
        ("spark.task.cpus", "1"),
    ]


def test_configuration_includes_what_the_program_changed_for_its_queries(reading: Read) -> None:
    """Each value once, in the order of the queries."""
    changed = [{"modifiedConfigs": {"spark.sql.shuffle.partitions": value, "spark.sql.x": "1"}} for value in "448"]
    queries = [log.query(number) | changes for number, changes in enumerate(changed)]
    lines = [log.environment({"spark.sql.shuffle.partitions": "16"}), log.started(), *queries, log.ended()]
    shown = configuration(scope(reading(lines).app, None), Limits()).shown
    assert [(each.key, each.value) for each in shown] == [
        ("spark.sql.shuffle.partitions", "16, then 4, then 8"),
        ("spark.sql.x", "1"),
    ]


def test_a_report_says_on_top_what_could_not_be_read(tmp_path: Path) -> None:
    """A log without an end, unreadable lines and cut lines."""
    file = made.written(tmp_path / "log.inprogress", [log.started(), log.job(0, [])])
    file.write_bytes(file.read_bytes() + b"{broken}\n{torn")
    content = page.write(read(file), output=tmp_path / "r.html").path.read_text()
    head = content[: content.index("<main>")]
    assert [
        part in head for part in ("The log has no end", "Skipped 1 unreadable line", "Skipped 1 incomplete line")
    ] == [True] * 3
