"""What a change of a project does to its tables: its functions beside the commits of the tables; starts no Spark."""

import datetime
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, get_args

import msgspec

from spark_app import project
from spark_app.declarations.fingerprints import OF_SOURCE, Fingerprints, Use, made_by
from spark_app.declarations.pipeline import Pipeline
from spark_app.engine.code_location import CodeLocation
from spark_app.execution import pipelines
from spark_app.execution.forecast import Forecast, forecasts
from spark_app.execution.graph import warehouse_folder
from spark_app.models import registry
from spark_app.settings import Settings, load_pipeline_config
from spark_app.warehouse import fingerprint
from spark_app.warehouse.fingerprint import Fingerprint, Written, written
from spark_app.warehouse.freshness import Files
from spark_app.warehouse.periods import Periods, StoredFiles, in_threads

State = Literal[
    "unchanged", "checked differently", "columns added", "new", "gone", "unknown", "rows may differ", "breaking"
]
STATES: Final[tuple[State, ...]] = get_args(State)
"""From the least to the most that a reader has to know of."""
AGAIN: Final[tuple[State, ...]] = ("columns added", "unknown", "rows may differ", "breaking")
"""The days of such tables have to be written again to be as the code says."""
UNKNOWN: Final = "nothing says how it was built"
NO_ROWS: Final = "it has no rows yet"
THREADS: Final = 16
NOT_NULL: Final = " not null"
ROW: Final = "row"
PYTHON: Final = "Python"


class Table(msgspec.Struct, kw_only=True):
    """What becomes of a table.

    Attributes:
        table: Its name.
        pipeline: The pipeline that writes it; None if none does any more.
        state: What becomes of it.
        reasons: Why, each with file and line where the project says it.
        columns: The columns whose values may differ, or that are added or gone; None for all, and for none an empty
            list.
        follows: The tables that it reads, because of which its rows may differ.
        version: The version of the table that says how it was made.
        written_at: When that was committed.
    """

    table: str
    pipeline: str | None
    state: State
    reasons: list[str] = msgspec.field(default_factory=list)
    columns: list[str] | None = msgspec.field(default_factory=list)
    follows: list[str] = msgspec.field(default_factory=list)
    version: int | None = None
    written_at: datetime.datetime | None = None


@dataclass(frozen=True)
class Plan:
    """What becomes of all tables.

    Attributes:
        tables: The tables, each after those that it reads.
        everywhere: What is different for all tables alike, such as a version of Spark.
        not_compared: What is written, and not compared, with the reason.
        also_read: By pipeline that writes no table that is compared, the changed tables that it reads.
        again: What it takes to write the days of all again whose rows may differ.
    """

    tables: Sequence[Table]
    everywhere: Sequence[str] = ()
    not_compared: Sequence[str] = ()
    also_read: Mapping[str, Sequence[str]] = field(default_factory=dict)
    again: Sequence[Forecast] = ()


def of_project(settings: Settings) -> Plan:
    """What the current project, as its files are now, changes in the warehouse that is configured.

    Raises:
        DeclarationError: A declaration is wrong.
        InputError: The warehouse cannot be read.
        MachineError: The driver of its storage is not installed.
    """
    root, loaded = warehouse_folder(settings.warehouse_path), pipelines.load_all()
    found = plan(root, loaded, made_now(settings, loaded))
    changed = {each.table for each in found.tables if each.state in AGAIN}
    return replace(found, again=forecasts(changed, loaded, Periods(StoredFiles(root)), settings.runs_path))


def made_now(settings: Settings, loaded: Mapping[str, Pipeline]) -> Fingerprints:
    """How the tables of pipelines are made by now."""

    def config(pipeline: Pipeline) -> object:
        return load_pipeline_config(pipeline.name, pipeline.config, settings.config)

    return Fingerprints(project.required(), settings, loaded, config)


