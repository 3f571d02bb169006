import random
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, get_args

import pytest
from msgspec import structs

from spark_app.eventlog.comparison.attribution import SPILLED, Kind, contributions
from spark_app.eventlog.comparison.causes import WORDING, Setting
from spark_app.eventlog.comparison.changes import MAX_LISTED
from spark_app.eventlog.comparison.compare import Comparison, compare, noise_ms
from tests.unit.eventlog.made import Operator, Run, Stage, Task

USUAL: Final = [Task(0, 5000, cpu=4000, rows=100), Task(0, 5000, cpu=4000, rows=100)]


def job(
    tasks: Sequence[Task], *, joins: str | None = None, name: str = "sum up", operators: Sequence[Operator] = ()
) -> Run:
    """A run of one stage that lasts as long as its tasks."""
    end = max(task.end for task in tasks)
    return Run(end, [Stage(name, 0, end, tasks, joins=joins, operators=operators)], id=f"app-{end}")


def kinds(before: Run, now: Run) -> list[Kind]:
    """The causes, the largest first."""
    return [cause.kind for cause in compare(before.summary, now.summary).causes]


@pytest.mark.parametrize(
    ("kind", "tasks"),
    [
        ("input", [Task(0, 10_000, cpu=8000, rows=200), Task(0, 10_000, cpu=8000, rows=200)]),
        ("skew", [Task(0, 9000, cpu=7200, rows=100), Task(0, 1000, cpu=800, rows=100), Task(0, 0), Task(0, 0)]),
        ("gc", [Task(0, 9000, cpu=4000, gc=4000, rows=100)] * 2),
        ("processor", [Task(0, 9000, cpu=8000, rows=100)] * 2),
        ("machine", [Task(0, 9000, cpu=4000, rows=100)] * 2),
        ("shuffle", [Task(0, 9000, cpu=4000, wait=4000, rows=100)] * 2),
        ("scheduling", [Task(0, 9000, cpu=4000, overhead=4000, rows=100)] * 2),
        ("spill", [Task(0, 9000, cpu=5000, gc=2000, spilled=SPILLED * 4, rows=100)] * 2),
        ("retries", [Task(0, 4000, has_failed=True), *(Task(4000, 9000, cpu=4000, rows=100),) * 2]),
        ("tasks", [Task(at * 80, at * 80 + 80, cpu=40, rows=2) for at in range(100)]),
        ("queueing", [Task(4000, 9000, cpu=4000, rows=100)] * 2),
    ],
)
def test_what_was_planted_comes_first(kind: Kind, tasks: list[Task]) -> None:
    """What tasks do with their time tells what made them slower."""
    usual = USUAL if kind != "skew" else [*USUAL, Task(0, 0), Task(0, 0)]
    assert kinds(job(usual), job(tasks))[0] == kind


def test_fewer_cores_are_no_other_balance() -> None:
    """Half of the cores take twice as long; that the fewer are better used is no gain of its own."""
    one = [Task(0, 5000, cpu=4000, rows=100), Task(5000, 10_000, cpu=4000, rows=100)]
    now = replace(job(one), cores=1)
    compared = compare(job(USUAL).summary, now.summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("cores", 5000)]


def test_cores_that_idle_less_as_they_are_fewer_are_no_cause() -> None:
    """Three tasks on two cores leave one idle at the end; on one core none: the difference is the cores', all of it."""
    before = job([Task(0, 5000, cpu=5000), Task(0, 5000, cpu=5000), Task(5000, 10_000, cpu=5000)])
    one = [Task(at, at + 5000, cpu=5000) for at in (0, 5000, 10_000)]
    compared = compare(before.summary, replace(job(one), cores=1).summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("cores", 5000)]


def test_cores_that_idle_beside_longer_tasks_are_of_the_same_cause() -> None:
    """One task on two cores that waits five seconds longer costs five, half of which are a core without a task."""
    before = job([Task(0, 5000, cpu=4000, rows=100)])
    compared = compare(before.summary, job([Task(0, 10_000, cpu=4000, rows=100)]).summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("machine", 5000)]


