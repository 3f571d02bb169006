from collections.abc import Sequence

from spark_app.stack_samples.samples import Span
from spark_app.stack_samples.task_runs import StageKey, TaskRun
from spark_app.stack_samples.thread_spans import matched, spans_of
from tests.unit.stack_samples.made import run


def stages(samples: dict[Span, Sequence[int]], *tasks: TaskRun) -> dict[Span, list[StageKey]]:
    """The stages of the samples of spans."""
    found = matched(samples, sorted(tasks, key=lambda task: task.launched))
    return {span: [chain.stage_at(at) for at in samples[span]] for span, chain in found.items()}


def test_a_span_has_the_task_whose_times_fit_best() -> None:
    """Two threads that are busy at the same time with tasks of two stages."""
    one, other = Span(0, 1, 1002.0, 1196.5), Span(0, 2, 1031.4, 1236.0)
    tasks = run(1, 3, 1000, 1200), run(2, 4, 1030, 1240)
    assert stages({one: [1100], other: [1100]}, *tasks) == {one: [(3, 0)], other: [(4, 0)]}


def test_where_tasks_of_two_stages_fit_as_well_nothing_is_said() -> None:
    """Nor where one task fits two threads; of one stage, it does not matter which it was."""
    one, other = Span(0, 1, 1002.0, 1196.5), Span(0, 2, 1001.0, 1197.0)
    tasks = run(1, 3, 1000, 1200), run(2, 4, 1000, 1200)
    assert stages({one: [1100], other: [1100]}, *tasks) == {}
    assert stages({one: [1100], other: [1100]}, tasks[0], run(2, 3, 1000, 1200)) == {one: [(3, 0)], other: [(3, 0)]}
    longer = Span(0, 2, 1001.0, 1290.0)
    after = run(3, 4, 1200, 1293)
    assert stages({one: [1100], longer: [1100, 1250]}, *tasks[:1], after) == {}


def test_tasks_without_a_pause_between_them_are_one_span() -> None:
    """Each sample is of the task that ran then."""
    span = Span(0, 1, 1002.0, 1490.0)
    tasks = run(1, 3, 1000, 1200), run(2, 4, 1201, 1494), run(3, 5, 1100, 1300)
    assert stages({span: [1100, 1250]}, *tasks) == {span: [(3, 0), (4, 0)]}


def test_a_thread_that_still_runs_is_told_by_its_begin() -> None:
    """Its last task may have no end in the log."""
    assert stages({Span(0, 1, 1002.0, None): [1100]}, run(1, 3, 1000, 2**62)) == {Span(0, 1, 1002.0, None): [(3, 0)]}


def test_tasks_that_are_far_from_a_span_are_not_its_own() -> None:
    """A task that the log does not have may have run."""
    assert stages({Span(0, 1, 1002.0, 1196.5): [1100]}, run(1, 3, 800, 1200), run(2, 4, 1000, 1400)) == {}


def test_samples_are_of_the_span_of_their_thread() -> None:
    """None are between two, or of another thread or process."""
    first, second = Span(0, 1, 1000.5, 1100.0), Span(0, 1, 1200.0, None)
    moments = [((0, 1), 1000), ((0, 1), 1150), ((0, 1), 5000), ((0, 2), 1050), ((1, 1), 1050), ((0, 1), 900)]
    assert spans_of([second, first], moments) == [first, None, second, None, None, None]
