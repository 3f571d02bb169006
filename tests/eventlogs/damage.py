"""Damages recorded event logs in many ways, and checks what is read: `python -m tests.eventlogs.damage SECONDS`.

Whatever is wrong with a log: nothing raises or hangs, no number is negative, no share is above 1, and spans are within
their parents; the JSON document is what its schema says. The seed of each case is printed with what breaks a rule, and
repeats it.
"""

import json
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import zstandard
from msgspec import structs
from msgspec.structs import astuple as values_of

from spark_app.errors import InputError
from spark_app.eventlog import reader
from spark_app.eventlog.bridge.log_processor import LogProcessor
from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.comparison.compare import compare
from spark_app.eventlog.comparison.wallclock import wall_clock
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.parse.log_files import EventLog
from spark_app.eventlog.reader import Reading
from spark_app.eventlog.spans import SparkSpan
from spark_app.report import page
from spark_app.report.results import build, schema
from spark_app.report.scope import scope
from spark_app.report.sections.headline import headline
from tests.eventlogs import walking

HERE: Final = Path(__file__).parent
START: Final = 6
"""The first lines say which application the log is of: spans that are made before have ids of another one."""
SECONDS_EACH: Final = 60
"""What takes longer hangs."""
TIMES: Final = (
    "Timestamp", "Submission Time", "Completion Time", "Launch Time", "Finish Time", "Getting Result Time", "time",
)  # fmt: skip
SHARES: Final = re.compile(r"_share|cores_busy|_ratio")
NEGATIVE: Final = re.compile(r"[>\s(]-\d[\d,.]* (?:ms|s|min|h|B|KiB|MiB|GiB|%)[<\s,;.)]")
"""A negative time, size or share as a person would read it in a report."""
Lines = list[bytes]
Damage = Callable[[Lines, Random], Lines | bytes]


def logs() -> list[Path]:
    """The recorded logs, each as one file."""
    folders = [HERE / name for name in ("diagnoses", "clusters", "streaming", "causes")]
    folders.append(HERE.parent / "compare" / "recorded")
    golden = [*HERE.glob("*/plain/*.zst"), *HERE.glob("*/rolled-zstd/*/events_1_*.zstd")]
    return sorted([*golden, *(path for folder in folders for path in folder.glob("*.zst"))])


def _cut(lines: Lines, draw: Random) -> Lines:
    return lines[: draw.randrange(1, len(lines))]


def _cut_in_a_line(lines: Lines, draw: Random) -> bytes:
    content = b"\n".join(lines)
    return content[: draw.randrange(1, len(content))]


def _without(share: float) -> Damage:
    return lambda lines, draw: [line for line in lines if draw.random() > share]


def _without_kind(lines: Lines, draw: Random) -> Lines:
    kind = draw.choice([_kind(line) for line in lines])
    return [line for line in lines if _kind(line) != kind]


def _without_beginning(lines: Lines, draw: Random) -> Lines:
    return lines[draw.randrange(1, 10) :]


def _repeated(lines: Lines, draw: Random) -> Lines:
    return [line for line in lines for _ in range(draw.choice([1, 1, 1, 2, 3]))]


def _doubled(lines: Lines, draw: Random) -> Lines:
    return lines * draw.choice([2, 3])


def _joined(lines: Lines, draw: Random) -> Lines:
    return [*lines, *(line.replace(b'"App ID":"', b'"App ID":"another-') for line in lines)]


def _swapped(lines: Lines, draw: Random) -> Lines:
    number = draw.randrange(START, len(lines) - 1)
    return [*lines[:number], lines[number + 1], lines[number], *lines[number + 2 :]]


def _shuffled(lines: Lines, draw: Random) -> Lines:
    number = draw.randrange(START, len(lines))
    few = lines[number : number + 12]
    draw.shuffle(few)
    return [*lines[:number], *few, *lines[number + 12 :]]


def _clock_moved(sign: int) -> Damage:
    """From a moment on, the clock of the driver is another one."""

    def moved(lines: Lines, draw: Random) -> Lines:
        moment = draw.choice(times(lines))
        by = sign * draw.choice([1490, 60_000, 3_600_000])
        return [
            changed(line, lambda key, value: value + by if _is_time(key) and value > moment else value)
            for line in lines
        ]

    return moved


