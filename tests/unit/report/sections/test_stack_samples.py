import datetime
import json
from pathlib import Path

import pytest
from msgspec import structs

from spark_app.report import page
from spark_app.report.limits import MAX_BYTES, Limits
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import scope
from spark_app.report.sections.stack_samples import StackSection, stack_samples
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.stack_profile import StackProfile, profile
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read
from tests.unit.run_records import example_record
from tests.unit.stack_samples.made import TASK, Taken, run

SPLIT = (("slow@job.py:7!", 70), ("quick@job.py:9!", 30), ("rare@job.py:11!", 4))


def profiled(
    *, functions: tuple[tuple[str, int], ...] = SPLIT, driver: list[tuple[int, int]] | None = None
) -> StackProfile:
    """Samples of stages 0, 1 and 2, of which the last has few; and of the driver, so many from a moment on."""
    taken = Taken()
    executor, worker = taken.process(), taken.process("python_worker")
    program = taken.process("python_driver", None)
    for at, times in driver or []:
        taken.add(at, "<module>@job.py:20!", process=program, times=times)
    for function, times in functions:
        taken.add(2050, "main@worker.py:9", "score@job.py:3!", function, process=worker, task=1, times=times)
    taken.add(2550, TASK, "a.Sort.next", process=executor, times=30)
    taken.add(3050, TASK, "a.Sort.next", process=executor, times=6)
    return profile(taken.done(), [run(1, 0, 2000, 2400), run(2, 1, 2500, 2900), run(3, 2, 3000, 3400)])


def section(reading: Read, limits: Limits | None = None) -> StackSection:
    """What the report of an application with two queries of two stages each shows."""
    app = reading(made.large(stages=4, tasks=8, queries=2)).app
    found = stack_samples(scope(app, None), profiled(), limits or Limits())
    assert found is not None
    return found


def test_the_hottest_functions_have_a_share_with_its_error(reading: Read) -> None:
    """Functions of fewer than five samples are left out, but a UDF is named that calls others."""
    hot = section(reading).functions
    assert [(each.function.name, each.time.line, each.time.innermost.samples) for each in hot] == [
        ("slow", 7, 70),
        ("quick", 9, 30),
        ("score", 3, 0),
    ]
    assert [each.share for each in hot] == [pytest.approx(70 / 104), pytest.approx(30 / 104), None]
    assert hot[0].apart == pytest.approx(0.16, abs=0.01)
    assert hot[2].apart is None
    assert (hot[2].total_share, hot[2].time.is_udf) == (1.0, True)


def test_a_picture_is_of_the_application_a_stage_or_a_query(reading: Read) -> None:
    """Stages of too few samples have none; queries with one such stage are the same as that.

    The stages of a step are together, too: both queries have the same name.
    """
    data = json.loads(section(reading).data)
    assert [(name.partition(":")[0], parts) for name, parts in data["views"]] == [
        ("the application", None),
        ("a query, 4 stages", [0, 1, 2]),
        ("stage 0", [0]),
        ("stage 1", [1]),
        ("query 0", [0, 1]),
    ]


def test_the_data_of_the_picture_has_every_sample_once(reading: Read) -> None:
    """Functions with too few samples count for their callers, which come before what they call."""
    data = json.loads(section(reading).data)
    names = [data["labels"][label][1] for label in data["nodes"]]
    assert sum(sum(counts) for _, counts, _ in data["parts"]) == 140
    assert "rare" not in names
    nodes, counts, _ = data["parts"][0]
    assert dict(zip([names[node] for node in nodes], counts, strict=True)) == {"slow": 70, "quick": 30, "score": 4}
    assert all(parent < node for node, parent in enumerate(data["parents"]))


def test_samples_that_miss_time_of_the_jvm_say_so(reading: Read, tmp_path: Path) -> None:
    """Spark measured how long tasks were on a processor; a sampler may look at fewer threads than run."""

    def shown(cpu_ms: int) -> tuple[float, bool]:
        task = made.ended_task(0, 0, 2000, 400)
        task["Task Metrics"] |= {"Executor CPU Time": cpu_ms * 1_000_000, "Executor Deserialize CPU Time": 0}
        lines = [log.started(), log.executor("1"), log.job(0, [0]), made.submitted(0, 2000, 1, "s"), task]
        read = reading([*lines, made.submitted(0, 2000, 1, "s", end=2450), log.ended()])
        taken = Taken()
        taken.process()
        taken.add(2050, TASK, "a.Sort.next", times=30)
        stacks = profile(taken.done(), [run(0, 0, 2000, 2400)])
        found = stack_samples(scope(read.app, None), stacks, Limits())
        assert found is not None
        content = page.write(read, output=tmp_path / "r.html", stacks=stacks).path.read_text()
        return round(found.jvm_cpu_ratio or 0, 3), "of the CPU time that Spark measured in tasks" in content

    assert shown(310) == (0.968, False)
    assert shown(1000) == (0.3, True)
    assert shown(0) == (0, False)


