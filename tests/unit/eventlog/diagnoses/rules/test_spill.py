from typing import Any

import pytest

from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import EVERY_COST, GIB, found, settings, spilled, stage, task

MIB = 1024**2


def test_spill_costs_writing_and_reading_it() -> None:
    """2 GiB at 125 MiB/s, twice, from one host, where the log has no CPU time."""
    finding = found(stage([task(0, 60, **spilled(2 * GIB)), task(1, 60)], seconds=60))["spill"]
    assert finding.cost_ms == pytest.approx(2 * 2048 / 125 * 1000)
    assert "1 of 2 tasks spilled 2.0 GiB to disk (4.0 GiB in memory)" in finding.text


def test_spill_without_a_wait_costs_a_processor_only() -> None:
    """2 GB that the page cache holds: 2.5 ns for a byte, and 2 to 5."""
    busy = {"Executor CPU Time": 60 * 10**9}
    finding = found(stage([task(0, 60, **spilled(2 * 10**9), **busy)], seconds=60), EVERY_COST)["spill"]
    assert (finding.cost_low_ms, finding.cost_ms, finding.cost_high_ms) == (4000, 5000, 10_000)


END = log.ended(110_000)
"""So late that no other finding claims the same seconds."""


def test_spill_waits_no_longer_than_the_disk_takes_and_the_tasks_waited() -> None:
    """Of 40 s of waiting 32.8 s may be for 2 GiB; all of it is the most. Of 10 s, all are."""
    long, short = (
        found([*stage([task(0, 60, **spilled(2 * GIB), **{"Executor CPU Time": cpu * 10**9})], seconds=60), END])[
            "spill"
        ]
        for cpu in (20, 50)
    )
    assert long.cost_ms == pytest.approx(2.5e-6 * 2 * GIB + 2 * 2048 / 125 * 1000)
    assert long.cost_high_ms == pytest.approx(5e-6 * 2 * GIB + 40_000)
    assert short.cost_ms == pytest.approx(2.5e-6 * 2 * GIB + 10_000)


def test_spill_costs_less_on_more_hosts() -> None:
    """Each host has a disk of its own; executors of one host share it."""
    lines = stage([task(0, 60, **spilled(2 * GIB))], seconds=60)
    more = [log.executor("1", host="h"), log.executor("2", host="other")]
    assert found([*lines[:2], *more, *lines[2:], END])["spill"].cost_ms == pytest.approx(2048 / 125 * 1000)


def test_spill_costs_no_more_than_the_stage_took() -> None:
    """Disks may be faster than the threshold says."""
    assert found(stage([task(0, 6, **spilled(2 * GIB))], seconds=6))["spill"].cost_ms == 6000


def test_spill_is_judged_by_its_share_of_the_application() -> None:
    """312 MiB take 5 s, which is a lot in a minute and little in ten."""
    lines = stage([task(0, 20, **spilled(313 * MIB)), task(1, 20)], seconds=20)
    assert "spill" in found([*lines, log.ended(60_000)])
    assert "spill" not in found([*lines, log.ended(600_000)])
    assert "spill" not in found(stage([task(0, 20, **spilled(312 * MIB)), task(1, 20)], seconds=20))


def test_a_low_memory_fraction_is_named() -> None:
    """It is the answer, and the heap is not."""
    begin, *rest = stage([task(0, 60, **spilled(2 * GIB)), task(1, 60)], seconds=60)
    advice = found([begin, settings(memory_fraction="0.05", executor_memory="2g"), *rest])["spill"].advice
    assert advice.startswith("spark.memory.fraction is 0.05: remove the setting (default 0.6)")
    assert "a higher spark.executor.memory (now 2g)" in advice
    assert "memory.fraction" not in found([begin, settings(memory_fraction="0.8"), *rest])["spill"].advice


@pytest.mark.parametrize(("seconds", "gc_ms"), [(60, 5999), (40, 4000)], ids=["a small share", "a short time"])
def test_some_garbage_collection_is_normal(seconds: int, gc_ms: int) -> None:
    """Below a tenth, or below five seconds in all."""
    assert not found(stage([task(number, seconds, **{"JVM GC Time": gc_ms}) for number in range(4)], seconds=seconds))


def test_tasks_that_were_lost_with_their_executor_have_not_failed() -> None:
    """They are a part of another rule."""
    assert not found(stage([task(0, 20, loss="gone"), task(1, 19)], seconds=20, cores=2))


@pytest.mark.parametrize(
    ("master", "named"),
    [
        ("yarn", "spark.executor.memory (default 1g), or fewer spark.executor.cores"),
        ("local[2]", "spark.driver.memory (default 1g), or fewer"),
    ],
)
@pytest.mark.parametrize("rule", ["spill", "gc_pressure"])
def test_the_memory_to_raise_is_that_of_whatever_runs_the_tasks(rule: str, master: str, named: str) -> None:
    """On one machine there are no executors: their memory would be raised in vain."""
    lines = stage([task(0, 60, **spilled(2 * GIB), **{"JVM GC Time": 30_000})], seconds=60)
    assert named in found([*lines[:1], settings(master=master), *lines[1:]])[rule].advice


def test_stages_are_named_by_what_a_person_may_know() -> None:
    """The description and the line of the program; else the action."""
    info: dict[str, Any] = {"Stage Name": "save at NativeMethodAccessorImpl.java:0"}
    lines = stage([task(0, 40)], seconds=40, **info)
    assert "(save)" in found(lines)["too_few_tasks"].text
    submitted = next(line for line in lines if line["Event"] == "SparkListenerStageSubmitted")
    submitted["Properties"] = {"callSite.short": "save at job.py:9"}
    assert "(save at job.py:9)" in found(lines)["too_few_tasks"].text
    submitted["Properties"] |= {"spark.job.description": "$anonfun$run$1 at DeltaLogging.scala:128"}
    assert "(save at job.py:9)" in found(lines)["too_few_tasks"].text
    submitted["Properties"] |= {"spark.job.description": "yesterday's sales"}
    assert "(yesterday's sales, save at job.py:9)" in found(lines)["too_few_tasks"].text


def test_a_finding_in_a_stage_of_a_query_names_the_query() -> None:
    """So that it can be shown with it."""
    lines = stage([task(0, 40)], seconds=40)
    job = {**lines[2], "Properties": {"spark.sql.execution.id": "4"}}
    assert found([*lines[:2], log.query(4), job, *lines[3:]])["too_few_tasks"].query == 4
    assert found(lines)["too_few_tasks"].query is None
