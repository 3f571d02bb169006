"""The section of samples of stacks on the page: what is drawn, what is said to be missing, and how large it may be."""

import json
from pathlib import Path

from msgspec import structs

from spark_app.annexes.flames.drawing import data
from spark_app.report import page
from spark_app.report.limits import MAX_BYTES, Limits
from spark_app.report.scope import scope
from spark_app.report.sections.stack_samples import stack_samples
from spark_app.stack_samples.stack_profile import profile
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read
from tests.unit.report.sections.test_stack_samples import profiled, section
from tests.unit.stack_samples.made import TASK, Taken, run


def test_a_picture_is_of_the_application_a_stage_or_a_query(reading: Read) -> None:
    """Stages of too few samples have none; queries with one such stage are the same as that.

    The stages of a step are together, too: both queries have the same name.
    """
    drawn = json.loads(data(section(reading)))
    assert [(name.partition(":")[0], parts) for name, parts in drawn["views"]] == [
        ("the application", None),
        ("a query, 4 stages", [0, 1, 2]),
        ("stage 0", [0]),
        ("stage 1", [1]),
        ("query 0", [0, 1]),
    ]


def test_the_data_of_the_picture_has_every_sample_once(reading: Read) -> None:
    """Functions with too few samples count for their callers, which come before what they call."""
    drawn = json.loads(data(section(reading)))
    names = [drawn["labels"][label][1] for label in drawn["nodes"]]
    assert sum(sum(counts) for _, counts, _ in drawn["parts"]) == 140
    assert "rare" not in names
    nodes, counts, _ = drawn["parts"][0]
    assert dict(zip([names[node] for node in nodes], counts, strict=True)) == {"slow": 70, "quick": 30, "score": 4}
    assert all(parent < node for node, parent in enumerate(drawn["parents"]))


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