def plan(root: Files, loaded: Mapping[str, Pipeline], now: Fingerprints) -> Plan:
    """What becomes of the tables of a warehouse.

    Args:
        root: The folder of the warehouse.
        loaded: All pipelines by name.
        now: How their tables are made by now.
    """
    names, threads = _in_order(now), 1 if isinstance(root, Path) else THREADS
    before = dict(zip(names, in_threads(lambda name: written(root / name), names, threads=threads), strict=True))
    found = _Comparison(now, before)
    tables = [found.table(name) for name in names]
    others = [table.name for each in loaded.values() for table in each.writes if table.name not in names]
    known = {*names, *others, *(table.name for table in registry.TABLES)}
    return Plan([*_gone(root, known), *tables], found.everywhere, others, _also_read(loaded, tables))


def _in_order(now: Fingerprints) -> list[str]:
    """The tables, each after those that it reads, as far as these do not read each other."""
    found: dict[str, None] = {}

    def visit(name: str, below: Set[str]) -> None:
        if name not in found and name not in below:
            for read in now.makings[name].reads:
                if read in now.makings:
                    visit(read, below | {name})
            found[name] = None

    for name in now.makings:
        visit(name, frozenset())
    tables = {*now.tables}
    return [name for name in found if name in tables]


def _gone(root: Files, known: Set[str]) -> Iterator[Table]:
    """The tables that a pipeline has written, and that none writes any more."""
    folders = [each for each in root.iterdir() if each.name[0] not in "._"] if root.is_dir() else []
    for folder in sorted(folders, key=lambda each: each.name):
        if folder.name not in known and (before := written(folder)) is not None and before.fingerprint:
            yield _table(folder.name, None, before, "gone", ["no function declares it any more"])


def _also_read(loaded: Mapping[str, Pipeline], tables: Sequence[Table]) -> dict[str, list[str]]:
    changed = {each.table for each in tables if each.state not in ("unchanged", "checked differently")}
    compared = {each.pipeline for each in tables}
    read = {name: sorted(changed.intersection(_reads(each))) for name, each in loaded.items() if name not in compared}
    return {name: found for name, found in read.items() if found}


def _reads(pipeline: Pipeline) -> set[str]:
    return {*pipeline.reads, *(pipeline.trains.reads if pipeline.trains else ())}


def _table(
    name: str, pipeline: str | None, before: Written | None, state: State, reasons: Sequence[str], **given: Any
) -> Table:
    version, at = (before.version, before.at) if before else (None, None)
    return Table(
        table=name,
        pipeline=pipeline,
        state=state,
        reasons=list(dict.fromkeys(reasons)),
        version=version,
        written_at=at,
        **given,
    )


class Reason(NamedTuple):
    """Why a table has a state.

    Attributes:
        state: The state that it has at least.
        text: Why.
        columns: The columns that may differ; None for all.
    """

    state: State
    text: str
    columns: frozenset[str] | None = frozenset()


@dataclass
class _Effect:
    """What becomes of the columns of a table: those that may differ or are added (None for all), and those gone."""

    columns: Set[str] | None = frozenset()
    gone: Set[str] = frozenset()