def test_more_input_explains_no_more_than_there_is() -> None:
    """Twice the rows that do not take twice the time have cost what they took; nothing is set off against it."""
    more = [Task(0, 8000, cpu=6400, rows=200)] * 2
    compared = compare(job(USUAL).summary, job(more).summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes if cause.kind == "input"] == [("input", 3000)]


def test_a_lost_executor_is_blamed_for_its_cores() -> None:
    """Fewer cores and the tasks that went with them are one cause where executors were lost."""
    first = [Task(0, 5000, cpu=4000, rows=100)] * 4
    late = [*first[:2], *(Task(5000, 10_000, cpu=4000, rows=100),) * 2]
    compared = compare(replace(job(first), cores=4).summary, replace(job(late), lost_at=10).summary)
    assert compared.causes[0].kind == "executors"
    assert "1 executor lost, before 0" in compared.causes[0].text


def test_another_plan_is_named_by_its_join() -> None:
    """All that a query took longer with another plan is the plan's, whatever its tasks did."""
    slow = [Task(0, 9000, cpu=8000, rows=100)] * 2
    compared = compare(job(USUAL, joins="BroadcastHashJoin").summary, job(slow, joins="SortMergeJoin").summary)
    assert compared.causes[0].kind == "plan"
    assert "sum up: added SortMergeJoin; removed BroadcastHashJoin" in compared.causes[0].text


def test_what_another_plan_shuffles_is_not_more_input() -> None:
    """A plan that shuffles what was broadcast before reads no more of its files: the difference is the plan's."""
    slow = [replace(task, end=9000, cpu=8000, read=10_000_000) for task in USUAL]
    compared = compare(job(USUAL, joins="BroadcastHashJoin").summary, job(slow, joins="SortMergeJoin").summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("plan", 4000)]


def test_more_input_of_another_plan_is_told_in_rows_of_files() -> None:
    """What it shuffles is its own choice, and would hide how much more there was to read."""
    more = [Task(0, 9000, cpu=8000, rows=200)] * 2
    shuffled = [replace(task, read=10_000_000) for task in USUAL]
    compared = compare(job(shuffled, joins="SortMergeJoin").summary, job(more, joins="BroadcastHashJoin").summary)
    (text,) = (cause.text for cause in compared.causes if cause.kind == "input")
    assert text == "more input: sum up read 400 rows (3.9 KiB) of files, before 200 rows (2.0 KiB)"


FILTER: Final = Operator("Filter", "Filter (price#1 > 3)")
SHUFFLED: Final = Operator("Exchange", "Exchange hashpartitioning(shop#2L, 8), ENSURE_REQUIREMENTS, [plan_id=9]")


def in_python(ms: int, function: str = "price") -> Operator:
    """A Python function that took some time of its tasks."""
    text = f"ArrowEvalPython [{function}(x#1, (y#2 + 1))#3], [pythonUDF0#4], 101"
    return Operator("ArrowEvalPython", text, {"number of output rows": 200, "time to run Python workers": ms})


@pytest.mark.parametrize("operators", [[], [FILTER], [SHUFFLED]])
@pytest.mark.parametrize(
    ("kind", "tasks"),
    [
        ("gc", [Task(0, 9000, cpu=4000, gc=4000, rows=100)] * 2),
        ("spill", [Task(0, 9000, cpu=5000, gc=2000, spilled=SPILLED * 4, rows=100)] * 2),
        ("retries", [Task(0, 4000, has_failed=True), *(Task(4000, 9000, cpu=4000, rows=100),) * 2]),
        ("input", [Task(0, 10_000, cpu=8000, rows=200), Task(0, 10_000, cpu=8000, rows=200)]),
    ],
)
def test_another_plan_hides_no_cause_that_is_measured(
    kind: Kind, tasks: list[Task], operators: Sequence[Operator]
) -> None:
    """Garbage collection, spill, failures and input keep their time, whatever operators are new."""
    assert kinds(job(USUAL), job(tasks, operators=operators))[0] == kind


