"""Several scans of the same files (equal path, partitions, number and bytes), in several queries or in one."""

from spark_app.eventlog.diagnoses.query import query_name
from spark_app.eventlog.diagnoses.rule import MAX_FINDINGS, Limit, rule
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.repeated_reads import Reads
from spark_app.formatting import count, quantity, size
from spark_app.redaction import excerpt


@rule(limits={"repeated_scans": Limit(3, "Repeated scans: how often the same files were read, at least.", ge=2)})
def repeated_scan(app: Application, limits: Thresholds) -> list[Finding]:
    """Several scans of the same files (equal path, partitions, number and bytes), in several queries or in one.

    Reads of a cache and skipped stages do not count.

    Evidence: number of scans, files, bytes of the repeated scans, the first queries.
    Why: storage is slower than memory, and each scan pays for it.
    Change: `cache()` before the first scan, `unpersist()` after the last; or write the shared part as a smaller table.
    Threshold: {repeated_scans} (project).
    Cost: the time of all scans but one, divided by the mean number of running tasks. For formats without a scan time
        (text, CSV, JSON) it is between nine tenths of the run time of the tasks of the shortest scan, for each scan but
        one, and nine tenths of that of the tasks of all scans but the longest one: reading a cache takes time, too
        (project). The rule tracks 1000 sets of files and reports the 5 worst.
    """
    repeated = [reads for reads in app.repeated_reads.reads if reads.times >= limits.repeated_scans]
    most = sorted(repeated, key=lambda reads: reads.repeated_ms or 0, reverse=True)[:MAX_FINDINGS]
    return [_repeated(app, reads) for reads in most if reads.repeated_ms is not None]


def _repeated_bytes(reads: Reads) -> int:
    return (reads.times - 1) * reads.bytes


def _repeated(app: Application, reads: Reads) -> Finding:
    cost, low, high = (
        None if ms is None else app.usage.wall_of(ms)
        for ms in (reads.repeated_ms, reads.least_repeated_ms, reads.most_repeated_ms)
    )
    queries = ", ".join(query_name(app, query) for query in reads.queries)
    return Finding(
        "repeated_scan",
        "warning",
        f"{excerpt(reads.location)} is read {count(reads.times)} times, each time {size(reads.bytes)} in "
        f"{quantity(reads.files, 'file')}, first by {queries}",
        "Cache what they share: cache() or persist() the DataFrame before the first of them and unpersist() it "
        "after the last, or write it once as a smaller table.",
        {"times": reads.times, "files": reads.files, "read_again_bytes": _repeated_bytes(reads)},
        cost_ms=cost,
        query=reads.queries[0] if reads.queries else None,
        cause=reads.location,
    ).within((low, high))
