"""Jobs that die for lack of memory, and how often one change of `spark_app.annexes.tune.memory` is enough.

A part that was interrupted goes on: each job is a line in `memory_retries.jsonl` of the cache, by its command.
BENCH_JOBS, the numbers of jobs (`0 3 7`), makes it shorter for a try.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from spark_app.annexes.tune.runs import Runner
from spark_app.annexes.tune.tuning import Tuning
from spark_app.eventlog.diagnoses.thresholds import load_thresholds
from spark_app.settings import load_settings
from tests.bench.measure import CACHE, alone, once_each

FILE: Final = CACHE / "memory_retries.jsonl"
JOB: Final = Path(__file__).with_name("memory_job.py")
COMMON: Final = ("--conf", "spark.ui.enabled=false", "--conf", "spark.ui.showConsoleProgress=false")
LOCAL: Final = ("--master", "local[2]", "--driver-memory", "512m", "--conf", "spark.driver.maxResultSize=0")
CLUSTER: Final = (
    "--master", "local-cluster[1,1,6144]", "--driver-memory", "512m", "--conf", "spark.executor.memory=512m",
    "--conf", "spark.driver.maxResultSize=0",
)  # fmt: skip
PYTHON: Final = (*CLUSTER, "--conf", "spark.executor.pyspark.memory=1g")
LIMITED: Final = ("--master", "local[2]", "--driver-memory", "1g", "--conf", "spark.driver.maxResultSize=50m")
SMALL: Final = ("--master", "local[2]", "--driver-memory", "256m")


@dataclass(frozen=True)
class Job:
    """A job: what it does, with how many mebibytes, and how it is started."""

    kind: str
    mebibytes: int
    options: Sequence[str]

    @property
    def command(self) -> list[str]:
        """Its command."""
        return ["spark-submit", *self.options, *COMMON, str(JOB), self.kind, str(self.mebibytes)]


JOBS: Final = (
    *(Job("collect", size, LOCAL) for size in (160, 200, 240)),
    *(Job("broadcast", size, LOCAL) for size in (64, 80, 110, 150, 200)),
    *(Job("group", size, LOCAL) for size in (200, 240, 300)),
    *(Job("row", size, LOCAL) for size in (520, 640, 800)),
    *(Job("collect", size, CLUSTER) for size in (200, 240)),
    *(Job("broadcast", size, CLUSTER) for size in (80, 150)),
    *(Job("group", size, CLUSTER) for size in (360, 400, 440)),
    *(Job("row", size, CLUSTER) for size in (520, 640, 800)),
    *(Job("worker", size, PYTHON) for size in (1000, 1300)),
    *(Job("collect", size, LIMITED) for size in (60, 90, 150)),
    Job("row", 1, SMALL),
)
"""Each was seen to die; on `local[2]` row 448 is not too much, and for an executor group 320 is not."""


def memory_retries(scratch: Path) -> list[str]:
    """How many jobs died, and succeeded after so many changes."""
    return _lines(once_each(FILE, [job.command for job in JOBS], lambda number: _tried(number, scratch)))


def _tried(number: int, scratch: Path) -> dict[str, Any]:
    job = JOBS[number]
    settings = load_settings(None)
    tuning = Tuning(Runner(alone(job.command), scratch / str(number)), load_thresholds(None), settings.prices, print)
    last = tuning.begin(is_rerunnable=True)
    found = {
        "number": number,
        "kind": job.kind,
        "mebibytes": job.mebibytes,
        "code": last.code,
        "steps": [{"side": each.side, **each.settings} for each in tuning.steps],
        "end": last.printed[-2000:] if last.code else "",
    }
    print(json.dumps(found), flush=True)
    return found


def _lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    died = [each for each in found if each["steps"] or each["code"]]
    once = [each for each in died if each["code"] == 0 and len(each["steps"]) == 1]
    later = [each for each in died if each["code"] == 0 and len(each["steps"]) > 1]
    sides = sorted({str(each["steps"][0]["side"]) for each in died if each["steps"]})
    rows = []
    for side in sides:
        own = [each for each in died if each["steps"] and each["steps"][0]["side"] == side]
        rows.append(
            f"| {side} | {len(own)} | {sum(each in once for each in own)} | {sum(each in later for each in own)} |"
        )
    return [
        (
            f"{len(died)} of {len(found)} jobs died for lack of memory; {len(once)} succeeded with the first change, "
            f"{len(later)} with a later one."
        ),
        "",
        "| lacked by | jobs | with the first change | with a later one |",
        "|---|---|---|---|",
        *rows,
        "",
        (
            "Memory that is doubled is at most twice what the job needed, since it died with half; other steps follow "
            "what Spark says that it needs, or how much it had collected for a broadcast. A job "
            "that does not die is run once, as it is: nothing makes it slower."
        ),
    ]