def test_another_plan_hides_no_skew_unless_it_distributes_the_rows() -> None:
    """A new filter leaves rows in their tasks; a new exchange by shop brings those of one shop together."""
    even, hot = ([Task(0, end, cpu=end * 4 // 5) for end in ends] for ends in ([5000, 5000, 0, 0], [9000, 1000, 0, 0]))
    assert kinds(job(even), job(hot, operators=[FILTER]))[0] == "skew"
    (cause,) = compare(job(even).summary, job(hot, operators=[SHUFFLED]).summary).causes
    assert cause.kind == "plan"
    assert cause.text.endswith(
        "sum up: added Exchange hashpartitioning(shop); the longest task took 9.0 s (median 500 ms), before the "
        "longest task took 5.0 s (median 2.5 s)"
    )


def test_a_new_python_function_is_named_with_its_numbers_and_its_advice() -> None:
    """What its tasks wait for is its time, and no advice is about broadcasts."""
    now = job([Task(0, 9000, cpu=4000, rows=100)] * 2, operators=[in_python(8000)])
    (cause,) = compare(job(USUAL).summary, now.summary).causes
    assert (cause.kind, cause.ms) == ("python", 4000)
    assert cause.text == (
        "more time in Python: tasks of sum up [result] spent 8.0 s in Python workers, before 0 ms, on 200 rows "
        "(2.0 KiB); added ArrowEvalPython price (200 rows, 8.0 s of task time)"
    )
    assert cause.advice is not None
    assert cause.advice.startswith("use pyspark.sql.functions instead")
    changes = {change.what: change.text for change in compare(job(USUAL).summary, now.summary).changes}
    assert changes["time in Python"] == "8.0 s, before 0 ms"


def test_a_python_function_has_what_its_workers_took_and_no_more() -> None:
    """The rest of the waiting has another cause; where Spark measures no workers, all of it is theirs."""
    tasks = [Task(0, 11_000, cpu=4000, rows=100)] * 2
    before = job(USUAL, operators=[in_python(1000)])
    compared = compare(before.summary, job(tasks, operators=[in_python(9000)]).summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("python", 4000), ("machine", 2000)]
    assert "spent 5.0 s waiting, not for a shuffle, before 1.0 s" in compared.causes[1].text
    unmeasured = Operator("MapInPandas", "MapInPandas cleaned(id#0L)#2, [id#1L], false")
    compared = compare(job(USUAL, operators=[unmeasured]).summary, job(tasks, operators=[unmeasured]).summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("python", 6000)]
    assert "spent 14.0 s outside the JVM, before 2.0 s" in compared.causes[0].text


def test_a_new_python_function_is_no_reason_for_less_waiting() -> None:
    """One whose tasks failed has no measured time: what the other run waited for was not Python."""
    failing = Operator("ArrowEvalPython", "ArrowEvalPython [price(x#1)#3], [pythonUDF0#4], 101")
    waited = [Task(0, 9000, cpu=4000, rows=100)] * 2
    (cause,) = compare(job(waited).summary, job(USUAL, operators=[failing]).summary).causes
    assert (cause.kind, cause.ms) == ("machine", -4000)


@pytest.mark.parametrize(("rows", "kind"), [(155 * 1024 // 20, "machine"), (60_000, "storage")])
def test_little_input_is_no_slow_storage(rows: int, kind: Kind) -> None:
    """Tasks that read 155 KiB and wait for seconds wait for something else."""
    before, now = ([Task(0, end, cpu=4000, rows=rows)] * 2 for end in (5000, 9000))
    (cause,) = compare(job(before).summary, job(now).summary).causes
    assert (cause.kind, cause.ms) == (kind, 4000)


def test_storage_has_what_its_scans_took_and_no_more() -> None:
    """Spark measures the scans of columnar files."""

    def read(end: int, scan: int) -> Run:
        scans = [Operator("Scan parquet ", numbers={"scan time": scan})]
        return job([Task(0, end, cpu=4000, rows=60_000)] * 2, operators=scans)

    compared = compare(read(5000, 2000).summary, read(11_000, 10_000).summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("storage", 4000), ("machine", 2000)]
    assert "spent 10.0 s scanning files, before 2.0 s, on 120,000 rows" in compared.causes[0].text


def test_the_load_of_the_host_is_named_where_it_was_measured() -> None:
    """`spark-app observe` measures it; whether the machine was busy is known, and not guessed."""
    now = structs.replace(job([Task(0, 9000, cpu=4000, rows=100)] * 2).summary, runnable=6.94)
    before = structs.replace(job(USUAL).summary, runnable=1.2)
    for baseline, shown in ((before, "1.2"), (job(USUAL).summary, "-")):
        compared = compare(baseline, now)
        load = f"6.9 runnable threads for each processor, before {shown}"
        assert compared.causes[0].text.endswith(f"; the host of the driver had {load}")
        assert [change.text for change in compared.changes if change.what == "driver host"] == [load]


def test_an_expensive_operator_is_the_plans_and_no_broadcast_is_advised() -> None:
    """CPU time of a plan with other operators, and the same joins."""
    now = job([Task(0, 9000, cpu=8000, rows=100)] * 2, operators=[FILTER])
    (cause,) = compare(job(USUAL).summary, now.summary).causes
    assert (cause.kind, cause.ms, cause.text) == ("plan", 4000, "a different plan: sum up: added Filter")
    assert cause.advice is not None
    assert "broadcast" not in cause.advice


def test_what_changed_is_listed_though_the_time_did_not() -> None:
    """Settings, plans with their joins and numbers, rows, shuffle, tasks and CPU; what is the same says so."""
    rows = {"number of output rows": 200}
    before = job(USUAL, operators=[Operator("BroadcastHashJoin", numbers=rows)])
    now = job([replace(task, cpu=4500) for task in USUAL], operators=[Operator("SortMergeJoin", numbers=rows)])
    settings = {"spark.sql.autoBroadcastJoinThreshold": "-1"}
    compared = compare(before.summary, replace(now, settings=settings).summary)
    assert not compared.is_significant
    assert [(change.what, change.text) for change in compared.changes] == [
        ("setting", "spark.sql.autoBroadcastJoinThreshold is -1, before not set"),
        ("plan", "sum up: added SortMergeJoin (200 rows); removed BroadcastHashJoin (200 rows)"),
        ("rows read", "200, the same"),
        ("shuffled", "0 B, the same"),
        ("tasks", "2, the same"),
        ("CPU time", "9.0 s, before 8.0 s"),
    ]
    same = compare(before.summary, before.summary)
    assert [change.text for change in same.changes[:2]] == ["the same", "the same"]


def test_only_some_of_many_changes_are_listed() -> None:
    """The rest is counted."""
    now = replace(job(USUAL), settings={f"spark.x{number:02}": "1" for number in range(MAX_LISTED + 3)})
    compared = compare(job(USUAL).summary, now.summary)
    texts = [change.text for change in compared.changes if change.what == "setting"]
    assert (len(texts), texts[-1]) == (MAX_LISTED + 1, "3 other settings changed")


def test_the_driver_alone_new_work_and_a_late_start_are_told() -> None:
    """Time without a stage is the driver's; stages that were not there before are new work."""
    stages = [
        Stage("sum up", 3000, 8000, [Task(3000, 8000, cpu=4000)]),
        Stage("more", 12_000, 13_000, [Task(12_000, 13_000)]),
    ]
    now = Run(13_000, stages)
    before = Run(5000, [Stage("sum up", 0, 5000, [Task(0, 5000, cpu=4000)])])
    found = {cause.kind: cause for cause in compare(before.summary, now.summary).causes}
    assert {kind: cause.ms for kind, cause in found.items()} == {"driver": 4000, "startup": 3000, "new": 1000}
    assert found["driver"].text == "more time without tasks: more [result] began after 4.0 s without a task, and is new"
    gone = {cause.kind: cause.text for cause in compare(now.summary, before.summary).causes}
    assert gone["driver"].endswith("more [result] is gone; before, it began after 4.0 s without a task")


def test_new_work_that_others_waited_for_is_queueing() -> None:
    """A job that was not there before and holds all cores while another has tasks to run makes that one queue."""
    ours = Stage("ours", 0, 5000, USUAL)
    later = Stage("ours", 500, 11_000, [replace(task, start=6000, end=11_000) for task in USUAL])
    now = Run(11_000, [Stage("theirs", 0, 6000, [Task(0, 6000)] * 2), later])
    assert kinds(Run(5000, [ours]), now)[0] == "queueing"


def test_a_changed_setting_is_named_in_what_it_did() -> None:
    """The number of partitions is another since a setting is; one that has no say in it is only listed."""
    many = [Task(at * 80, at * 80 + 80, cpu=40, rows=2) for at in range(100)]
    before = replace(job(USUAL), settings={"spark.sql.shuffle.partitions": "2", "spark.x": "1"})
    now = replace(job(many), settings={"spark.sql.shuffle.partitions": "100"})
    compared = compare(before.summary, now.summary)
    partitions = Setting("spark.sql.shuffle.partitions", now="100", before="2")
    assert compared.causes[0].settings == [partitions]
    assert "spark.sql.shuffle.partitions is 100, before 2" in compared.causes[0].text
    assert compared.settings == [partitions, Setting("spark.x", now=None, before="1")]


def test_a_faster_run_is_explained_too() -> None:
    """Less input is a negative share; what it gained is reported, and nothing is to be done about it."""
    less = [Task(0, 2000, cpu=1600, rows=40)] * 2
    compared = compare(job(USUAL).summary, job(less).summary)
    assert [(cause.kind, cause.ms) for cause in compared.causes] == [("input", -3000)]
    assert compared.causes[0].text.startswith("less input: ")
    assert compared.causes[0].advice is None
    assert compared.sentences == [
        "app-2000 took 2.0 s, before 5.0 s (app-5000): -3.0 s",
        f"-3.0 s {compared.causes[0].text}",
        "+0 ms unexplained, or in causes below 5 % of the difference",
    ]


def test_only_what_made_a_run_slower_is_to_be_mended() -> None:
    """Of a run with more to compute, and less to collect, only the former is reported with what to do."""
    usual = [replace(task, gc=1000) for task in USUAL]
    compared = compare(job(usual).summary, job([Task(0, 8500, cpu=8500, rows=100)] * 2).summary)
    found = {cause.kind: (cause.ms > 0, cause.advice is not None) for cause in compared.causes}
    assert found == {"processor": (True, True), "gc": (False, False)}
    assert [sentence.count("Next step: ") for sentence in compared.sentences[1:-1]] == [1, 0]


@pytest.mark.parametrize(
    ("master", "named"),
    [("local[2]", "spark.driver.memory"), ("local", "spark.driver.memory"), ("yarn", "spark.executor.memory")],
)
def test_the_memory_to_raise_is_that_of_whatever_runs_the_tasks(master: str, named: str) -> None:
    """On one machine there are no executors: their memory would be raised in vain."""
    now = replace(job([Task(0, 9000, cpu=4000, gc=4000, rows=100)] * 2), settings={"spark.master": master})
    advice = compare(replace(job(USUAL), settings=now.settings).summary, now.summary).causes[0].advice
    assert advice == f"raise {named}, or cache less"


def test_what_is_no_fair_comparison_is_said() -> None:
    """A run that failed is no faster one; another application, other work and another Spark are not the same."""
    short = [Task(0, 1000, cpu=800, rows=20)] * 2
    usual, failed = job(USUAL).summary, replace(job(short), has_failed=True).summary
    assert "app-1000 failed: its time lacks the work" in compare(usual, failed).sentences[0]
    assert "app-1000 has no end in its log" in compare(usual, replace(job(short), is_finished=False).summary).remarks[0]
    killed = structs.replace(failed, outcome="killed")
    assert "app-1000 was killed: its time lacks the work" in compare(usual, killed).sentences[0]
    assert "app-1000 is still running" in compare(usual, structs.replace(failed, outcome="running")).remarks[0]
    assert compare(usual, structs.replace(usual, application="other", workload="x")).remarks == [
        "the earlier run is of another application: shop"
    ]
    assert compare(usual, structs.replace(usual, workload="etl, 2 days")).remarks == [
        "its workload is etl, 2 days, before it was unknown"
    ]
    newer = [structs.replace(usual, spark_version=version) for version in ("4.0.1", "4.2.0")]
    assert compare(*newer).remarks == ["it ran on Spark 4.2.0, before on 4.0.1"]
    assert compare(usual, newer[0]).remarks == []


def test_the_numbers_of_one_place_are_not_told_as_those_of_all() -> None:
    """What the first of several places had is reported with its part of the difference."""

    def of(first: int, second: int) -> Run:
        tasks = [Task(0, first, cpu=first, rows=10)], [Task(first, first + second, cpu=second, rows=10)]
        stages = [Stage("load", 0, first, tasks[0]), Stage("sum up", first, first + second, tasks[1])]
        return Run(first + second, stages, cores=1)

    (cause,) = compare(of(5000, 2000).summary, of(9000, 3000).summary).causes
    assert cause.ms == 5000
    assert cause.text == (
        "more CPU time, most (+4.0 s): tasks of load [result] spent 9.0 s on CPUs, before 5.0 s, "
        "on 10 rows (100 B); the rest in 1 other place"
    )


def test_equal_runs_have_no_causes() -> None:
    """A difference below noise is not explained: it is none."""
    compared = compare(job(USUAL).summary, job([replace(task, end=5900) for task in USUAL]).summary)
    assert (compared.difference_ms, compared.noise_ms) == (900, 3000)
    assert (compared.causes, compared.unexplained_ms) == ([], 0)
    assert compared.sentences == [
        "app-5900 took 5.9 s, before 5.0 s (app-5000): +900 ms, no significant difference (noise threshold 3.0 s)"
    ]


def test_noise_is_told_by_the_spread_of_three_runs() -> None:
    """One run or two: a tenth, at least 3 s. More: their own spread, up to a half; of five less an outlier."""
    assert noise_ms([100_000]) == 10_000
    assert noise_ms([5000, 6000]) == 3000
    assert noise_ms([100_000, 100_100, 100_200]) == 5005
    assert noise_ms([5000, 5100, 5200]) == 1000
    assert noise_ms([100_000, 105_000, 110_000]) == 26_000
    assert noise_ms([100_000, 101_000, 500_000]) == 50_500
    assert noise_ms([500_000, 100_000, 102_000, 101_000, 104_000]) == 10_000


@pytest.mark.parametrize("runs", [3, 4, 5])
@pytest.mark.parametrize("deviation", [0.01, 0.03, 0.1])
def test_equal_runs_of_a_busy_machine_are_equal(runs: int, deviation: float) -> None:
    """However far apart the runs of one program are by chance, hardly one in twenty is called another."""
    draw, others = random.Random(1), 0
    for _ in range(2000):
        *before, now = (draw.gauss(60_000, 60_000 * deviation) for _ in range(runs + 1))
        others += abs(now - sorted(before)[(runs - 1) // 2]) >= noise_ms(before)
    assert others <= 0.065 * 2000


def test_calls_that_moved_to_another_line_are_the_same() -> None:
    """An edited program is compared call by call; a call of another file is other work."""

    def called(*places: str) -> Run:
        stages = [
            Stage(place, at, at + 5000, [Task(at, at + 5000, cpu=5000)])
            for at, place in zip((0, 5000), places, strict=True)
        ]
        return Run(10_000, stages)

    before = called("count at job.py:7", "save at job.py:9").summary
    now = called("count at job.py:17", "save at job.py:29").summary
    assert [group.place for group in now.groups] == ["count at job.py", "save at job.py"]
    assert contributions(before, now) == []
    now = called("count at job.py:17", "save at other.py:29").summary
    assert {amount.kind for amount in contributions(before, now)} == {"new", "gone"}


def test_work_that_tells_no_rows_is_counted_in_stages() -> None:
    """A loop that ran three times where it ran once did more of the same; of rows that nobody counted, nothing."""
    stages = [Stage("sum up", at, at + 5000, [Task(at, at + 5000, cpu=5000)]) for at in (0, 5000, 10_000)]
    (cause,) = compare(Run(5000, stages[:1]).summary, Run(15_000, stages).summary).causes
    assert (cause.kind, cause.ms) == ("input", 10_000)
    assert cause.text == "more input: sum up [result] ran 3 stages, before 1"


def test_several_earlier_runs_are_their_median() -> None:
    """The middle one is what a run is compared with."""
    runs = [job([replace(task, end=end) for task in USUAL]).summary for end in (5000, 9000, 6000)]
    compared = compare(runs, job(USUAL).summary)
    assert (compared.before, compared.choice) == ("app-6000", "the median of 3 earlier runs")
    compared = compare(runs[:2], job(USUAL).summary)
    assert (compared.before, compared.choice) == ("app-5000", "the faster of 2 earlier runs")


def test_nothing_to_compare_with_is_an_error() -> None:
    """A run that has nothing before it is compared with nothing."""
    with pytest.raises(ValueError, match="there is no earlier run"):
        compare([], job(USUAL).summary)


@pytest.mark.parametrize("seed", range(60))
def test_the_shares_add_up_to_the_difference(seed: int) -> None:
    """Whatever two runs did: amounts are the difference, no more and no less."""
    draw = random.Random(seed)
    before, now = drawn(draw).summary, drawn(draw).summary
    assert sum(amount.ms for amount in contributions(before, now)) == pytest.approx(
        now.duration_ms - before.duration_ms, abs=2
    )
    compared: Comparison = compare(before, now)
    if compared.causes:
        explained = sum(cause.ms for cause in compared.causes) + compared.unexplained_ms
        assert explained == pytest.approx(compared.difference_ms)


def test_each_kind_has_its_words() -> None:
    """Whatever can be a cause can be said."""
    assert set(WORDING) == set(get_args(Kind))


def drawn(draw: random.Random) -> Run:
    """A run of which nothing is as it should be."""
    stages = []
    for _ in range(draw.randrange(1, 8)):
        start = draw.randrange(9000)
        tasks = []
        for _ in range(draw.randrange(5)):
            at, length = start + draw.randrange(500), draw.randrange(1, 1500)
            parts = {key: draw.randrange(length) for key in ("cpu", "gc", "wait", "overhead")}
            rows, spilled = draw.choice([0, 10, 50]), draw.choice([0, SPILLED * 3])
            tasks.append(Task(at, at + length, **parts, rows=rows, spilled=spilled, has_failed=draw.random() < 0.2))
        name, joins = draw.choice("abc"), draw.choice([None, "SortMergeJoin"])
        operators = draw.sample([FILTER, SHUFFLED, in_python(draw.randrange(3000))], draw.randrange(3))
        stages.append(Stage(name, start, start + draw.randrange(2000), tasks, joins=joins, operators=operators))
    return Run(20_000 + draw.randrange(9000), stages, cores=draw.randrange(1, 4), lost_at=draw.choice([None, 300]))
