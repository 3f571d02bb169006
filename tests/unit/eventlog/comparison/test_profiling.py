from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.comparison.attribution import contributions
from spark_app.eventlog.comparison.profile import OperatorSum, RunProfile, TaskTime
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.parse.log_tailer import ReadErrors
from spark_app.eventlog.reader import Reading, read
from tests.eventlogs import golden, record_connect
from tests.eventlogs.record import VERSIONS
from tests.unit.eventlog.made import Operator, Run, Stage, Task

MIB = 1024**2


def test_the_time_of_tasks_is_told_apart() -> None:
    """Processor, collector, shuffle, the rest of the run, the way to and fro; together the time of the tasks."""
    task = Task(0, 1000, cpu=500, gc=100, wait=50, overhead=150)
    (group,) = Run(1000, [Stage("sum up", 0, 1000, [task, task])]).summary.groups
    assert group.spent == TaskTime(cpu=1000, gc=200, shuffle_wait=100, other=400, overhead=300)


def test_the_time_of_a_task_on_two_cores_counts_once() -> None:
    """Spark says the run time of a task as often as it takes cores: 2 x 900 ms of a task of 1000 ms."""
    stages = [Stage("sum up", 0, 1000, [Task(0, 1000, cpu=500, overhead=1000 - 2 * 900)])]
    (group,) = Run(1000, stages, settings={"spark.task.cpus": "2"}).summary.groups
    assert group.spent == TaskTime(cpu=500, other=400, overhead=100)


def test_failed_tasks_are_wasted_time_and_no_volume() -> None:
    """What a failed task did counts as lost, not as processor time, nor as rows."""
    tasks = [Task(0, 400, cpu=400, rows=7, has_failed=True), Task(400, 1000, cpu=500, rows=7)]
    (group,) = Run(1000, [Stage("sum up", 0, 1000, tasks)]).summary.groups
    assert (group.spent, group.failed) == (TaskTime(cpu=500, other=100, wasted=400), 1)
    assert group.volume.input_records == 7


def test_an_attempt_after_a_good_one_is_wasted() -> None:
    """What is made again since its results were lost is no progress."""
    stages = [Stage("a", 0, 500, [Task(0, 500, cpu=500)]), Stage("a", 500, 900, [Task(500, 900, cpu=400)], attempt=1)]
    (group,) = Run(1000, stages).summary.groups
    assert (group.spent, group.stages) == (TaskTime(cpu=500, wasted=400), 1)


def test_numbers_that_vary_are_no_other_group() -> None:
    """Stages that do the same are one group, whatever the day in their name."""
    stages = [
        Stage(f"load 2024-01-0{day}", day * 100, day * 100 + 100, [Task(day * 100, day * 100 + 50)]) for day in (1, 2)
    ]
    (group,) = Run(1000, stages).summary.groups
    assert (group.place, group.flow, group.stages, group.tasks) == ("load #", "result", 2, 2)


def test_the_distribution_of_tasks_is_kept() -> None:
    """The median, the longest, and the part of the data that one task read."""
    tasks = [Task(0, 100 * (number + 1), read=MIB * (97 if number == 19 else 1)) for number in range(20)]
    (group,) = Run(3000, [Stage("sum up", 0, 2000, tasks)]).summary.groups
    assert (group.median_ms, group.longest_ms) == (1050, 2000)
    assert group.largest_share == pytest.approx(97 / 116)


def test_secrets_ids_and_paths_are_no_settings() -> None:
    """Only what has a say in how a run goes is kept of the properties."""
    settings = {
        "spark.executor.memory": "2g", "spark.app.id": "app-1", "spark.driver.port": "1234", "java.home": "/x",
        "spark.hadoop.fs.s3a.secret.key": "s", "spark.my.password": "p", "spark.eventLog.dir": "/x",
        "spark.executorEnv.SPARK_TRACE_ID": "a", "spark.observed.launch": "b-1",
        "spark.executor.defaultJavaOptions": "-XX:StartFlightRecording=name=spark-app,a=b -Xlog:jfr+startup=off",
    }  # fmt: skip
    assert Run(1, [], settings=settings).summary.settings == {"spark.executor.memory": "2g"}


