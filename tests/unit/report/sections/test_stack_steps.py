"""Stages of one step are shown together."""

from spark_app.report.limits import Limits
from spark_app.report.scope import scope, stage_name
from spark_app.report.sections.stack_samples import stack_samples
from spark_app.report.sections.stack_steps import steps
from spark_app.stack_samples.stack_profile import profile
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read
from tests.unit.stack_samples.made import Taken, run


def names(reading: Read) -> list[str]:
    """The titles of the steps of two trainings of three jobs each, of a stage each."""
    about = scope(reading(made.training(fits=2, jobs=3, trace_id="a" * 32)).app, None)
    found = steps(about, {(each.info.id, each.info.attempt): stage_name(about, each) for each in about.stages})
    assert [len(places) for places in found.values()] == [3, 3]
    return [*found]


def test_jobs_of_a_training_are_a_step(reading: Read) -> None:
    """By what the program calls them."""
    assert names(reading) == [f"ml.refunds 2024-01-07: fit random_forest maxDepth={fit} on fold 1/3" for fit in (2, 3)]


def test_the_stages_of_one_query_are_no_step(reading: Read) -> None:
    """Its picture is that of the query."""
    about = scope(reading(made.large(stages=4, tasks=4, queries=1)).app, None)
    assert steps(about, {(each.info.id, each.info.attempt): stage_name(about, each) for each in about.stages}) == {}


def test_the_micro_batches_of_a_stream_are_a_step_whose_functions_are_added_up(reading: Read) -> None:
    """Each has too few samples of a function to be shown."""
    lines, taken = [log.started(), log.executor("1")], Taken()
    worker = taken.process("python_worker")
    for number in range(4):
        text = f"orders\nid = 0e046b4a-420e\nrunId = run-1\nbatch = {number}"
        properties = {"spark.job.description": text}
        lines += [
            log.job(number, [number], time=2000 + 500 * number, **properties),
            made.submitted(number, 2000 + 500 * number, 1, "start at job.py:3") | {"Properties": properties},
            made.submitted(number, 2000 + 500 * number, 1, "start at job.py:3", end=2400 + 500 * number),
        ]
        taken.add(2050 + 500 * number, "score@job.py:3!", process=worker, task=number, times=4)
    stacks = profile(taken.done(), [run(each, each, 2000 + 500 * each, 2400 + 500 * each) for each in range(4)])
    found = stack_samples(scope(reading([*lines, log.ended()]).app, None), stacks, Limits())
    assert found is not None
    assert found.functions == []
    (hot,) = found.functions_of_steps
    assert (hot.place, hot.function.name, hot.time.innermost.samples) == ("orders", "score", 16)
