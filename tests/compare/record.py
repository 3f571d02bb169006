"""Records the runs that comparisons are tested with: `python -m tests.compare.record [NAME]...`, on a calm machine.

What is kept of a log is what is read of it, without the names of the machine. Says what explains each run first.
"""

import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import zstandard

from spark_app.eventlog import reader
from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.comparison.compare import compare
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.eventlog.parse import events
from tests.compare.cases import EQUAL, IN_ONE_PROCESS, OTHER_JOIN, PLANTED, RUNS, SAME_JOIN, Run
from tests.compare.runs import make_tables, run
from tests.eventlogs.record import scrubber

HERE: Final = Path(__file__).parent / "recorded"
PROJECT: Final = Path(__file__).parents[2]


def main(names: Sequence[str]) -> None:
    """Records some runs, or all, after one that does not count: by then the files of Spark are in memory."""
    HERE.mkdir(exist_ok=True)
    wanted = [(run,) for run in RUNS if run.name in names or not names]
    processes = [*wanted, *([IN_ONE_PROCESS] if OTHER_JOIN.name in names or not names else [])]
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        scrub = scrubber({scratch: "/work", str(PROJECT): "/project", sys.base_prefix: "/python"})
        make_tables(folder)
        run(folder, Run("first"))
        for runs in processes:
            for log, one in zip(run(folder, *runs), runs, strict=True):
                if one.is_kept:
                    keep(log, one, scrub)
    tell()


def keep(log: Path, of: Run, scrub: Callable[[bytes], bytes]) -> None:
    """Keeps what is read of a log."""
    lines = [pruned(line) for line in log.read_bytes().splitlines() if events.event(line) is not None]
    packed = zstandard.ZstdCompressor(level=19).compress(scrub(b"".join(lines)))
    (HERE / f"{of.name}.zst").write_bytes(packed)


def pruned(line: bytes) -> bytes:
    """A line without what nobody reads: the numbers of tasks, and those of stages that Spark counts for itself."""
    event = json.loads(line)
    event.get("Task Info", {}).pop("Accumulables", None)
    if "Stage Info" in event:
        numbers = event["Stage Info"].get("Accumulables", [])
        event["Stage Info"]["Accumulables"] = [each for each in numbers if not each["Name"].startswith("internal.")]
    return json.dumps(event, separators=(",", ":")).encode() + b"\n"


def is_recorded(run: Run) -> bool:
    """Whether a log of a run was kept: a window of calm may be too short for all."""
    return (HERE / f"{run.name}.zst").is_file()


def recorded(run: Run) -> RunProfile:
    """The record of a run whose log was kept."""
    return profiling.run_profile(reader.read(HERE / f"{run.name}.zst"))


def tell() -> None:
    """Says what is ranked first of each."""
    for planted in filter(lambda planted: is_recorded(planted.run), PLANTED):
        compared = compare([recorded(one) for one in planted.before], recorded(planted.run))
        causes = ", ".join(f"{cause.kind} {cause.ms / 1000:+.1f} s" for cause in compared.causes)
        sys.stdout.write(f"{planted.run.name} ({compared.difference_ms / 1000:+.1f} s): {causes}\n")
    durations = ", ".join(f"{recorded(one).duration_ms / 1000:.1f} s" for one in EQUAL if is_recorded(one))
    sys.stdout.write(f"equal: {durations}\n")
    if is_recorded(OTHER_JOIN):
        compared = compare(recorded(SAME_JOIN), recorded(OTHER_JOIN))
        sys.stdout.write(
            f"{OTHER_JOIN.name} ({compared.difference_ms / 1000:+.1f} s): significant: {compared.is_significant}\n"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