def test_a_secret_within_a_setting_is_not_kept() -> None:
    """Whatever the setting is called: what is recorded lies in a folder that is served."""
    properties = {
        "spark.shop.passwd": "hunter2",
        "spark.shop.jdbcUrl": "jdbc:db://h?user=me&password=hunter2",
        "spark.driver.extraJavaOptions": "-Xmx1g -Ddb.password=hunter2",
    }
    assert Run(1, [], settings=properties).summary.settings == {
        "spark.shop.jdbcUrl": "jdbc:db://h?user=me&password=(redacted)",
        "spark.driver.extraJavaOptions": "-Xmx1g -Ddb.password=(redacted)",
    }


def test_plans_are_told_by_what_they_do() -> None:
    """A plan run twice is one; its joins are named, and with another join it is another plan."""

    def stages(*joins: str) -> list[Stage]:
        return [Stage("sum up", 0, 10, [Task(0, 10)], joins=join) for join in joins]

    summary = Run(10, stages("SortMergeJoin", "SortMergeJoin(skew=true)")).summary
    (plan,) = summary.plans["sum up"]
    assert summary.operators == {"sum up": [OperatorSum("SortMergeJoin")]}
    (other,) = Run(10, stages("BroadcastHashJoin")).summary.plans["sum up"]
    assert other != plan


@pytest.mark.parametrize(
    ("operator", "name"),
    [
        (Operator("Exchange", "Exchange hashpartitioning(shop#2L, day#4, 8), ENSURE_REQUIREMENTS, [plan_id=26]"),
         "Exchange hashpartitioning(shop, day)"),
        (Operator("Exchange", "Exchange SinglePartition, ENSURE_REQUIREMENTS, [plan_id=180]"),
         "Exchange SinglePartition"),
        (Operator("Exchange", "Exchange RoundRobinPartitioning(3), REPARTITION_BY_NUM, [plan_id=301]"),
         "Exchange RoundRobinPartitioning"),
        (Operator("BatchEvalPython", "BatchEvalPython [fails(length(reflect(x, (id#153L))))#154L], [pythonUDF0#156L]"),
         "BatchEvalPython fails"),
        (Operator("ArrowEvalPython", "ArrowEvalPython [<lambda>((id#15L + 1))#2, b(c#1)#3], [pythonUDF0#5], 200"),
         "ArrowEvalPython <lambda>, b"),
        (Operator("MapInPandas", "MapInPandas cleaned(id#0L)#2, [id#1L], false"), "MapInPandas cleaned"),
    ],
)  # fmt: skip
def test_operators_are_named_by_what_they_do(operator: Operator, name: str) -> None:
    """An exchange by its columns, Python by its functions; without ids and numbers of partitions."""
    (found,) = Run(10, [Stage("sum up", 0, 10, [Task(0, 10)], operators=[operator])]).summary.operators["sum up"]
    assert found.name == name


def test_numbers_of_operators_are_added_up() -> None:
    """Over all queries of a place; how often an operator occurs is counted in one query of each plan."""
    numbers = {"number of output rows": 7, "scan time": 40}
    stage = Stage("sum up", 0, 10, [Task(0, 10)], operators=[Operator("Scan parquet ", numbers=numbers)])
    assert Run(10, [stage, stage]).summary.operators == {"sum up": [OperatorSum("Scan parquet", 1, 14, None, 80)]}


def test_times_in_python_and_in_scans_are_those_of_each_stage() -> None:
    """Of Spark's sums, which go on counting, a stage has what they grew by; unknown where there are none."""
    numbers = {"time to run Python workers": 300, "scan time": 40}
    operators = [Operator("ArrowEvalPython", numbers=numbers)]
    stages = [Stage("a", 0, 10, [Task(0, 10)], operators=operators), Stage("b", 10, 20, [Task(10, 20)])]
    first, second = Run(20, stages).summary.groups
    assert (first.has_python, first.python_ms, first.scan_ms) == (True, 300, 40)
    assert (second.has_python, second.python_ms, second.scan_ms) == (False, None, None)
    again = replace(stages[0], attempt=1, operators=[Operator("ArrowEvalPython", numbers={**numbers, "scan time": 50})])
    (group,) = Run(20, [stages[0], again]).summary.groups
    assert (group.python_ms, group.scan_ms) == (300, 50)