def test_what_is_missing_is_said(reading: Read, tmp_path: Path) -> None:
    """Executors without samples of their JVM, and Python processes whose files were full."""
    executors = [log.executor("1"), log.executor("2")]
    stage = [log.job(0, [0]), log.stage(0), log.task(1, 0), log.stage(0, end=2900)]
    read = reading([log.started(), *executors, *stage, log.ended()])
    taken = Taken()
    taken.process()
    taken.add(2210, TASK, "a.Sort.next", times=30)
    stacks = profile(taken.done(), [run(1, 0, 2200, 2900)])
    content = page.write(read, output=tmp_path / "r.html", stacks=stacks).path.read_text()
    assert "No samples of the JVM of executor 2:" in content
    assert "are missing: their files were full" not in content
    taken.process("python_worker")
    taken.process("driver", "2")
    taken.processes[1] = structs.replace(taken.processes[1], is_cut=True)
    stacks = profile(taken.done(), [run(1, 0, 2200, 2900)])
    content = page.write(read, output=tmp_path / "r.html", stacks=stacks).path.read_text()
    assert "The last samples of 1 Python process are missing" in content
    assert "No samples of the JVM" not in content


@pytest.mark.parametrize(
    ("is_alone", "seconds", "places"),
    [
        (True, 0.9, {(0, 0): 104, (1, 0): 30, "driver": 8}),
        (True, 0.2, {(0, 0): 104, "driver": 5}),
        (False, 0.9, {(0, 0): 104, (1, 0): 30}),
        (None, 0.9, {(0, 0): 104, (1, 0): 30}),
    ],
)
def test_a_run_has_the_driver_of_its_time(
    reading: Read,
    is_alone: bool | None,  # noqa: FBT001 - as the record has it
    seconds: float,
    places: dict[Place, int],
) -> None:
    """Unless another lasted then, or that is not known, as of a run that was killed; its stages are there."""
    started = datetime.datetime.fromtimestamp(2.0, datetime.UTC)
    record = example_record(started_at=started, seconds=seconds, trace_id=None, is_alone=is_alone)
    app = reading(made.large(stages=4, tasks=8, queries=2)).app
    stacks = profiled(driver=[(1900, 20), (2100, 5), (2300, 3), (3100, 7)])
    found = stack_samples(scope(app, RunInfo(record.folder, record)), stacks, Limits())
    assert found is not None
    assert {row.place: row.part.total.samples for row in found.rows} == places
    whole = stack_samples(scope(app, None), stacks, Limits())
    assert whole is not None
    assert whole.rows[-1].part.total.samples == 35


def test_no_samples_are_no_section(reading: Read) -> None:
    """Nor are samples of threads that only wait."""
    app = reading(made.large(stages=1, tasks=1, queries=1)).app
    taken = Taken()
    taken.process("driver", None)
    taken.add(2050, "io.Queue.take", state="waiting", times=50)
    assert stack_samples(scope(app, None), None, Limits()) is None
    assert stack_samples(scope(app, None), profile(taken.done(), []), Limits()) is None


def test_without_samples_the_page_has_nothing_of_them(reading: Read, tmp_path: Path) -> None:
    """No section, no tab, no script, no style."""
    read = reading(made.large(stages=4, tasks=8, queries=2))
    content = page.write(read, output=tmp_path / "r.html").path.read_text(encoding="utf-8")
    assert "flame" not in content
    assert "stack-samples" not in content


def test_hostile_names_end_no_element(reading: Read, tmp_path: Path) -> None:
    """The data is in a script element, which `</script>` would end."""
    read = reading(made.large(stages=4, tasks=8, queries=2))
    stacks = profiled(functions=((f"{made.HOSTILE.replace('@', '')}</script>@job.py:3!", 50),))
    content = page.write(read, output=tmp_path / "r.html", stacks=stacks).path.read_text()
    assert content.count("</script>") == content.count("<script") == 3
    assert "<script>document" not in content


def test_a_report_of_many_stages_and_deep_stacks_stays_small(reading: Read, tmp_path: Path) -> None:
    """200 stages, each with stacks of its own that have 60 functions of long names."""
    taken = Taken()
    taken.process()
    for stage in range(200):
        for branch in range(12):
            stack = [
                f"org.apache.spark.sql.execution.of.a.long.name.Class{stage}.method{branch}_{each}"
                for each in range(60)
            ]
            taken.add(2000 + stage * 500 + 10 * branch, TASK, *stack, times=9)
    runs = [run(number, number, 1990 + number * 500, 2400 + number * 500) for number in range(200)]
    read = reading(made.large(stages=200, tasks=2000, queries=20))
    content = page.write(read, output=tmp_path / "r.html", stacks=profile(taken.done(), runs)).path.read_bytes()
    assert b"stack-data" in content
    assert len(content) <= MAX_BYTES
