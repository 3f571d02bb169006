"""Findings of skew by a key that name the key, by a sample of the files that the query read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from spark_app.eventlog.findings import Finding, HotKey
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.shuffle_keys import ShuffleKey, UnknownKeyError, exchanges_of, key_of
from spark_app.local_files import local_path
from spark_app.observe.key_samples import NoSampleError, Sample, require, sample
from spark_app.redaction import REDACTED, excerpt, is_secret, redacted

MAX_VALUE: Final = 60
"""Characters of a value that are shown."""
MIN_ROWS: Final = 100
"""Sampled rows that a value must have before it is called hot."""

NOTHING_TO_NAME: Final = "no hot key is named: there is no partition_skew behind a shuffle"


@dataclass(frozen=True, slots=True)
class HotKeys:
    """Names hot keys; reads each sample once.

    Attributes:
        ratio: How much more rows a hot key has than another key, and than a partition without it.
        remarks: Why findings have no name of a key, in the order in which that was found, each once.
    """

    ratio: float
    remarks: dict[str, None] = field(default_factory=dict)
    _known: dict[tuple[int, int], HotKey | None] = field(default_factory=dict)

    def named(self, findings: Sequence[Finding], app: Application) -> list[Finding]:
        """Findings of skew by a key with the key, where a sample has it; others as they are."""
        if not any(is_by_key(each) for each in findings):
            self.remarks[NOTHING_TO_NAME] = None
        return [self._named(each, app) if is_by_key(each) else each for each in findings]

    def _named(self, finding: Finding, app: Application) -> Finding:
        place = finding.stage
        if place is None:
            return finding
        if place not in self._known:
            self._known[place] = self._found(finding, place, app)
        hot = self._known[place]
        return finding if hot is None else replace(finding, text=f"{finding.text}; {hot}", hot_key=hot)

    def _found(self, finding: Finding, place: tuple[int, int], app: Application) -> HotKey | None:
        query, stage = app.queries.get(finding.query) if finding.query is not None else None, app.stages.get(place)
        found, reasons = list[HotKey](), dict[str, None]()
        for exchange in exchanges_of(query, stage) if query and stage else ():
            try:
                found.append(hot_key(key_of(exchange), self.ratio))
            except (UnknownKeyError, NoSampleError) as error:
                reasons[str(error)] = None
        if not found:
            why = redacted("; ".join(reasons) or "the plan has no shuffle by columns that it read")
            self.remarks[f"no hot key of {finding.place} is named: {why}"] = None
        return max(found, key=lambda hot: hot.ratio, default=None)


def named_by(ratio: float) -> HotKeys:
    """What names hot keys.

    Raises:
        MachineError: pyarrow is not installed.
    """
    require()
    return HotKeys(ratio)


def is_by_key(finding: Finding) -> bool:
    """Whether a finding is about a task that had more rows behind a shuffle."""
    return finding.rule == "partition_skew" and finding.cause == "key"


def hot_key(key: ShuffleKey, ratio: float) -> HotKey:
    """The value of a key that has far more rows than others, by a sample of the files.

    Raises:
        NoSampleError: The files cannot be sampled, or have no such value.
    """
    paths = [local_path(path) for path in key.paths]
    known = [path for path in paths if path is not None]
    if key.format != "Parquet":
        raise NoSampleError(f"its input is no Parquet files, but {key.format or 'of an unknown format'}")
    if len(known) < len(paths):
        raise NoSampleError("its files are not on this machine")
    names = [column.name for column in key.columns]
    sampled = sample(known, names, [column.name for column in key.columns if column.is_never_null])
    if not _is_hot(sampled, key.partitions, ratio):
        raise NoSampleError(f"no value of {', '.join(names)} has far more rows than the others in its input")
    values = tuple(_shown(name, value) for name, value in zip(names, sampled.value, strict=True))
    where = ", ".join(redacted(path) for path in key.paths)
    part = sampled.count / sampled.rows
    return HotKey([*names], [*values], part, sampled.rows, sampled.is_whole, excerpt(where), [*key.between])


def _is_hot(sampled: Sample, partitions: int, ratio: float) -> bool:
    """Whether a value has that much more rows than the mean of the other values, and of the other partitions."""
    others = sampled.rows - sampled.count
    fewest = min(max(1, sampled.values - 1), max(1, partitions - 1))
    return sampled.count >= MIN_ROWS and sampled.count >= ratio * others / fewest


def _shown(column: str, value: Any) -> str | None:
    if value is None:
        return None
    return REDACTED if is_secret(column) else excerpt(str(value), MAX_VALUE)
