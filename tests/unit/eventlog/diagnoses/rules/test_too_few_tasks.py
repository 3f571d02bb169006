from typing import Any

import pytest

from tests.unit.eventlog.diagnoses.cases import (
    EVERY_COST,
    GIB,
    SHUFFLED,
    found,
    of_query,
    settings,
    shuffle,
    stage,
    task,
    with_plan,
)
from tests.unit.eventlog.diagnoses.plans import Node, node, scan
from tests.unit.eventlog.log import Line


def test_too_few_tasks_cost_the_share_of_idle_cores() -> None:
    """One task of 40 s on four cores could have taken 10, or a tenth more side by side."""
    finding = found(stage([task(0, 40)], seconds=40))["too_few_tasks"]
    assert finding.cost_ms == 30_000 - 0.1 * 10_000
    assert (finding.cost_low_ms, finding.cost_high_ms) == (30_000 - 0.25 * 10_000, 30_000)
    assert "1 task in 40.0 s, where 4 could run at once" in finding.text
    assert finding.advice.startswith("Make more tasks: a lower spark.sql.files.maxPartitionBytes (files)")


@pytest.mark.parametrize(
    ("count", "seconds", "attempt"),
    [(4, 40, 0), (1, 2.9, 0), (1, 40, 1)],
    ids=["as many tasks as cores", "a short stage", "a later attempt"],
)
def test_few_tasks_that_are_enough(count: int, seconds: float, attempt: int) -> None:
    """A task for each core, a stage that is short, and an attempt that has only what was missing."""
    info = {"Stage Attempt ID": attempt}
    lines = stage([task(number, seconds) for number in range(count)], seconds=seconds, **info)
    assert "too_few_tasks" not in found(lines, EVERY_COST)


def test_few_tasks_beside_other_work_are_enough() -> None:
    """Cores that another stage keeps busy are not idle."""
    other = [line for number in range(1, 4) for line in task(number, 40)]
    for line in other:
        line["Stage ID"] = 1
    begin, *rest = stage([task(0, 40)], seconds=40)
    starts = [line for line in other if line["Event"].endswith("Start")]
    ends = [line for line in other if line["Event"].endswith("End")]
    lines = [begin, *rest[:4], *starts, rest[4], *ends, *rest[5:]]
    assert "too_few_tasks" not in found(lines)


def test_tasks_of_two_cores_need_half_as_many() -> None:
    """`spark.task.cpus` says so."""
    lines = stage([task(0, 41), task(1, 41)], seconds=41)
    assert "too_few_tasks" in found(lines)
    assert "too_few_tasks" not in found([settings(task_cpus="2"), *lines])


