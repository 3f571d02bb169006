"""Tasks that waited most of their run time for the storage of the files that they read or write."""

from typing import Final

from spark_app.eventlog.diagnoses import limits, outside_wait
from spark_app.eventlog.diagnoses.rule import rule
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.diagnoses.storage_wait import moved
from spark_app.eventlog.findings import Finding
from spark_app.formatting import duration, quantity, size

_ADVICE: Final = (
    "Bring the files closer or onto faster storage (the same zone, a disk or a bucket with more throughput, a cache). "
    "Ask for fewer bytes (Parquet or ORC with the columns and rows that are needed, persist what is read again) in "
    "fewer and larger requests (files of 128 MiB and more). Or run more tasks at once: a task that waits needs no "
    "processor."
)


@rule(
    subject="host",
    limits={
        "external_wait_ratio": limits.EXTERNAL_WAIT_RATIO,
        "disk_bytes_per_second": limits.DISK_BYTES_PER_SECOND,
        "cpu_unmeasured_ratio": limits.CPU_UNMEASURED_RATIO,
    },
)
def slow_storage(view: StageView) -> Finding | None:
    """Tasks that waited most of their run time for the storage of the files that they read or write.

    Evidence: the bytes, how many MiB a task moved in a second, the wait and the run time.
    Why: each task holds a core while it waits for a disk, a file server or an object store.
    Change: closer or faster storage; fewer bytes (columnar formats, `persist` of what is read again); fewer and larger
        requests (files of 128 MiB and more); or more tasks at once, since a task that waits needs no processor.
    Threshold: at least {external_wait_ratio} of the run time (project), beyond what a disk takes at
        `disk_bytes_per_second` (the baseline of an AWS gp3 volume). The wait is that of `external_wait`, and this
        rule takes its place where only the storage explains it: the stage reads or writes files and spills nothing, and
        its columnar scans took at least that part of the run time, or it has no such scan, reads nothing but files and
        shuffles, and calls no function of the program, as far as the log tells: no Python, no UDF without a name, no
        `map` of a Dataset or an RDD, no `foreach`. The log tells a Scala UDF with a name neither from a function of
        Spark, nor a slow disk from a slow network or from a storage that many programs share. A consequence of
        `small_files_read` where the same queries read many small files: they wait for requests.
    Cost: the wait that is left if the host delayed tasks by the slowdown of `cpu_starvation`, divided by the mean
        number of running tasks. At least it is what is left after the wait for a processor that `external_wait`
        subtracts; at most all of it.
    """
    wait = outside_wait.outside_wait(view)
    moves = None if wait is None else moved(view, wait)
    if wait is None or moves is None:
        return None
    least, usual, most = map(moves.waited, (wait.least_ms, wait.usual_ms, wait.most_ms))
    tasks, rate = view.stage.completed, moves.bytes * 1000 / wait.run_ms
    what = f"{size(moves.bytes)}, {size(rate)} a second each," if moves.bytes else "files"
    return view.finding(
        "slow_storage",
        f"its {quantity(tasks, 'task')} {moves.what} {what} and waited about {duration(usual)} of "
        f"{duration(wait.run_ms)} of run time for their storage",
        advice=_ADVICE,
        numbers={"waited_task_ms": usual, "run_task_ms": wait.run_ms, "cpu_task_ms": wait.worked_ms}
        | {"moved_bytes": moves.bytes, "task_bytes_per_second": rate, "tasks": tasks},
        cost_ms=view.wall_of(usual),
    ).within((view.wall_of(least), view.wall_of(most)))
