"""Jobs that have memory enough: how much longer they take with the memory that `tune --from-history` proposes.

Each runs three times as it is; where these runs propose other memory, it then runs with and without that in turn.
A part that was interrupted goes on: each job is a line in `healthy_jobs.jsonl` of the cache, by its command.
BENCH_JOBS, the numbers of jobs (`0 3 7`), makes it shorter for a try.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, Final

from spark_app.annexes.tune import history
from spark_app.annexes.tune.runs import Runner
from spark_app.eventlog.model.memory_settings import DRIVER_MEMORY, EXECUTOR_MEMORY
from tests.bench.measure import CACHE, alone, in_turn, once_each, ratio
from tests.bench.memory_retries import COMMON, Job
from truth.programs.tpch import QUERIES

FILE: Final = CACHE / "healthy_jobs.jsonl"
TPCH: Final = Path(__file__).with_name("tpch_job.py")
CUSTOMERS: Final = "50000"
GOAL: Final = 1.05
LOCAL: Final = ("--master", "local[2]", "--driver-memory", "4g")
CLUSTER: Final = ("--master", "local-cluster[1,2,6144]", "--executor-memory", "4g", "--driver-memory", "1g")
SIZES: Final = {"collect": (40, 80, 120), "broadcast": (40, 80), "group": (60, 120), "row": (100, 200)}
"""Of kinds of jobs, in MiB."""
JOBS: Final[Sequence[Sequence[str]]] = (
    *(("spark-submit", *LOCAL, *COMMON, str(TPCH), CUSTOMERS, name) for name in QUERIES),
    *(("spark-submit", *CLUSTER, *COMMON, str(TPCH), CUSTOMERS, name) for name in QUERIES),
    *(Job(kind, size, options).command for options in (LOCAL, CLUSTER) for kind in SIZES for size in SIZES[kind]),
)


def healthy_jobs(scratch: Path) -> list[str]:
    """How many jobs get another memory, and how much longer they take with it."""
    return _lines(once_each(FILE, JOBS, lambda number: _tried(JOBS[number], scratch / str(number))))


def _tried(command: Sequence[str], folder: Path) -> dict[str, Any]:
    """The memory that the runs of a job propose, and how long runs took with and without it, in seconds."""
    runner = Runner(alone(command), folder)

    def seconds(settings: Mapping[str, str]) -> float:
        return (runner.run(settings).profile.duration_ms or 0) / 1000

    profiles = [runner.run({}).profile for _ in range(history.MIN_RUNS)]
    found = {each.setting: each.value for each in history.proposals(profiles)}
    memory = {name: value for name, value in found.items() if name in (DRIVER_MEMORY, EXECUTOR_MEMORY)}
    pairs = in_turn(" ".join(command[-2:]), lambda: seconds(memory), lambda: seconds({})) if memory else ([], [])
    return {"memory": memory, "with": pairs[0], "without": pairs[1]}


def _lines(found: Sequence[Mapping[str, Any]]) -> list[str]:
    changed = [each for each in found if each["memory"]]
    slower = sum(_longer(each) > GOAL for each in changed)
    rows = [
        f"| {each['command'].rpartition('/')[2]} | {_memory(each)} | {ratio(each['with'], each['without'])} |"
        for each in sorted(changed, key=_longer, reverse=True)
    ]
    return [
        (
            f"{len(found)} jobs that have memory enough ran three times each. For {len(changed)} of them "
            f"`spark-app tune --from-history` proposes other memory; with it, {slower} take more than 5 % longer "
            "(goal: none)."
        ),
        "",
        "| job | memory proposed | time, with : without |",
        "|---|---|---|",
        *rows,
    ]


def _longer(each: Mapping[str, Any]) -> float:
    """How many times as long a job takes with the memory that is proposed."""
    return float(median(each["with"]) / median(each["without"]))


def _memory(each: Mapping[str, Any]) -> str:
    return ", ".join(f"`{name}={value}`" for name, value in each["memory"].items())