FEW = stage([task(0, 40)], seconds=40, **SHUFFLED)
TINY = stage(
    [task(number, 0.03, begin=number // 2 * 0.03, **{"Executor Run Time": 10}) for number in range(1000)],
    seconds=15,
    cores=2,
    **SHUFFLED,
)
HUGE = stage([task(0, 1, **shuffle(6 * GIB))], seconds=1, **SHUFFLED)
SPILLED = stage([task(0, 60, **{"Disk Bytes Spilled": 2 * GIB})], seconds=60, **SHUFFLED)


@pytest.mark.parametrize(
    ("rule", "lines"),
    [("too_few_tasks", FEW), ("tiny_tasks", TINY), ("huge_partitions", HUGE), ("spill", SPILLED)],
)
def test_partitions_of_rdds_are_not_those_of_sql(rule: str, lines: list[Line]) -> None:
    """Settings of SQL have no effect on a job without a query."""
    advice = found([lines[0], settings(sql_adaptive_enabled="false"), *lines[1:]], EVERY_COST)[rule].advice
    assert "spark.default.parallelism (default the number of cores) or numPartitions" in advice
    assert "spark.sql" not in advice
    advice = found(of_query(lines), EVERY_COST)[rule].advice
    assert "spark.sql.shuffle.partitions (default 200)" in advice
    assert "parallelism" not in advice


def rdd(number: int, partitions: int, name: str = "MapPartitionsRDD", *parents: int, scope: str = "Project") -> Line:
    """An RDD of a stage, as a log has it."""
    known = {"RDD ID": number, "Name": name, "Number of Partitions": partitions, "Parent IDs": list(parents)}
    return known | {"Scope": f'{{"id":"1","name":"{scope}"}}'}


def few(*rdds: Line, tasks: int = 1) -> list[Line]:
    """A long stage of such RDDs."""
    info: dict[str, Any] = {"RDD Info": list(rdds)}
    return stage([task(number, 40) for number in range(tasks)], seconds=40, **info)


def test_coalesce_is_the_cause_where_it_takes_partitions_away() -> None:
    """Settings have no effect on it, so that none is named; behind a read in one part it is harmless."""
    coalesced = rdd(3, 2, "CoalescedRDD", 2, scope="Coalesce")
    finding = found(few(coalesced, rdd(2, 8), tasks=2))["too_few_tasks"]
    assert "coalesce(2) of 8 partitions makes 2 tasks of all that stands before it" in finding.text
    assert finding.advice.startswith("Use repartition(2) instead of coalesce(2): what stands before it then runs in 8")
    assert "spark.sql" not in finding.advice
    assert "coalesce" not in found(few(coalesced, rdd(2, 2), tasks=2))["too_few_tasks"].text


@pytest.mark.parametrize(("partitions", "text"), [(1, "without partitionColumn"), (2, "in 2 partitions")])
def test_jdbc_has_options_of_its_own(partitions: int, text: str) -> None:
    """`maxPartitionBytes` is of files."""
    read = node(f"Scan JDBCRelation((SELECT 1) orders) [numPartitions={partitions}]", number_of_output_rows=9)
    finding = found(with_plan(few(rdd(2, partitions, "JDBCRDD"), tasks=partitions), read))["too_few_tasks"]
    assert finding.text.endswith(f": JDBC reads (SELECT 1) orders {text}")
    for option in ("partitionColumn", "lowerBound", "upperBound", "numPartitions"):
        assert option in finding.advice
    assert "maxPartitionBytes" not in finding.advice


def text_of(*, path: str, format_: str = "Text", files: int = 1) -> Node:
    """A scan of files of a format."""
    read = scan(path, files=files, size=GIB)
    return read | {"metadata": read["metadata"] | {"Format": format_}}


WINDOW = node(
    "Window",
    node("Exchange", text="Exchange SinglePartition, ENSURE_REQUIREMENTS", records_read=9),
    text="Window [row_number() AS rank#1], [id#0L ASC NULLS FIRST]",
    spill_size=0,
)
LIMIT = node("GlobalLimit", node("Exchange", text="Exchange SinglePartition, ENSURE_REQUIREMENTS", records_read=9))
WHOLE = node("Window", node("Exchange", text="Exchange hashpartitioning(id#0L, 200)", records_read=9), spill_size=0)


@pytest.mark.parametrize(
    ("plan", "text"),
    [
        (text_of(path="/in/lines.json.gz"), "it reads 1 file of 1.0 GiB, which gz has packed"),
        (text_of(path="/in/lines.json"), ""),
        (text_of(path="/in/lines.json.gz", files=9), ""),
        (text_of(path="/in/part-1.snappy", format_="Parquet"), ""),
        (WINDOW, "a window without partitionBy brings all rows into one partition"),
        (LIMIT, "a limit brings all rows that are left into one partition"),
        (WHOLE, ""),
    ],
    ids=["gzip", "plain", "several files", "Parquet", "window", "limit", "window by a column"],
)
def test_the_plan_tells_other_causes(plan: Node, text: str) -> None:
    """Of a single task in a minute; where it tells none, settings are what is left."""
    finding = found(with_plan(stage([task(0, 40)], seconds=40, **SHUFFLED), plan))["too_few_tasks"]
    assert text in finding.text
    assert finding.text.endswith("could run at once") == (not text)
    assert ("spark.sql" in finding.advice) == (not text)


SHUFFLE = "Exchange hashpartitioning(shop#0L, 200), ENSURE_REQUIREMENTS, [plan_id=7]"
MERGED = node("FlatMapGroupsInPandas", node("Exchange", text=SHUFFLE, records_read=9), number_of_output_rows=9)


def behind_a_shuffle(size: int, *rdds: Line, plan: Node = MERGED, **properties: Any) -> str:
    """What is said and advised of the only task behind a shuffle of so many bytes, where adaptive execution merges."""
    info: dict[str, Any] = {"RDD Info": [*rdds, rdd(1, 1, "ShuffledRowRDD", scope="AQEShuffleRead")]}
    begin, *rest = with_plan(stage([task(0, 40, **shuffle(size))], seconds=40, **SHUFFLED, **info), plan)
    finding = found([begin, settings(**properties), *rest])["too_few_tasks"]
    return f"{finding.text} {finding.advice}"


def test_small_partitions_that_were_merged_are_made_anew_by_repartition() -> None:
    """A higher number of shuffle partitions is merged, too."""
    said = behind_a_shuffle(9000)
    assert "adaptive execution has merged the 200 partitions of the shuffle by shop, which have only 8.8 KiB" in said
    assert "Call repartition(16) behind the shuffle by shop" in said
    assert "spark.sql.shuffle.partitions" not in said


def test_much_in_one_partition_has_one_key() -> None:
    """Adaptive execution leaves a partition for each core, if there are several with data, and may."""
    assert "nearly all of 1.0 GiB have one value of shop, and so come into one partition of 200" in behind_a_shuffle(
        GIB
    )
    merging: dict[str, Any] = {"sql_adaptive_coalescePartitions_parallelismFirst": "false"}
    assert "one value" not in behind_a_shuffle(GIB, **merging)


def test_show_computes_one_partition_first() -> None:
    """Two more were not needed yet."""
    plan = node("CollectLimit", MERGED, text="CollectLimit 21")
    said = behind_a_shuffle(9000, rdd(2, 3), plan=plan)
    assert "an action that takes few rows, as show, take and first do, computes 1 of 3 partitions first" in said
