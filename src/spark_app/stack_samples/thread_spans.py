"""Which tasks the threads of an executor ran, by when these were idle: so stages that run at once are distinguished.

A thread that waits for its next task is parked by its pool, which the recording has. Between two such pauses it ran
one task, or several one right after the other. The event log has when each task was launched and when the driver knew
of its end, which is some milliseconds before and after: the tasks whose times fit a span best are its own. Where other
tasks of another stage fit nearly as well, nothing is said.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from spark_app.stack_samples.samples import Span
from spark_app.stack_samples.task_runs import StageKey, TaskRun

LATE_MS: Final = 100
"""How long a thread may begin after its task was launched, or the driver hear of its end. Project."""
MARGIN_MS: Final = 3
"""Tasks that fit by less than this worse fit as well: the log has whole milliseconds at both ends. Project."""
MAX_TASKS: Final = 100
"""In the time of one span, for which tasks that follow each other are tried."""
MAX_CHAINS: Final = 4
"""Of those that end with the same task, the best are kept."""


class Chain(NamedTuple):
    """Tasks that a thread may have run one after the other, and by how many milliseconds they do not fit its span."""

    apart: float
    tasks: tuple[TaskRun, ...]

    def stage_at(self, at: int) -> StageKey:
        """The stage of the task that ran at a moment, or began next."""
        return next((task for task in self.tasks if at <= task.finished), self.tasks[-1]).stage


def spans_of(spans: Sequence[Span], moments: Sequence[tuple[tuple[int, int], int]]) -> list[Span | None]:
    """The span of each sample, which is given by its process and thread, and its time."""
    by_thread = defaultdict[tuple[int, int], list[Span]](list)
    for span in sorted(spans, key=lambda span: span.began_ms):
        by_thread[span.process, span.thread].append(span)
    begins = {thread: [span.began_ms for span in each] for thread, each in by_thread.items()}
    found: list[Span | None] = []
    for thread, at in moments:
        number = bisect_right(begins.get(thread, []), float(at + 1)) - 1
        nearest = by_thread[thread][number] if number >= 0 else None
        found.append(nearest if nearest is not None and at <= (nearest.ended_ms or at) else None)
    return found


def matched(samples: Mapping[Span, Sequence[int]], tasks: Sequence[TaskRun]) -> dict[Span, Chain]:
    """The tasks of spans, as far as their times tell.

    Args:
        samples: The times of the samples in each span.
        tasks: All of the executor, by their launch.
    """
    launches = [task.launched for task in tasks]
    options = {span: sorted(_chains(span, tasks, launches), key=lambda each: each.apart) for span in samples}
    found, taken, is_new = dict[Span, Chain](), set[TaskRun](), True
    while is_new:
        is_new = False
        for span in sorted(options, key=lambda each: options[each][0].apart if options[each] else 0.0):
            left = [each for each in options[span] if taken.isdisjoint(each.tasks)]
            if left and _is_told(left, samples[span]) and not _is_disputed(left[0], span, options, samples):
                found[span], is_new = left[0], True
                taken.update(left[0].tasks)
                del options[span]
            elif left != options[span]:
                options[span], is_new = left, True
    return found


def _is_told(options: Sequence[Chain], times: Sequence[int]) -> bool:
    """Whether all that fit about as well as the best say the same of each sample."""
    best = options[0]
    near = [each for each in options[1:] if each.apart < best.apart + MARGIN_MS]
    return all(each.stage_at(at) == best.stage_at(at) for each in near for at in times)


def _is_disputed(
    chain: Chain, span: Span, options: Mapping[Span, Sequence[Chain]], samples: Mapping[Span, Sequence[int]]
) -> bool:
    """Whether tasks of a span fit another about as well, which without them had others, or none."""
    for other, chains in options.items():
        near = [each for each in chains if each.apart < chain.apart + MARGIN_MS]
        if other != span and near and not {*chain.tasks}.isdisjoint(near[0].tasks):
            without = [each for each in near if {*chain.tasks}.isdisjoint(each.tasks)]
            if not without or not _is_told([near[0], *without], samples[other]):
                return True
    return False


def _chains(span: Span, tasks: Sequence[TaskRun], launches: Sequence[int]) -> Iterator[Chain]:
    """The tasks that may be those of a span, with the best of the chains that end with each."""
    begin, end = bisect_left(launches, span.began_ms - LATE_MS), bisect_right(launches, span.ended_ms or 2**62)
    inside = [task for task in tasks[begin:end] if task.finished <= (span.ended_ms or 2**62) + LATE_MS]
    if len(inside) > MAX_TASKS:
        return
    ending = dict[TaskRun, list[Chain]]()
    for task in inside:
        chains = [Chain(abs(task.launched - span.began_ms), (task,))]
        for before in inside:
            apart = abs(task.launched - before.finished)
            if apart <= LATE_MS and before.launched < task.launched:
                chains += [Chain(each.apart + apart, (*each.tasks, task)) for each in ending[before]]
        ending[task] = sorted((each for each in chains if _is_near(each)), key=lambda each: each.apart)[:MAX_CHAINS]
        late = 0.0 if span.ended_ms is None else abs(task.finished - span.ended_ms)
        if late <= LATE_MS:
            yield from (Chain(each.apart + late, each.tasks) for each in ending[task])


def _is_near(chain: Chain) -> bool:
    return chain.apart <= LATE_MS * len(chain.tasks)
