from dataclasses import replace

from spark_app.eventlog.findings import Finding
from spark_app.stack_samples.hot_lines import named
from spark_app.stack_samples.stack_profile import StackProfile, profile
from tests.unit.eventlog import log
from tests.unit.stack_samples.made import TASK, Taken, run

FINDING = Finding("row_python_udf", "warning", "Query 1: calls score for each row", "Replace it.", query=1)
APP = log.application(
    [
        log.started(),
        log.query(1),
        log.job(1, [3], **{"spark.sql.execution.id": "1"}),
        log.stage(3),
        log.task(1, 3),
        log.stage(3, end=2900),
    ]
)


def profiled(udf: int) -> StackProfile:
    """Samples of stage 3: of a UDF, and of the JVM."""
    taken = Taken()
    taken.process()
    taken.process("python_worker")
    taken.add(2210, TASK, "a.Sort.next", times=60)
    taken.add(2210, "main@worker.py:9", "score@job.py:3!", process=1, task=1, times=udf)
    return profile(taken.done(), [run(1, 3, 2200, 2900)])


def test_a_python_udf_names_its_hottest_line() -> None:
    """With its share of the stages of the query, and how exact that is."""
    [found] = named([FINDING], profiled(40), APP)
    expected = "its hottest line is of score (job.py:3), with 40 % (29 to 54 %) of 100 samples"
    assert found == replace(FINDING, text=f"{FINDING.text}; {expected}")


def test_garbage_collection_names_a_function_where_no_line_of_the_program_ran() -> None:
    """The one that most stacks end with."""
    finding = replace(FINDING, rule="gc_pressure", query=None, stage=(3, 0))
    [found] = named([finding], profiled(0), APP)
    assert found.text.endswith("; its hottest function is a.Sort.next, with 100 % (76 to 100 %) of 60 samples")
    [found] = named([finding], profiled(40), APP)
    assert "score (job.py:3)" in found.text


def test_a_function_that_waits_is_not_the_hottest() -> None:
    """It takes time, but makes no garbage."""
    taken = Taken()
    taken.process()
    taken.add(2210, TASK, "a.Sort.next", times=20)
    taken.add(2210, TASK, "a.Queue.take", state="waiting", times=60)
    finding = replace(FINDING, rule="gc_pressure", query=None, stage=(3, 0))
    [found] = named([finding], profile(taken.done(), [run(1, 3, 2200, 2900)]), APP)
    assert "its hottest function is a.Sort.next, with 25 %" in found.text


PLAN = "org.apache.spark.sql.catalyst.rules.RuleExecutor.execute"


def test_a_gap_of_the_driver_names_what_spark_planned_and_for_which_line() -> None:
    """And between queries, the hottest line of the program in the driver."""
    taken = Taken()
    taken.process("driver", "driver")
    taken.process("python_driver", None)
    taken.add(2000, PLAN, times=30)
    taken.add(2000, "java.io.ObjectInputStream.readObject", times=10)
    for at in range(2000, 2040, 10):
        taken.add(at, "main@job.py:4!", "call@py4j/clientserver.py:9", process=1, state="waiting")
    taken.add(5000, "main@job.py:8!", process=1, times=60)
    stacks = profile(taken.done(), [])
    gap = Finding("driver_gap", "info", "No task ran for 9 s", "Avoid loops.", cause="between")
    planning = f"planning has 30 % (20 to 43 %) of 100 samples of the driver, most in {PLAN}, called by main (job.py:4)"
    line = "in the driver the hottest line is of main (job.py:8), with 60 % (46 to 77 %) of 100 samples"
    assert named([gap], stacks, APP) == [replace(gap, text=f"{gap.text}; {line}; {planning}")]
    within = replace(gap, cause="planning")
    assert named([within], stacks, APP) == [replace(within, text=f"{gap.text}; {planning}")]
    planned = replace(gap, rule="slow_planning", cause="")
    assert named([planned], stacks, APP) == [replace(planned, text=f"{gap.text}; {planning}")]
    last = replace(gap, cause="ending")
    assert named([last], stacks, APP) == [last]


def test_spark_work_in_tasks_is_named_by_the_stage() -> None:
    """The work of the finding with the most samples: that of a spill is none of tiny tasks."""
    taken = Taken()
    taken.process()
    taken.add(2210, TASK, "java.io.ObjectInputStream.readObject", times=20)
    taken.add(2310, TASK, "net.jpountz.lz4.LZ4JNI.LZ4_compress", times=30)
    stacks = profile(taken.done(), [run(1, 3, 2200, 2900)])
    finding = replace(FINDING, rule="tiny_tasks", query=None, stage=(3, 0))
    [tiny, spilled] = named([finding, replace(finding, rule="spill")], stacks, APP)
    assert "; deserialization has 40 % (24 to 62 %) of 50 samples" in tiny.text
    assert "; compression has 60 % (40 to 86 %) of 50 samples, most in net.jpountz" in spilled.text


def test_other_findings_and_too_few_samples_add_nothing() -> None:
    """Nor do findings without samples of their stage."""
    findings = [FINDING, replace(FINDING, rule="partition_skew"), replace(FINDING, query=7)]
    assert named(findings, profiled(4), APP) == findings
    assert named(findings, None, APP) == findings
    assert named(findings[1:], profiled(40), APP) == findings[1:]