def _one_time(lines: Lines, draw: Random) -> Lines:
    """One time of one line is another one."""
    to = draw.choice([0, 1, -1490, 60_000, -3_600_000])
    timed = [number for number, line in enumerate(lines) if b"Time" in line]
    number = draw.choice(timed)
    key = draw.choice(TIMES)
    new = changed(
        lines[number], lambda name, value: max(0, value + to if abs(to) > 1 else to) if name == key else value
    )
    return [*lines[:number], new, *lines[number + 1 :]]


def _negative(lines: Lines, draw: Random) -> Lines:
    """Some metrics are negative, as where they were taken from a clock that was set back."""
    return [
        changed(
            line, lambda key, value: -value if "Time" in key and not _is_time(key) and draw.random() < 0.2 else value
        )
        for line in lines
    ]


def _without_field(lines: Lines, draw: Random) -> Lines:
    key = draw.choice(
        sorted({key for line in draw.sample(lines, min(5, len(lines))) for key in _keys(json.loads(line))})
    )
    return [_dumped(_stripped(json.loads(line), key)) for line in lines]


def _other_type(lines: Lines, draw: Random) -> Lines:
    """A field of a line has a value of another kind."""
    number = draw.randrange(len(lines))
    event = json.loads(lines[number])
    key = draw.choice(sorted(event))
    event[key] = draw.choice([None, "x", -1, 2**63, 1.5, [], {}, True]) if key != "Event" else "x"
    return [*lines[:number], _dumped(event), *lines[number + 1 :]]


def _old(lines: Lines, draw: Random) -> Lines:
    """An old version wrote less."""
    gone = {"Executor CPU Time", "Submission Time", "batchDuration", "Parent IDs", "Total Records Read", "errorMessage"}
    old = [_stripped(json.loads(line), *draw.sample(sorted(gone), 4)) for line in lines]
    return [_dumped(line | ({"Spark Version": "1.6.3"} if "Spark Version" in line else {})) for line in old]


def _foreign(lines: Lines, draw: Random) -> Lines:
    """Lines of others stand between."""
    others = [b"", b"null", b"[1]", b'{"Event":"x"}', b'{"Event":', b"\xff\xfe", b"{" * 5000, b'"' + b"9" * 9999 + b'"']
    return [each for line in lines for each in ([line, draw.choice(others)] if draw.random() < 0.1 else [line])]


def _flipped(lines: Lines, draw: Random) -> bytes:
    content = bytearray(b"\n".join(lines) + b"\n")
    for _ in range(20):
        content[draw.randrange(len(content))] = draw.randrange(256)
    return bytes(content)


def _digits(lines: Lines, draw: Random) -> Lines:
    """A number of a line has other digits."""
    number = draw.randrange(len(lines))
    new = re.sub(
        rb"(?<=:)\d+",
        lambda found: b"%d" % (draw.getrandbits(draw.choice([8, 31, 40, 62]))) if draw.random() < 0.3 else found[0],
        lines[number],
    )
    return [*lines[:number], new, *lines[number + 1 :]]