class _Comparison:
    """The tables of a project beside their commits, each after those that it reads."""

    def __init__(self, now: Fingerprints, before: Mapping[str, Written | None]) -> None:
        self._now, self._before = now, before
        self._effects: dict[str, _Effect] = {}
        known = [(each.fingerprint, self._made(name)) for name, each in before.items() if each and each.fingerprint]
        versions = [{*_differences(old.versions, new.versions)} for old, new in known if isinstance(new, Fingerprint)]
        self.everywhere = sorted(set[str].intersection(*versions)) if len(versions) > 1 else []

    def table(self, name: str) -> Table:
        """What becomes of a table, once that is known of those that it reads."""
        before, new, pipeline = self._before[name], self._made(name), self._now.makings[name].pipeline.name
        if before is None or before.fingerprint is None or isinstance(new, str):
            self._effects[name] = _Effect(None)
            state: State = "unknown" if before or isinstance(new, str) else "new"
            problem = f"{UNKNOWN}: {before.problem}" if before else NO_ROWS
            return _table(name, pipeline, before, state, [new if isinstance(new, str) else problem], columns=None)
        old = before.fingerprint
        reasons, follows = list(self._own(name, old, new)), dict[str, list[Reason]]()
        for read in new.reads:
            if found := list(self._followed(name, read, old)):
                follows[read] = found
        reasons += [reason for found in follows.values() for reason in found]
        state = max((reason.state for reason in reasons), key=STATES.index, default="unchanged")
        own = [reason for reason in reasons if reason.text not in self.everywhere]
        columns = _joined(reason.columns for reason in own)
        if columns and columns.intersection([*new.key, *new.partitions]):
            columns = None
        present = {column for column, _ in new.schema}
        self._effects[name] = _Effect(columns, {column for column, _ in old.schema} - present)
        texts = [reason.text for reason in own]
        shown = None if columns is None or len(own) < len(reasons) else sorted(columns)
        return _table(name, pipeline, before, state, texts, columns=shown, follows=list(follows))

    def _made(self, name: str) -> Fingerprint | str:
        """How a table is made by now, or why that cannot be told."""
        try:
            return self._now.of(name)
        except Exception as error:  # noqa: BLE001 - whatever code of others does when it is looked at
            return f"what makes it cannot be told: {type(error).__name__}: {error}"

    def _own(self, name: str, old: Fingerprint, new: Fingerprint) -> Iterator[Reason]:
        """What its own declaration changes."""
        is_of_source = any(f" of {OF_SOURCE} " in key for key in (*old.inputs, *new.inputs))
        yield from _of_schema(old, new, is_of_source=is_of_source)
        for what, was, now in (("key", old.key, new.key), ("partitions", old.partitions, new.partitions)):
            if list(was) != list(now):
                yield Reason("breaking", f"{what}: {', '.join(was) or 'none'} → {', '.join(now) or 'none'}", None)
        for text in (*_differences(old.inputs, new.inputs), *_differences(old.options, new.options)):
            yield Reason("rows may differ", text, None)
        for text in (*_differences(old.versions, new.versions), *_differences(old.properties, new.properties)):
            yield Reason("rows may differ", text, None)
        yield from _of_rules(old, new, is_of_source=is_of_source)
        if old.code != new.code:
            yield from self._of_code(name, old, new)

    def _of_code(self, name: str, old: Fingerprint, new: Fingerprint) -> Iterator[Reason]:
        if old.versions.get(PYTHON) != new.versions.get(PYTHON):
            return  # each version of Python has code of its own, and another one is a reason already
        texts = list(self._parts(name, old, new))
        if old.rest != new.rest:
            yield from (Reason("rows may differ", text, None) for text in texts)
            return
        added = {column for column, _ in new.schema} - {column for column, _ in old.schema}
        names = sorted({*old.columns, *new.columns} & {column for column, _ in new.schema} - added)
        for column in names:
            if old.columns.get(column) != new.columns.get(column):
                yield from (
                    Reason("rows may differ", f"column {column}: {each}", frozenset([column])) for each in texts
                )

    def _parts(self, name: str, old: Fingerprint, new: Fingerprint) -> Iterator[str]:
        """What is other code, or another value, in words: the function itself first."""
        was, now, places = old.parts, new.parts, self._now.reach(name).places
        is_short = any([*names] == ["*"] for names in was.values())
        if is_short:
            was, now = fingerprint.by_module(was), fingerprint.by_module(now)
        known = {(module, each): digest for module, names in was.items() for each, digest in names.items()}
        found = {(module, each): digest for module, names in now.items() for each, digest in names.items()}
        texts = [
            f"{_shown(label, places)} {'changed' if label in known else 'is reached now'}"
            for label, digest in found.items()
            if known.get(label) != digest
        ]
        texts += [f"{_shown(label, {})} is not reached any more" for label in known if label not in found]
        yield from texts or [f"what {name} calls is connected otherwise"]

    def _followed(self, name: str, read: str, old: Fingerprint) -> Iterator[Reason]:
        """What follows from what becomes of a table, or a topic, that it reads."""
        now, before = self._now.made_by(read), self._before.get(read)
        fingerprint_of = before.fingerprint if before else None
        if read not in self._before or fingerprint_of is None:
            if old.reads.get(read) != now:
                yield Reason("rows may differ", f"follows {read}", None)
            return
        if old.reads.get(read) not in (None, made_by(fingerprint_of)):
            yield Reason("rows may differ", f"follows {read}: that was written otherwise since", None)
            return
        effect = self._effects.get(read, _Effect(None))
        yield from _through(read, effect, self._now.of(name), lambda: self._now.use(name))


