"""What a month of a streaming query leaves, and what it costs to follow, export and compact its event log.

The log is a recorded micro-batch of Spark 4.2, repeated. BENCH_BATCHES (259200, a month of triggers of 10 s) makes it
shorter for a try.
"""

import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.observe.analysis import analyze
from spark_app.observe.followed_log import FollowedLog
from spark_app.settings import load_settings
from tests.eventlogs.months import MONTH, Roller, Stream
from tests.polling import poll_until

BATCHES: Final = int(os.environ.get("BENCH_BATCHES", str(MONTH)))
FILE_BYTES: Final = 10 * 1024 * 1024
"""The smallest files that Spark rolls, as `config/spark/streaming.conf` sets."""
AHEAD: Final = 200
"""Micro-batches that are written before the reader is waited for."""
_ENDPOINT: Final = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200); self.send_header("Content-Length", "0"); self.end_headers()
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
"""


def month(scratch: Path) -> list[str]:
    """The log, the memory and the processor time after a month."""
    settings, stream = load_settings(None).model_copy(update={"home": scratch}), Stream()
    roller, largest, written = Roller(settings.events_path, file_bytes=FILE_BYTES), 0, 0
    with _endpoint():
        followed, cpu = FollowedLog(roller.log, settings, Thresholds()), time.process_time() - time.thread_time()
        roller.write(b"".join(line + b"\n" for line in stream.head))
        for number in range(BATCHES):
            lines = stream.batch(number)
            written += len(lines)
            roller.write(lines)
            if number % AHEAD == AHEAD - 1:
                poll_until(lambda: followed.batches > number, "the reader", seconds=600)  # noqa: B023
                largest = max(largest, sum(file.stat().st_size for file in roller.log.iterdir()))
        cpu = time.process_time() - time.thread_time() - cpu
        roller.finish()
        began = time.monotonic()
        reading, unsent = followed.finish(patience=60)
        analyze(reading, settings, Thresholds()).page()
        ended = time.monotonic() - began
    (query,) = reading.app.streams.queries.values()
    kept = sum(sample.batches for sample in query.history.all)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000
    sizes = f"{written / 1e9:,.1f} GB | {largest / 1e6:,.0f} MB | {peak:,.0f} MB"
    costs = f"{1000 * cpu / BATCHES:.1f} ms | {ended:.1f} s"
    return [
        f"{BATCHES:,} micro-batches of {len(lines) / 1000:,.0f} kB, exported and compacted while they are written.",
        "",
        "| event log in all | largest on disk | peak memory | CPU time per micro-batch | end and report | known |",
        "|---|---|---|---|---|---|",
        f"| {sizes} | {costs} | {kept:,} micro-batches{f'; {unsent}' if unsent else ''} |",
    ]


@contextmanager
def _endpoint() -> Iterator[None]:
    """An endpoint in a process of its own, which takes everything and keeps nothing."""
    with subprocess.Popen([sys.executable, "-c", _ENDPOINT], stdout=subprocess.PIPE, text=True) as process:
        try:
            port = process.stdout.readline().strip() if process.stdout else ""
            os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"] = f"http://127.0.0.1:{port}"
            yield
        finally:
            del os.environ["OTEL_EXPORTER_OTLP_ENDPOINT"]
            process.terminate()