def _packed(harm: Callable[[bytes, Random], bytes]) -> Damage:
    def harmed(lines: Lines, draw: Random) -> bytes:
        step = max(1, len(lines) // 20)
        frames = [
            b"".join(line + b"\n" for line in lines[number : number + step]) for number in range(0, len(lines), step)
        ]
        return b"zstd" + harm(b"".join(map(zstandard.ZstdCompressor().compress, frames)), draw)

    return harmed


def _flipped_bytes(content: bytes, draw: Random) -> bytes:
    number = draw.randrange(len(content))
    return content[:number] + bytes([content[number] ^ draw.randrange(1, 256)]) + content[number + 1 :]


DAMAGES: Final[dict[str, Damage]] = {
    "cut off": _cut,
    "cut off in a line": _cut_in_a_line,
    "a tenth of the lines is missing": _without(0.1),
    "half of the lines is missing": _without(0.5),
    "a kind of event is missing": _without_kind,
    "the beginning is missing": _without_beginning,
    "lines are repeated": _repeated,
    "doubled": _doubled,
    "joined with another log": _joined,
    "two lines are swapped": _swapped,
    "lines are shuffled": _shuffled,
    "the clock is set back": _clock_moved(-1),
    "the clock is set forward": _clock_moved(1),
    "a time is wrong": _one_time,
    "metrics are negative": _negative,
    "a field is missing": _without_field,
    "a value has another type": _other_type,
    "an old version": _old,
    "foreign lines": _foreign,
    "bytes are wrong": _flipped,
    "digits are wrong": _digits,
    "zstd is cut off": _packed(lambda content, draw: content[: draw.randrange(1, len(content))]),
    "zstd is damaged": _packed(_flipped_bytes),
}
ANOTHER_TREE: Final = {
    "two lines are swapped", "lines are shuffled", "bytes are wrong", "digits are wrong", "zstd is damaged",
}  # fmt: skip
"""Damages after which a span may have another parent, or its parent was sent before: the times need not fit."""

ANOTHER_CLOCK: Final = {"the clock is set forward", "a time is wrong"}
LATE_TASK: Final = re.compile(r"task .* ends \d+ ms after stage ")
"""A task of a stage that failed may end after it, by another clock long after it."""


@dataclass(frozen=True)
class Case:
    """A damaged log."""

    log: Path
    damage: str
    seed: int

    def broken(self, folder: Path) -> list[str]:
        """The rules that do not hold for it."""
        unpacker = zstandard.ZstdDecompressor().decompressobj(read_across_frames=True)
        lines = unpacker.decompress(self.log.read_bytes()).splitlines()
        harmed = DAMAGES[self.damage](lines, Random(self.seed))
        content = harmed if isinstance(harmed, bytes) else b"".join(line + b"\n" for line in harmed)
        is_zstd = content.startswith(b"zstd")
        file = folder / f"app-{self.seed}{'.zstd' if is_zstd else ''}"
        file.write_bytes(content.removeprefix(b"zstd"))
        with within(SECONDS_EACH):
            reading = _reading(file)
            found = [] if reading is None else list(in_report(reading))
            found += in_bridge(file, reading, is_same_tree=self.damage not in ANOTHER_TREE)
        file.unlink()
        is_clock = self.damage in ANOTHER_CLOCK
        return [f"{self}: {each}" for each in found if not (is_clock and LATE_TASK.match(each))]


def _reading(file: Path) -> Reading | None:
    try:
        return reader.read(file)
    except InputError:
        return None


def in_report(reading: Reading) -> Iterator[str]:
    """The rules that a report, the diagnoses and a comparison of a log break."""
    if reading.read_errors.failure:
        yield reading.read_errors.failure
    about, findings = scope(reading.app, None), diagnose(reading.app, Thresholds(cost_ms=0))
    top = headline(about)
    figures = {f"headline {name}": value for name, value in structs.asdict(top.figures).items()}
    figures |= {f"{each.rule} {name}": value for each in findings for name, value in each.numbers.items()}
    figures |= {f"{each.rule} cost": each.cost_ms for each in findings}
    profile = profiling.run_profile(reading)
    for group in profile.groups:
        of = (*values_of(group.wall), *values_of(group.spent), *values_of(group.volume))
        figures |= {f"{group.place} {number}": round(value, 1) for number, value in enumerate(of)}
    clock = wall_clock(reading.app)
    figures |= {"start-up": clock.startup, "end": clock.end}
    for key, part in clock.parts.items():
        figures |= {f"{key} {number}": round(value, 1) for number, value in enumerate(values_of(part))}
    yield from out_of_range(figures)
    comparison = compare([profile], profile)
    content = page.html(reading, about, findings, compared=comparison, backends=None, prices=None).decode()
    yield from (f"a report says {found}" for found in NEGATIVE.findall(content))
    document = build.application(reading, None, findings, comparison, report="r.html")
    try:
        msgspec.json.decode(msgspec.json.encode(document), type=schema.Application)
    except msgspec.ValidationError as error:
        yield f"the JSON document breaks its schema: {error}"


def in_bridge(file: Path, reading: Reading | None, *, is_same_tree: bool) -> Iterator[str]:
    """The rules that the spans and the totals of a log break; the model of the bridge forgets what has ended."""
    spans: list[SparkSpan] = []
    log = LogProcessor(
        EventLog(file.name, file, 0),
        on_span=lambda _, span: spans.append(span),
        is_crowded=lambda: False,
        thresholds=Thresholds(),
        was_counted=False,
    )
    log.read(float("inf"))
    log.end()
    if log.failure:
        yield log.failure
    numbers: dict[str, Any] = {
        f"{span.name} {name}": value for span in spans for name, value in span.attributes.items()
    }
    numbers |= {f"{span.name} duration": span.ended - span.started for span in spans}
    for each in log.aggregator.aggregate().applications.values():
        numbers |= {str(key): count for key, count in (*each.counts.items(), *each.levels.items())}
        for name, group in each.groups.items():
            numbers |= {f"{name} {key}": histogram.least for key, histogram in group.histograms.items()}
        for name, query in each.queries.items():
            numbers |= {f"{name} {key}": count for key, count in query.counts.items()}
            numbers |= {f"{name} duration of batches": query.durations.least}
    yield from out_of_range(numbers)
    rules = walking.broken_rules(reading.app if reading else log.app, spans)
    yield from (rule for rule in rules if is_same_tree or "is exported" in rule or "orphan" in rule)


def out_of_range(figures: dict[str, Any]) -> Iterator[str]:
    """Numbers below 0, and shares above 1; an id or an exit code is what the log says."""
    for name, value in figures.items():
        if isinstance(value, int | float) and value < 0 and not name.endswith(("exit_code", ".id")):
            yield f"{name} is {value}"
        if isinstance(value, int | float) and SHARES.search(name) and value > 1:
            yield f"{name} is {value}"


@contextmanager
def within(seconds: int) -> Iterator[None]:
    """Raises TimeoutError in what takes longer."""

    def expired(*_: object) -> None:
        raise TimeoutError(f"took more than {seconds} s")

    before = signal.signal(signal.SIGALRM, expired)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def each_once(seed: int) -> Iterator[Case]:
    """A case of each damage, each of another log."""
    draw, chosen = Random(seed), logs()
    draw.shuffle(chosen)
    for number, damage in enumerate(DAMAGES):
        yield Case(chosen[number % len(chosen)], damage, draw.getrandbits(31))


def endless(seed: int) -> Iterator[Case]:
    """Each damage of each log, again and again."""
    draw = Random(seed)
    while True:
        cases = [(log, damage) for log in logs() for damage in DAMAGES]
        draw.shuffle(cases)
        for log, damage in cases:
            yield Case(log, damage, draw.getrandbits(31))


def broken_in(cases: Iterator[Case], folder: Path, seconds: float = float("inf")) -> tuple[int, list[str]]:
    """How many cases were tried within some seconds, and the rules that do not hold for them."""
    until, found, tried = time.monotonic() + seconds, list[str](), 0
    for case in cases:
        found += case.broken(folder)
        tried += 1
        if time.monotonic() > until:
            break
    return tried, found


def times(lines: Sequence[bytes]) -> list[int]:
    """All times of a log, in order."""
    return sorted({value for line in lines for key, value in _numbers("", json.loads(line)) if _is_time(key)})


def _numbers(key: str, value: Any) -> Iterator[tuple[str, int]]:
    """The whole numbers of a line, by their names."""
    if isinstance(value, dict):
        for name, each in value.items():
            yield from _numbers(name, each)
    elif isinstance(value, list):
        for each in value:
            yield from _numbers(key, each)
    elif isinstance(value, int):
        yield key, value


def changed(line: bytes, change: Callable[[str, int], int]) -> bytes:
    """A line with other numbers, by their names."""

    def walk(key: str, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: walk(name, each) for name, each in value.items()}
        if isinstance(value, list):
            return [walk(key, each) for each in value]
        return change(key, value) if isinstance(value, int) and not isinstance(value, bool) else value

    return _dumped(walk("", json.loads(line)))


def _is_time(key: str) -> bool:
    return key in TIMES


def _kind(line: bytes) -> bytes:
    return line[: line.find(b'"', 10)]


def _keys(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, each in value.items():
            yield key
            yield from _keys(each)


def _stripped(value: Any, *keys: str) -> Any:
    if isinstance(value, dict):
        return {key: _stripped(each, *keys) for key, each in value.items() if key not in keys or key == "Event"}
    return [_stripped(each, *keys) for each in value] if isinstance(value, list) else value


def _dumped(event: Any) -> bytes:
    return json.dumps(event, separators=(",", ":")).encode()


if __name__ == "__main__":
    with TemporaryDirectory() as scratch:
        tried, found = broken_in(endless(int(time.time())), Path(scratch), float(sys.argv[1]))
    sys.stdout.write("".join(f"{each}\n" for each in found) + f"{tried} damaged logs, {len(found)} broken rules\n")
    sys.exit(bool(found))