def _through(read: str, effect: _Effect, reader: Fingerprint, use_of: Callable[[], Use]) -> Iterator[Reason]:
    """What becomes of a reader of a table with other columns."""
    if effect.columns is None:
        yield Reason("rows may differ", f"follows {read}", None)
        return
    if not effect.columns and not effect.gone:
        return
    use = use_of()
    words = use.rest.union(*use.columns.values())
    for column in sorted(effect.gone):
        passed = {name for name, _ in reader.schema} - {*use.columns}
        if column.lower() in words or column in passed:
            yield Reason("breaking", f"follows {read}: its column {column} is gone", None)
    if use.is_whole:
        yield Reason("rows may differ", f"follows {read}: it uses its rows whole", None)
        return
    for column in sorted(effect.columns):
        if column.lower() in use.rest:
            yield Reason("rows may differ", f"follows {read}: {column}", None)
        elif reached := _columns_of(column, reader, use):
            yield Reason("rows may differ", f"follows {read}: {column}", reached)


def _columns_of(column: str, reader: Fingerprint, use: Use) -> frozenset[str]:
    """The columns of a reader that are made of a column, where nothing else of it is."""
    computed = {name for name, words in use.columns.items() if column.lower() in words}
    passed = {name for name, _ in reader.schema if name.lower() == column.lower() and name not in use.columns}
    return frozenset(computed | passed)


def _of_schema(old: Fingerprint, new: Fingerprint, *, is_of_source: bool) -> Iterator[Reason]:
    was, now = dict(old.schema), dict(new.schema)
    for name, kind in was.items():
        if name not in now:
            yield Reason("breaking", f"column {name} is gone")
        elif kind != now[name]:
            is_looser = kind == f"{now[name]}{NOT_NULL}"
            text = f"column {name}: {kind} → {now[name]}"
            yield Reason("rows may differ" if is_looser else "breaking", text, frozenset([name]))
    for name, kind in now.items():
        if name not in was:
            text = f"column {name} is added: {kind}"
            yield Reason("columns added", text, frozenset([name]))
            if is_of_source:
                yield Reason("rows may differ", f"{text}: which rows are valid, and newest, depends on it", None)
    kept = [name for name in was if name in now]
    if kept != [name for name in now if name in was]:
        yield Reason("rows may differ", "its columns have another order", None)
    if old.comments != new.comments and was == now:
        yield Reason("unchanged", "comments of its columns differ")


def _of_rules(old: Fingerprint, new: Fingerprint, *, is_of_source: bool) -> Iterator[Reason]:
    """Other expectations: those of the rows of a source decide which of them are valid."""
    for name in {**old.rules, **new.rules}:
        was, now = old.rules.get(name), new.rules.get(name)
        if was == now:
            continue
        decides = is_of_source and ROW in (f"{was}".partition(" ")[0], f"{now}".partition(" ")[0])
        text = f"expectation {name} {_change_of_rule(was, now)}"
        if decides:
            yield Reason("rows may differ", f"{text}: other rows are valid", None)
        else:
            yield Reason("checked differently", text)
    for text in _differences(old.limits, new.limits):
        yield Reason("checked differently", f"limit of {text}")


def _change_of_rule(was: str | None, now: str | None) -> str:
    if was is None or now is None:
        return "is added" if was is None else "is gone"
    before, after = (text.split(" ", 2)[2:] for text in (was, now))
    return f"changed: {' '.join(before)} → {' '.join(after)}" if before != after else "changed"


def _differences(was: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    return [
        f"{name}: {was.get(name, 'none')} → {now.get(name, 'none')}"
        for name in {**was, **now}
        if was.get(name) != now.get(name)
    ]


def _joined(columns: Iterable[frozenset[str] | None]) -> set[str] | None:
    found = set[str]()
    for each in columns:
        if each is None:
            return None
        found |= each
    return found


def _shown(label: tuple[str, str], places: Mapping[tuple[str, str], tuple[str, int]]) -> str:
    """A part of a function in words, with file and line where these are known."""
    module, name = label
    file, line = places.get(label, ("", 0))
    if name == "*":
        return f"the module {module}" if file or "." in module else f"a module of {module}"
    return f"{name} in {CodeLocation(file, line).shown if file and line else module}"