def test_a_record_stays_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a program that names its work in ever new ways, what took least is one group; no time is lost."""
    monkeypatch.setattr(profiling, "MAX_GROUPS", 3)
    stages = [Stage("x" * n, at := n * 1000, at + n * 10, [Task(at, at + n * 10, rows=n)]) for n in range(1, 7)]
    kept = Run(9000, stages).summary
    assert [group.place for group in kept.groups] == ["xxxx", "xxxxx", "xxxxxx", profiling.REST]
    assert (kept.groups[-1].tasks, kept.groups[-1].volume.input_records, kept.groups[-1].longest_ms) == (3, 6, 30)
    assert set(kept.plans) == {"xxxx", "xxxxx", "xxxxxx"}
    monkeypatch.undo()
    assert sum(amount.ms for amount in contributions(kept, Run(9000, stages).summary)) == pytest.approx(0)


@pytest.mark.parametrize("version", VERSIONS)
def test_real_runs_of_one_program_are_aligned(version: str, tmp_path: Path) -> None:
    """Two recorded runs: the same groups and plans, a record of some kilobytes, every millisecond accounted for."""
    one, other = (
        profiling.run_profile(read(golden.log(version, layout, tmp_path))) for layout in ("plain", "rolled-zstd")
    )
    assert [(group.place, group.flow) for group in one.groups] == [(group.place, group.flow) for group in other.groups]
    assert one.plans == other.plans
    assert len(one.plans) > 3
    assert len(msgspec.json.encode(one)) < 10_000
    assert msgspec.json.decode(msgspec.json.encode(one), type=RunProfile) == one
    difference = other.duration_ms - one.duration_ms
    assert sum(amount.ms for amount in contributions(one, other)) == pytest.approx(difference, abs=len(one.groups))


@pytest.mark.parametrize(
    ("run", "outcome"),
    [
        (Run(1, []), "ended"),
        (Run(1, [], has_failed=True), "failed"),
        (Run(1, [], is_finished=False), "incomplete"),
    ],
)
def test_how_it_ended_is_told(run: Run, outcome: str) -> None:
    """A run without an end was killed, or is still at work: nothing to be measured by."""
    assert (ending_of(run.application).outcome, run.summary.outcome) == (outcome, outcome)


def test_only_executors_that_were_needed_are_lost() -> None:
    """An executor that failed is lost; the others went with the application, or dynamic allocation took them back."""
    assert Run(10, [], lost_at=5).summary.executors_lost == 1
    assert Run(10, [], lost_at=5, lost_by="Executor killed by driver.").summary.executors_lost == 0
    assert Run(10, []).summary.executors_lost == 0


def test_the_load_of_the_host_is_the_mean_over_the_application() -> None:
    """In runnable threads per processor; samples of before and after do not count."""
    app = Run(10, [Stage("a", 0, 10, [Task(0, 10)])], at=1000).application
    assert profiling.run_profile(Reading(Path("app-1"), app, ReadErrors(), 0, is_finished=True)).runnable is None
    app.host_load = HostLoad(2, [LoadSample(time, threads, {}) for time, threads in ((0, 90), (1001, 5), (1009, 8))])
    assert profiling.run_profile(Reading(Path("app-1"), app, ReadErrors(), 0, is_finished=True)).runnable == 3.25


def test_the_cost_of_an_application_has_its_users(tmp_path: Path) -> None:
    """Whoever submitted it; of a server those of its clients, and the rest; in all it is that of the application."""
    alone = profiling.run_profile(read(golden.log("4.2.0", "plain", tmp_path)))
    assert list(alone.users) == ["somebody"]
    server, local = (profiling.run_profile(read(record_connect.recorded(name))) for name in ("server", "local"))
    assert (list(server.users), list(local.users)) == (["dan", "ben", "ana", "cyd", ""], ["somebody"])
    for profile in (alone, server, local):
        assert sum(profile.users.values()) == pytest.approx(profile.core_ms, rel=0.001)
