"""`make bench`: what the daily run, streams, telemetry, observing and the bridge cost; writes docs/benchmarks.md.

`python -m tests.bench decoding workers` measures only the parts that it names: `first_result`, `wheel`, `plain`,
`checks`, `telemetry`, `sizes`, `starts`, `decoding`, `bridge`, `large_log`, `listing`, `observing`, `sampling`,
`workers`, `throughput`, `first_batch`, `latency`, `alert_latency`, `prediction_latency`, `recovery`, `state`,
`small_files`, `month`, `training`, `tuning`, `memory_retries`, `healthy_jobs`, `what_if`. BENCH_ROUNDS (5), and the
variables that the modules of the parts name, make it shorter for a try. Each part is on the page as soon as it has
been measured.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.bench import (
    bridging,
    days,
    decoding,
    healthy_jobs,
    installing,
    large_log,
    listing,
    memory_retries,
    months,
    observing,
    page,
    plain,
    sampling,
    setting_up,
    small_files,
    stream_latency,
    streaming,
    training,
    tuning,
    what_if,
    workers,
)
from tests.bench.measure import CACHE

PARTS: Final[Mapping[str, Callable[[Path], list[str]]]] = {
    "The first result": setting_up.first_result,
    "The wheel": installing.wheel,
    "The daily run : a plain script": plain.plain,
    "What checks cost": days.checks,
    "What telemetry costs": days.telemetry,
    "Size": days.sizes,
    "Start": days.starts,
    "Reading event logs": decoding.decoding,
    "The bridge": bridging.bridge,
    "A large event log": large_log.large_log,
    "The list of runs": listing.listing,
    "What observing costs": observing.observing,
    "What samples of stacks cost": sampling.sampling,
    "Python workers": workers.workers,
    "Streaming queries": streaming.throughput,
    "The first rows of streaming queries": stream_latency.first_batch,
    "Latency of `streaming.events`": stream_latency.latency,
    "Latency of `streaming.alerts`": stream_latency.alert_latency,
    "Latency of `streaming.predictions`": stream_latency.prediction_latency,
    "Recovery of a streaming query": stream_latency.recovery,
    "State of a streaming query": streaming.state,
    "Reads of a table of a streaming query": small_files.small_files,
    "A month of a streaming query": months.month,
    "Training and scoring a model": training.training,
    "Programs that were tuned": tuning.tuning,
    "Jobs that die for lack of memory": memory_retries.memory_retries,
    "Jobs that have memory enough": healthy_jobs.healthy_jobs,
    "What if": what_if.what_if,
}


def main() -> None:
    """Measures what is named, or else everything, and writes its parts of the page."""
    CACHE.mkdir(parents=True, exist_ok=True)
    chosen = {heading: part for heading, part in PARTS.items() if not sys.argv[1:] or part.__name__ in sys.argv[1:]}
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as folder:
        for heading, part in chosen.items():
            page.write(heading, "make bench", part(Path(folder)))


if __name__ == "__main__":
    main()
