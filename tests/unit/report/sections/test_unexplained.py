"""What took most of the time and no finding explains: it is named, with what a row costs."""

from dataclasses import replace

import pytest

from spark_app.eventlog.document import StageKey
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.report.scope import scope
from spark_app.report.sections.unexplained import Unexplained, unexplained
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses import plans

FINDING = Finding("spill", "warning", "It spills.", "Spill less.", {}, 7000.0, stage=(0, 0))


def application(*ends: int, total: int = 10_000, rows: int = 1000) -> Application:
    """Stages of one task and one place that follow each other; from 1 s on, in an application that lasts as long."""
    lines, begin = [log.started(0), log.executor(cores=1, time=0)], 1000
    for number, end in enumerate(ends):
        started, over = log.stage(number), log.stage(number, end=end)
        for each in (started, over):
            each["Stage Info"]["Submission Time"] = begin
        task = log.task(number, number)
        task["Task Info"] |= {"Launch Time": begin, "Finish Time": end}
        task["Task Metrics"] |= {"Input Metrics": {"Bytes Read": 1, "Records Read": rows}}
        lines += [log.job(number, [number], time=begin), started, task, over, log.job_ended(number, time=end)]
        begin = end
    return log.application([*lines, log.ended(total)])


def found(app: Application, *findings: Finding) -> list[Unexplained]:
    """The work of the whole application that is named."""
    return unexplained(scope(app, None), findings, None)


def test_the_work_with_most_of_the_time_is_named() -> None:
    """With its place, its share, its rows, and what each of them costs."""
    (work,) = found(application(9000))
    assert str(work) == "save at job.py:7 [result]: 80 % of the time (8.0 s), 1,000 rows, 8,000 µs of a task each"
    assert (work.stage, work.stages, work.wall_ms, work.claimed_ms) == (StageKey(0, 0), 1, 8000, 0)


def test_stages_of_one_place_are_one_work() -> None:
    """As in a loop, whose passes are short each."""
    (work,) = found(application(2000, 3500, 5000, 6000, 7000))
    assert (work.stages, work.wall_ms, work.rows) == (5, 6000, 5000)
    assert work.stage == StageKey(1, 0)


def test_what_findings_claim_is_explained() -> None:
    """A finding about the host, or about another place, claims nothing; what is left of the time is named."""
    app = application(9000)
    assert found(app, FINDING) == []
    assert found(app, replace(FINDING, cost_ms=5000.0))[0].claimed_ms == 5000
    for other in (replace(FINDING, subject="host"), replace(FINDING, stage=(7, 0)), replace(FINDING, cost_ms=None)):
        assert found(app, other)[0].claimed_ms == 0


def test_work_of_less_than_a_fifth_of_the_time_is_not_named() -> None:
    """Nor is an application without stages."""
    assert found(application(2500)) == []
    assert found(application()) == []


def test_the_python_functions_of_its_plan_are_named() -> None:
    """Also those of whole batches, about which no rule says anything: one may load a model in each call."""
    text = "ArrowEvalPython [predict(id#0L)#1], [pythonUDF0#2], 200"
    plan = plans.node("ArrowEvalPython", text=text, number_of_output_rows=9, time_to_execute_Python_code=50_000)
    lines = plans.ran(0, plan)
    for line in lines:
        if line["Event"] == "SparkListenerTaskEnd":
            line["Task Info"] |= {"Launch Time": 10_000, "Finish Time": 70_000}
    (work,) = found(plans.application(lines))
    assert (work.python, work.python_ms) == (["predict"], 50_000)
    assert str(work).endswith(", calls predict in Python for 50.0 s of tasks")


def of_driver(begin: int, end: int) -> Application:
    """A job without tasks in a program of Python, from and to seconds after its start."""
    lines = [log.started(1000), log.executor(cores=1, time=1000), log.job(0, [], time=1000 + 1000 * begin)]
    app = log.application([*lines, log.job_ended(0, time=1001 + 1000 * begin), log.ended(1001 + 1000 * end)])
    app.program, app.process_exit_code = "job.py", 0
    return app


def test_the_driver_is_an_owner_of_time() -> None:
    """Of a program that nobody types into; what findings claim is theirs."""
    app = of_driver(1, 60)
    (driver,) = found(app)
    assert str(driver) == "the driver, after the last query or job: 98 % of the time (59.0 s)"
    gap = replace(FINDING, rule="driver_gap", cost_ms=50_000.0, stage=None)
    assert found(app, replace(gap, cause="ending")) == []
    assert found(app, replace(gap, cause="startup")) == [driver]
    assert found(app, replace(gap, rule="collect_to_driver")) == []
    assert found(app, replace(gap, rule="slow_planning")) == [driver]
    app.can_type = True
    assert found(app) == []


@pytest.mark.parametrize(("begin", "is_named"), [(9, False), (11, True)])
def test_a_long_start_is_named(begin: int, *, is_named: bool) -> None:
    """Spark itself takes some seconds, more on a busy host."""
    named = f"the driver, before the first query or job: 100 % of the time ({begin}.0 s)"
    assert [str(each) for each in found(of_driver(begin, begin))] == ([named] if is_named else [])
