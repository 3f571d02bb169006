from typing import Any

import pytest

from spark_app.eventlog.findings import Finding
from tests.unit.eventlog.diagnoses.plans import GIB, MIB, Node, application, found, node, ran
from tests.unit.eventlog.log import Line

RULE = "sort_merge_join_could_broadcast"
TASK_MS = 90
"""The run time of the only task of the stage of each query."""
CORES = 4


def side(rows: int, size: int, *, above: str = "Exchange", **times: Any) -> Node:
    """Filtered rows that are shuffled and sorted."""
    filtered = node("Filter", node("LocalTableScan"), number_of_output_rows=rows)
    shuffle = node("Exchange", filtered, data_size=size, shuffle_records_written=rows, **times)
    return node("Sort", shuffle if above == "Exchange" else node(above, shuffle), sort_time=0)


def join(large: Node, rows: int = 10**6) -> Node:
    """A join of many rows with none, which keeps them."""
    text = "SortMergeJoin [id#1L], [id#2L], Inner"
    return node("SortMergeJoin", large, side(0, 0), text=text, number_of_output_rows=rows)


def only(lines: list[Line]) -> Finding:
    """The only finding about a join, whatever it costs."""
    (finding,) = found(application(lines), RULE, cost_ms=0, cost_ratio=0)
    return finding


def test_shuffles_take_their_share_of_the_rows_that_passed_all_operators() -> None:
    """Filter, shuffle, sort and join took a million rows each, so that two of four steps would be saved."""
    assert only(ran(1, join(side(10**6, GIB)))).cost_ms == TASK_MS * 2 / 4 / CORES


def test_what_other_operators_do_with_few_rows_is_not_taken_for_shuffles() -> None:
    """A thousand rows of 11 MiB in all take no more than 36 ms of a processor, however long their tasks ran."""
    cost = only(ran(1, join(side(1000, 11 * MIB), rows=1000))).cost_ms
    assert cost == (1000 * 1000 + 11 * MIB * 3) / 1e6 / CORES


def test_the_most_that_rows_can_take_grows_while_tasks_wait_for_a_processor() -> None:
    """Tasks that had it for 75 ms of 90 took a fifth longer."""
    lines = ran(1, join(side(1000, 11 * MIB), rows=1000))
    (metrics,) = (line["Task Metrics"] for line in lines if "Task Metrics" in line)
    metrics["Executor CPU Time"] = 75 * 10**6
    assert only(lines).cost_ms == pytest.approx(1.2 * (1000 * 1000 + 11 * MIB * 3) / 1e6 / CORES)


def test_what_spark_measures_is_the_least() -> None:
    """Eight seconds of writing to disks."""
    assert only(ran(1, join(side(10**6, GIB, shuffle_write_time=8000)))).cost_ms == 8000 / CORES


def test_a_shuffle_that_is_reused_is_needed_anyway() -> None:
    """Only its sort is saved: one of four steps."""
    reused = only(ran(1, join(side(10**6, GIB, above="ReusedExchange", shuffle_write_time=8000)))).cost_ms
    assert reused == TASK_MS / 4 / CORES
