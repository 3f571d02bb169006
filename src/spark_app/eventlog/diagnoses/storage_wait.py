"""Whether only the storage of files that tasks read or write explains their wait."""

import re
from dataclasses import dataclass
from typing import Final

from spark_app.eventlog.diagnoses.outside_wait import OutsideWait
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.model.operators import has_python
from spark_app.eventlog.model.plan_names import SCAN_TIME
from spark_app.eventlog.parse.events import counted

_FILES: Final = re.compile(r"FileScanRDD|HadoopRDD|DataSourceRDD|BinaryFileRDD")
"""RDDs that read files, among them those of tables in other formats."""
_KNOWN: Final = re.compile(
    rf"{_FILES.pattern}|^(?:MapPartitions\w*|ParallelCollection|Shuffled(?:Row)?|SQLExecution|ZippedPartitions\w*|"
    r"(?:PartitionerAware)?Union|Coalesced|WholeTextFile|Empty)RDD$",
)
"""RDDs that wait for files or for nothing but what Spark measures: others read databases, streams or states."""
_READERS: Final = "textFile|wholeTextFiles|binaryFiles|hadoopFile|hadoopRDD|newAPIHadoop\\w*|sequenceFile|objectFile"
_OF_FILES: Final = re.compile(rf'"name":"(?:{_READERS})"')
"""Operations that read files, in the scopes of the RDDs that they make; these have the path as their name."""
_OF_LIBRARY: Final = re.compile(rf'"name":"(?:{_READERS}|parallelize|range|coalesce|repartition|union|saveAs\w+)"')
"""Operations that make RDDs without a function of the program."""
_ACTIONS: Final = re.compile(r"foreach|runJob")
"""Actions that call a function of the program for rows."""
_FUNCTIONS: Final = re.compile(
    rb"UDF\(|\b(?:try_)?reflect\(|\bjava_method\(|\$\$Lambda|"
    rb'"nodeName":"(?:Map(?:Elements|Partitions|Groups)|FlatMap|CoGroup|AppendColumns|ScriptTransformation)',
)
"""What runs functions of the program in a plan as the log has it, beside Python."""


@dataclass(frozen=True, slots=True)
class Moved:
    """What the tasks of a stage moved between them and a storage that alone can explain their wait.

    Attributes:
        what: `read`, `wrote`, or both.
        bytes: How many; 0 where Spark did not count them.
        scan_ms: The most that they can have waited, where only columnar scans can have.
    """

    what: str
    bytes: int
    scan_ms: float | None

    def waited(self, ms: float) -> float:
        """The part of a wait that was for the storage."""
        return ms if self.scan_ms is None else min(ms, self.scan_ms)


def moved(view: StageView, wait: OutsideWait) -> Moved | None:
    """What a stage moved, if only the storage can explain its wait; None if something else can, or nothing was moved.

    A columnar scan says how long it took; without one, and for what is written, no function of the program may run, and
    no other source may be read.
    """
    totals, scan_ms = view.stage.totals, _scan_ms(view)
    reads = _reads_files(view) and bool(totals.input_bytes or scan_ms or view.stage.is_input_missed)
    writes = totals.output_bytes > 0
    if totals.disk_spilled or not (reads or writes):
        return None
    what = " and ".join([*(["read"] if reads else []), *(["wrote"] if writes else [])])
    moves = Moved(what, totals.input_bytes + totals.output_bytes, None if writes else scan_ms)
    if moves.scan_ms is None:
        return None if _reads_others(view) or _may_call_functions(view) else moves
    return moves if moves.scan_ms >= view.limits.external_wait_ratio * wait.run_ms else None


def _scan_ms(view: StageView) -> float | None:
    """How long the columnar scans of a stage took, summed over its tasks; None without any."""
    numbers, names = counted(view.stage.info.accumulables), view.stage.info.accumulables
    scans = [numbers[each.id] for each in names if each.name == SCAN_TIME and each.id in numbers]
    return float(sum(scans)) if scans else None


def _reads_files(view: StageView) -> bool:
    """Whether an RDD of a stage reads files."""
    scopes = (rdd.scope or "" for rdd in view.stage.info.rdds)
    return any(map(_FILES.search, _kinds(view))) or any(map(_OF_FILES.search, scopes))


def _kinds(view: StageView) -> list[str]:
    """The kinds of the RDDs of a stage: their names without paths; what a program has named itself is none."""
    words = (rdd.name.split()[-1:] for rdd in view.stage.info.rdds)
    return [word for own in words for word in own if word.endswith("RDD")]


def _reads_others(view: StageView) -> bool:
    """Whether tasks read something that is no file: a database, Kafka, a state, of which Spark counts no bytes."""
    kinds = _kinds(view)
    is_table = "DataSourceRDD" in kinds and not view.stage.totals.input_bytes
    return is_table or not all(_KNOWN.search(kind) for kind in kinds)


def _may_call_functions(view: StageView) -> bool:
    """Whether tasks may have called functions of the program, which may wait for anything, as far as the log tells."""
    info, query = view.stage.info, view.app.query_of(view.app.job_of(view.stage))
    if has_python(info):
        return True
    if query is not None:
        return _FUNCTIONS.search(query.plan) is not None
    return bool(_ACTIONS.match(info.name)) or not all(_OF_LIBRARY.search(rdd.scope or "") for rdd in info.rdds)
