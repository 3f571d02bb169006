"""`make bench`: what the daily run, checks, telemetry, observing and the bridge cost; writes docs/benchmarks.md.

`python -m tests.bench decoding workers` measures only what is named: `checks`, `telemetry`, `sizes`, `starts`,
`decoding`, `bridge`, `observing`, `workers`. BENCH_ROUNDS (5), and what the modules of the parts name, make it shorter
for a try. Each part is on the page as soon as it has been measured.
"""

import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.bench import bridging, days, decoding, observing, page, workers
from tests.bench.measure import CACHE

PARTS: Final[Mapping[str, Callable[[Path], list[str]]]] = {
    "What checks cost": days.checks,
    "What telemetry costs": days.telemetry,
    "Size": days.sizes,
    "Start": days.starts,
    "Reading event logs": decoding.decoding,
    "The bridge": bridging.bridge,
    "What observing costs": observing.observing,
    "Python workers": workers.workers,
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
