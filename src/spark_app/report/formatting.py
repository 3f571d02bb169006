"""Numbers and text from logs as a report shows them: `spark_app.formatting`, but unknown values are `not known`."""

import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Final, Literal

from spark_app import formatting
from spark_app.eventlog.model.operators import Number
from spark_app.redaction import excerpt, redacted

UNKNOWN: Final = "not known"
Mood = Literal["good", "bad", "unsure"]
"""How the outcome of a run or of an application is coloured."""
GOOD: Final = frozenset({"succeeded", "ended"})
BAD: Final = frozenset({"failed", "killed", "rejected", "missing_input"})
CAUSES: Final = {
    "network": "waiting for shuffle blocks from other executors",
    "disk": "writing shuffle files",
    "gc": "garbage collection",
    "scheduling": "scheduler delay",
    "deserializing": "deserialising tasks",
    "python": "Python workers",
    "skew": "tasks longer than the median of their stage",
}
_PUNCTUATION: Final = re.compile(r"([\\`*_\[\]|~$])")
_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})
_ADDRESSED: Final = re.compile(r"(?<=@)(?=\w)|(?<=#)(?=\d)|(?<=:)(?=//)|(?<=www)(?=\.)", re.IGNORECASE)
_ZERO_WIDTH_SPACE: Final = "&#8203;"
"""A space without width keeps a comment from mentioning people and issues, and from linking to addresses."""
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")


def mood(outcome: str) -> Mood:
    """How an outcome is coloured: what was interrupted, or has no end, is neither good nor bad."""
    return "bad" if outcome in BAD else "good" if outcome in GOOD else "unsure"


def _or_unknown(shown: Callable[[float], str]) -> Callable[[float | None], str]:
    return lambda number: UNKNOWN if number is None else shown(number)


count, size, duration, share = map(
    _or_unknown, (formatting.count, formatting.size, formatting.duration, formatting.share)
)


def quantity(number: float | None, name: str) -> str:
    """A count with its noun: `1 job`, `2 jobs`."""
    return f"{UNKNOWN} {name}s" if number is None else formatting.quantity(number, name)


def tick(milliseconds: float) -> str:
    """A round time on an axis, in the largest unit without a fraction: `500 ms`, `5 s`, `1 min 30 s`."""
    units = ((86_400_000, "d"), (3_600_000, "h"), (60_000, "min"), (1000, "s"))
    most = next(((unit, name) for unit, name in units if milliseconds >= unit and not milliseconds % unit), (1, "ms"))
    if milliseconds > 60_000 and most[0] == 1000:
        return formatting.duration(milliseconds)
    return "0" if not milliseconds else f"{milliseconds / most[0]:,.0f} {most[1]}"


def times(factor: float | None) -> str:
    """A factor: `3.2 x`."""
    return UNKNOWN if factor is None or not math.isfinite(factor) else f"{factor:.{0 if factor >= 10 else 1}f} x"


def score(value: float | None) -> str:
    """A score between 0 and 1, or near: `0.412`; a small one that would round to 0 is shown as less: `< 0.001`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return "< 0.001" if 0 < value < 0.0005 else f"{value:.3f}"


def change(value: float | None) -> str:
    """The difference of two scores, with its sign: `+0.012`."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:+.3f}"


def hours(value: float | None) -> str:
    """Core-hours or GiB-hours, with three digits: `1,234`, `12.3`, `0.0123`."""
    if value is None or not math.isfinite(value):
        return UNKNOWN
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def money(value: Decimal) -> str:
    """An amount of money: to the cent, or with two digits below it: `12.34`, `0.0012`."""
    return f"{value:,.2f}" if value >= Decimal("0.1") or not value else f"{value:.2g}"


def apart(share: float) -> str:
    """How far an estimate is off: `3 % too short`, `exact to 1 %`."""
    percent = round(abs(share) * 100)
    return "exact to 1 %" if percent < 1 else f"{percent} % too {'long' if share > 0 else 'short'}"


def change_of_time(share: float) -> str:
    """A change of a duration in words: `12 % shorter`."""
    percent = round(abs(share) * 100)
    return f"{percent} % {'longer' if share > 0 else 'shorter'}" if percent else "the same"


def cause(name: str) -> str:
    """What tasks waited for, in words; other names as they are."""
    return CAUSES.get(name, name)


def number(value: float | None) -> str:
    """A number of any size, with four digits: `3.142`, `1.2e+09`."""
    return UNKNOWN if value is None or not math.isfinite(value) else f"{value:.4g}"


def instant(milliseconds: float | None) -> datetime | None:
    """Milliseconds since the epoch as an instant in UTC; None if no calendar has it."""
    if milliseconds is None:
        return None
    try:
        return datetime.fromtimestamp(round(milliseconds) / 1000, UTC)
    except (OverflowError, ValueError, OSError):
        return None


def timestamp(moment: float | datetime | None) -> str:
    """An instant, or milliseconds since the epoch, in UTC; unknown if no calendar has it."""
    shown = moment if isinstance(moment, datetime) else instant(moment)
    return UNKNOWN if shown is None else formatting.timestamp(shown)


def clock(milliseconds: float | None) -> str:
    """The time of day of an instant in UTC: `08:15:30`."""
    shown = timestamp(milliseconds)
    return shown if shown == UNKNOWN else shown[11:19]


def metric(number: Number) -> str:
    """What an operator has counted."""
    return {"By": formatting.size, "ms": formatting.duration}.get(number.unit, formatting.count)(number.value)


def amount(name: str, value: float) -> str:
    """A number of a finding in the unit that its name ends with: `longest_task_ms`, `spilled_bytes`, `gc_ratio`."""
    units = {"ms": formatting.duration, "bytes": formatting.size, "ratio": formatting.share}
    return units.get(name.rpartition("_")[2], formatting.count)(value)


def limit(name: str, value: float) -> str:
    """A limit of a rule, as an amount; above 1 a ratio is `3.16 x`, and a throughput is `125.0 MiB/s`."""
    if name.endswith("_ratio") and value > 1:
        return f"{value:g} x"
    if name.endswith("_bytes_per_second"):
        return f"{formatting.size(value)}/s"
    return amount(name, value)


def words(name: str) -> str:
    """A snake_case name in words, without its unit: `spilled_bytes` is `spilled`.

    `longest_task_ms` is `longest task time`, to tell it from `longest_task_bytes`.
    """
    return re.sub(r"_(ms|bytes|ratio)$", "", re.sub(r"_task_ms$", "_task_time", name)).replace("_", " ")


def text(content: object, most: int = 300) -> str:
    """Text from a log: secrets masked, control characters replaced, and truncated with a note of its length."""
    whole = str(content)
    shown = _readable(redacted(whole[: most * 4]))
    if len(shown) <= most and len(whole) <= most * 4:
        return shown
    return f"{shown[:most]}… (truncated, {len(whole):,} characters)"


def line(content: object, most: int = 120) -> str:
    """The same on one line, truncated with an ellipsis."""
    return _readable(excerpt(str(content), most))


def escaped(text: str) -> str:
    """A text on one line that Markdown shows as it is, also in a table; spaces stand for invisible characters."""
    one_line = " ".join("".join(part if part.isprintable() else " " for part in text).split())
    marked = _ADDRESSED.sub("\0", _PUNCTUATION.sub(r"\\\1", one_line.translate(_HTML)))
    return marked.replace("\0", _ZERO_WIDTH_SPACE)


def _readable(text: str) -> str:
    """A text for a page or a document; a terminal, which obeys more characters, has a rule of its own (`cells`)."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)
