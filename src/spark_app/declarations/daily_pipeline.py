"""The pipeline that a module's declarations of daily tables make: order, commits, audit and reconciliation follow."""

import datetime
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from pydantic import create_model
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BooleanType, StructField, StructType

from spark_app.declarations import column_lineage
from spark_app.declarations.column_lineage import FunctionInput
from spark_app.declarations.declaration import OF_SCHEMA, Declared, Source
from spark_app.declarations.pipeline import Pipeline, ordered
from spark_app.declarations.trials import NO_DAY, EmptyInputs, Trial, visible
from spark_app.engine import failing_rows, ingest, project_metric, state
from spark_app.engine.context import DailyContext
from spark_app.engine.failing_rows import Computation
from spark_app.engine.ingest import Audit, DailyConfig, IngestSpec
from spark_app.errors import QualityGateError
from spark_app.quality import expectations as expect
from spark_app.quality.expectations import Expectation, Rule, Summary
from spark_app.quality.results import FRESHNESS, ExpectationResult, end_of
from spark_app.spark import call_sites
from spark_app.warehouse.delta_log import Commit
from spark_app.warehouse.hadoop_files import SparkReader
from spark_app.warehouse.source_files import origin
from spark_app.warehouse.tables import DELETED


class _Audited(NamedTuple):
    """The table of a source, after its rows were judged."""

    audit: Audit
    rows: DataFrame
    key: Sequence[str]


class DailyPipeline(Pipeline):
    """A pipeline of a day."""

    kind = "daily tables"

    def __init__(self, name: str, declared: Sequence[Declared]) -> None:
        """The pipeline of a module.

        Args:
            name: Its name.
            declared: What the module declares.

        Raises:
            DeclarationError: It declares two sources, or tables that read each other in a circle.
        """
        own = {each.name: each for each in declared}

        def circle(found: Sequence[str]) -> Exception:
            problem = f"tables read each other in a circle: {' -> '.join(found)}"
            if len({*found}) == 1:
                problem = f"{found[0]} reads itself: @daily.state declares a table that is kept from day to day"
            return own[found[0]].location.error(problem)

        names = ordered({each.name: each.reads for each in declared}, {name: name for name in own}, circle)
        self.declared = [own[each] for each in names]
        sources = [each for each in self.declared if each.source]
        if len(sources) > 1:
            raise sources[1].location.error(f"{name} has a source already, {sources[0].name}: one module declares one")
        config = create_model("Config", __base__=DailyConfig)
        config.expectation_names = _names(self.declared)
        super().__init__(
            name=name,
            location=declared[0].location,
            config=config,
            sources=tuple(each.source.name for each in sources if each.source),
            origins={each.source.name: each.source.origin for each in sources if each.source and each.source.origin},
            reads=tuple(dict.fromkeys(read for each in declared for read in each.reads if read not in own)),
            writes=tuple(each.table for each in self.declared),
            functions=[(each.name, each.location, each.reads) for each in self.declared],
        )

    def trials(self, empty: EmptyInputs) -> Iterator[Trial]:
        """Its functions, to be called with frames without rows."""
        for declared in self.declared:
            plan = _plan_source if declared.source else _plan_table
            yield Trial(declared.name, declared.location, partial(plan, declared, empty))

    def run(self, context: DailyContext, config: DailyConfig) -> None:
        """Writes the tables of the day, or raises and leaves what was published as it was."""
        audited, commits = dict[str, _Audited](), dict[str, Commit]()
        for declared in self.declared:
            with call_sites.work_of(declared.name, declared.location.file, declared.location.line):
                if declared.source:
                    audited[declared.name] = self._ingested(context, config, declared, declared.source)
                elif declared.is_state:
                    commits[declared.name] = _merged(context, declared, audited, commits)
                else:
                    commits[declared.name] = self._written(context, config, declared, audited, commits)

    def _ingested(self, context: DailyContext, config: DailyConfig, declared: Declared, source: Source) -> _Audited:
        """Writes the table of the source, and judges its rows.

        Raises:
            QualityGateError: More rows violate an expectation than its limit allows.
            ReconciliationError: The rows that were read do not add up.
        """
        rules = declared.rules(context.settings)
        summaries = [rule for rule in rules if not isinstance(rule, Expectation)]
        spec = IngestSpec.declare(
            context,
            config,
            source=source.name,
            origin=origin(context.settings, source.name, self.origins.get(source.name)),
            table=declared.name,
            schema=source.schema,
            key=source.key,
            expectations=_of_rows(source, rules),
        )
        made_of = _raw_content(context, spec)
        made_of |= context.reads_of(declared.reads, context.date)
        typed = _read(context, spec, source)
        with failing_rows.named(partial(_of_source, context, spec, declared, source, typed)):
            rows = _bronze(context, spec, declared, source, typed)
            commit = context.replace_partition(rows, spec.table, reads=made_of, is_judged=False)
        with context.step(f"audit {spec.table}", kind="transform"):
            measures = [measure for summary in summaries for measure in summary.measures()]
            audit = ingest.audit(context, spec, commit, measures=measures)
            counted = _counted(ingest.latest(context, spec, audit), summaries, audit)
        if spec.is_checked:
            results = [*ingest.results(context, spec, audit), *_summarized(context, summaries, audit, counted, spec)]
            with _rejecting(context, spec.table):
                context.enforce(results, table=spec.table)
        context.reconcile(
            read=commit.rows, published=audit.latest, quarantined=audit.quarantined, duplicates=audit.duplicates
        )
        context.accept(spec.table)
        rows = ingest.latest(context, spec, audit).select(*declared.schema.names, "date")
        return _Audited(audit, rows, source.key)

    def _written(
        self,
        context: DailyContext,
        config: DailyConfig,
        declared: Declared,
        audited: Mapping[str, _Audited],
        commits: Mapping[str, Commit],
    ) -> Commit:
        """Writes a table of the day, after its expectations were judged."""
        made_of = context.reads_of(declared.reads, context.date)
        inputs = {name: _rows(context, name, audited, commits, context.date) for name in declared.reads}
        rows = _returned(declared, list(inputs.values()))
        origins = column_lineage.of_tables(context, inputs)
        column_lineage.record(context, declared.name, declared.schema.names, rows, origins)
        counted = [audited[name].audit.latest for name in declared.reads if name in audited and declared.key]
        is_last = declared is self.declared[-1]
        with failing_rows.named(partial(_of_tables, context, declared, inputs, audited)):
            _check(context, config, declared, rows)
            commit = context.replace_partition(
                rows,
                declared.name,
                kind="publish" if is_last else "write",
                count=counted[0] if counted else None,
                reads=made_of,
            )
        if counted or (is_last and not audited):
            context.report_rows(published=commit.rows)
        if declared.metrics:
            context.telemetry.errors.guard(f"{declared.name} not measured", _measure, context, declared, commit)
        return commit


def _check(context: DailyContext, config: DailyConfig, declared: Declared, rows: DataFrame) -> None:
    """Judges the rows of a table, before they are written.

    Raises:
        QualityGateError: More rows violate an expectation than its limit allows.
    """
    rules = [rule for rule in declared.rules(context.settings) if isinstance(rule, Expectation)]
    if rules and config.checks:
        context.declare(declared.name, [rule.name for rule in rules])
        with context.step(f"check {declared.name}", kind="transform"):
            results = _results(rows, rules, config)
        context.enforce(results, table=declared.name)


def _plan_source(declared: Declared, empty: EmptyInputs) -> None:
    """Plans the table of a source without rows."""
    assert declared.source is not None
    source, rules = declared.source, declared.rules(empty.settings)
    inputs = {name: empty.day_of(name) for name in declared.reads}
    rows = _with_columns(declared, _typed(empty.raw(source.schema), source, NO_DAY), inputs)
    judged = _judged(declared, source, rows, _of_rows(source, rules), NO_DAY)
    judged = declared.location.require_types(declared.name, judged, declared.table.schema)
    measures = [measure for rule in rules if not isinstance(rule, Expectation) for measure in rule.measures()]
    judged.agg(F.count(F.lit(1)), *measures)


def _plan_table(declared: Declared, empty: EmptyInputs) -> None:
    """Plans a table of a day, or a state, without rows."""
    inputs = {name: empty.day_of(name) for name in declared.parameters}
    rows = _changed(declared, inputs) if declared.is_state else _returned(declared, list(inputs.values()))
    rules = [rule for rule in declared.rules(empty.settings) if isinstance(rule, Expectation)]
    rows.agg(F.count(F.lit(1)), *[rule.violations() for rule in rules])


def _merged(
    context: DailyContext, declared: Declared, audited: Mapping[str, _Audited], commits: Mapping[str, Commit]
) -> Commit:
    """Merges what the function returns into the state, which must have each row of its source then."""

    def inputs_of(day: datetime.date, old: DataFrame) -> dict[str, DataFrame]:
        return {
            name: old if name == declared.name else _rows(context, name, audited, commits, day)
            for name in declared.parameters
        }

    feed = declared.feed
    kept = state.State.of(declared.table, keeps_deleted=feed.keeps_deleted)

    def changes(day: datetime.date, old: DataFrame) -> DataFrame:
        inputs = inputs_of(day, old)
        rows = _changed(declared, inputs)
        origins = column_lineage.of_tables(context, inputs)
        column_lineage.record(context, declared.name, declared.schema.names, rows, origins)
        deleted = state.deleted_before(context, kept, day) if feed.keeps_deleted else old.where("false")
        return feed.changes(rows, old, deleted)

    def confirm(now: DataFrame, commit: Commit | None) -> None:
        for of_source in (audited[name] for name in declared.reads if name in audited):
            # Of a change feed, rows of the day may rightly be missing from the state.
            if {*of_source.key} == {*declared.key} and not (declared.deleted or declared.newest):
                with context.step(f"count {declared.name}", kind="transform"):
                    # The merge writes what changed, which may be less or more than the rows of the day.
                    same = of_source.rows.alias("new").join(now.alias("old"), F.expr(kept.is_same), "left_semi")
                    published = same.count()
                context.report_rows(published=published)
                context.confirm(declared.name, commit, count=of_source.audit.latest, published=published)

    def failing() -> Computation:
        return _of_tables(context, declared, inputs_of(context.date, context.table(declared.name)), audited)

    with failing_rows.named(failing):
        return state.apply(context, kept, changes, partial(context.reads_of, declared.reads), confirm)


def _measure(context: DailyContext, declared: Declared, commit: Commit) -> None:
    with context.step(f"measure {declared.name}", kind="transform"):
        published = context.partition(declared.name, version=commit.version)
        project_metric.measure(context, declared.metrics, published)


def _names(declared: Sequence[Declared]) -> list[str]:
    names = list[str]()
    for each in declared:
        rules = each.rules()
        further = [rule.name for rule in rules if not isinstance(rule, Expectation)]
        if each.source:
            names += ingest.declared_expectations(_of_rows(each.source, rules), expect.DUPLICATES, *further)
        else:
            names += [rule.name for rule in rules]
    return list(dict.fromkeys(names))


def _of_rows(source: Source, rules: Sequence[Rule]) -> list[Expectation]:
    """The expectations about each row: those that are declared, and that its values can be read."""
    own = [rule for rule in rules if isinstance(rule, Expectation)]
    return [*own, *expect.readable_columns(source.schema)]


def _counted(latest: DataFrame, summaries: Sequence[Summary], audit: Audit) -> Mapping[str, int]:
    """By summary that is about rows, the rows to be published that violate it."""
    conditions = {summary.name: summary.condition(audit.measures) for summary in summaries}
    counts = [F.count_if(F.expr(text)).alias(name) for name, text in conditions.items() if text is not None]
    return latest.agg(*counts).collect()[0].asDict() if counts else {}


def _summarized(
    context: DailyContext, summaries: Sequence[Summary], audit: Audit, counted: Mapping[str, int], spec: IngestSpec
) -> list[ExpectationResult]:
    """The results of the summaries, of which reports show the measures."""
    found = list[ExpectationResult]()
    for summary in summaries:
        context.facts |= summary.facts(audit.measures)
        violations = counted.get(summary.name, 0)
        found.append(summary.result(audit.measures, violations, audit.latest, spec.limits, context.date))
        if summary.name == FRESHNESS:
            context.telemetry.record_freshness(spec.source, seconds=found[-1].value, as_of=end_of(context.date))
    return found


def _read(context: DailyContext, spec: IngestSpec, source: Source) -> DataFrame:
    raw = context.read_raw(
        source.name,
        spec.origin,
        schema=source.delivered,
        names=source.schema.names,
        bronze=spec.table,
        may_be_empty=source.may_be_empty,
    )
    return _typed(raw, source, context.date)


def _of_source(
    context: DailyContext, spec: IngestSpec, declared: Declared, source: Source, typed: DataFrame
) -> Computation:
    """What is computed of raw rows; one that fails is in no table yet, but in a file."""

    def compute(rows: DataFrame) -> DataFrame:
        inputs = {name: _rows(context, name, {}, {}, context.date) for name in declared.reads}
        return _judged(declared, source, declared(rows, **inputs), spec.expectations, context.date)

    def look(condition: str) -> str:
        return f"{condition}, in {spec.origin.where(context.date)}"

    return Computation(declared.name, declared.location, typed, source.name, source.key, compute, look)


def _of_tables(
    context: DailyContext, declared: Declared, inputs: Mapping[str, DataFrame], audited: Mapping[str, _Audited]
) -> Computation:
    """What is computed of the rows of tables: a row of the first of them may fail."""
    first = declared.reads[0]
    table = context.warehouse.tables[first]
    key = audited[first].key if first in audited else table.key
    day = f" --date {context.date}" if table.day else ""
    return Computation(
        declared.name,
        declared.location,
        inputs[first],
        first,
        key,
        lambda rows: _returned(declared, [{**inputs, first: rows}[name] for name in declared.parameters]),
        lambda condition: f'spark-app show {first}{day} --where "{condition}"',
    )


def _bronze(context: DailyContext, spec: IngestSpec, declared: Declared, source: Source, typed: DataFrame) -> DataFrame:
    with context.step(f"transform {source.name}", kind="transform"):
        inputs = {name: _rows(context, name, {}, {}, context.date) for name in declared.reads}
        rows = _with_columns(declared, typed, inputs)
        origins = column_lineage.of_tables(context, inputs)
        origins |= {f"{source.name}{column_lineage.RAW}": FunctionInput(typed, _raw_folder(context, spec))}
        column_lineage.record(context, declared.name, declared.schema.names, rows, origins)
        return _judged(declared, source, rows, spec.expectations, context.date)


def _typed(raw: DataFrame, source: Source, day: datetime.date) -> DataFrame:
    return ingest.typed(raw, schema=source.schema).withColumn("date", F.lit(day))


def _with_columns(declared: Declared, typed: DataFrame, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """What the function of a source makes of its typed rows.

    Raises:
        DeclarationError: It returns no rows, or leaves a column out.
    """
    rows = declared.location.require_frame(declared.name, declared(typed, **inputs))
    declared.location.require_returned(declared.name, rows.columns, [*ingest.PARSED, *declared.schema.names], OF_SCHEMA)
    return rows


def _judged(
    declared: Declared, source: Source, rows: DataFrame, expectations: Sequence[Expectation], day: datetime.date
) -> DataFrame:
    """The rows of the table of a source: each with the expectations that it violates, and its rank."""
    checked = ingest.with_violations(rows, columns=declared.schema.names, expectations=expectations, date=day)
    ranked = ingest.with_version_rank(checked, key=source.key, newest_first=source.order)
    return ranked.select(*declared.table.schema.names)


def _raw_folder(context: DailyContext, spec: IngestSpec) -> str | None:
    """The folder of the days of a source; a replay has its rows from the table itself."""
    return None if context.is_replay else spec.origin.path


def _rows(
    context: DailyContext,
    name: str,
    audited: Mapping[str, _Audited],
    commits: Mapping[str, Commit],
    day: datetime.date,
) -> DataFrame:
    """The rows of a table that a function gets for a day: those of this run, of the day, or all; a state as of it."""
    is_today, table = day == context.date, context.warehouse.tables[name]
    if is_today and name in audited:
        return audited[name].rows
    if table.key and not table.validity:
        return state.as_of(context, state.State.of(table), day)
    version = commits[name].version if is_today and name in commits else None
    rows = context.table(name, version=version)
    if table.day is None:
        return rows
    rows = rows.where(context.warehouse.partition_filter(name, day))
    if table.source is None:
        return rows
    if not is_today:
        state.require_accepted(context, name, day)
    return rows.where("version_rank = 1").select(*visible(table))


@contextmanager
def _rejecting(context: DailyContext, table: str) -> Iterator[None]:
    try:
        yield
    except QualityGateError:
        context.reject(table)
        raise


def _raw_content(context: DailyContext, spec: IngestSpec) -> dict[str, str]:
    """Names the raw rows of the day, where somebody can tell; in a replay, those that the rows once came from."""
    name = f"{spec.origin.content_name}{spec.source}"
    if context.is_replay:
        known = context.warehouse.periods.period(spec.table, context.date).reads
        return {name: known[name]} if name in known else {}
    content = spec.origin.content(SparkReader(context.spark), context.date)
    return {} if content is None else {name: content}


def _returned(declared: Declared, inputs: Sequence[DataFrame]) -> DataFrame:
    rows = declared.location.require_frame(declared.name, declared(*inputs))
    declared.location.require_returned(declared.name, rows.columns, declared.schema.names, OF_SCHEMA)
    return declared.location.require_types(declared.name, rows.select(*declared.schema.names), declared.schema)


def _changed(declared: Declared, inputs: Mapping[str, DataFrame]) -> DataFrame:
    """What the function of a state returns, with the column `DELETED` if it may delete rows."""
    rows = declared.location.require_frame(declared.name, declared(*inputs.values()))
    declared.location.require_returned(declared.name, rows.columns, declared.schema.names, OF_SCHEMA)
    if declared.deleted:
        kind = rows.select(F.expr(declared.deleted)).schema.fields[0].dataType
        if kind != BooleanType():
            raise declared.location.error(
                f"{declared.name}: deleted={declared.deleted!r} is {kind.simpleString()}, and no condition: write one, "
                "such as \"op = 'D'\""
            )
    rows = declared.feed.marked(rows)
    marks = [StructField(DELETED, BooleanType())] if declared.deleted else []
    wanted = StructType([*declared.schema, *marks])
    return declared.location.require_types(declared.name, rows.select(*wanted.names), wanted)


def _results(rows: DataFrame, rules: Sequence[Expectation], config: DailyConfig) -> list[ExpectationResult]:
    found = rows.agg(F.count(F.lit(1)).alias("rows"), *[rule.violations() for rule in rules]).collect()[0]
    limits = config.all_limits
    return [expect.result(each.name, found[each.name], found["rows"], limits) for each in rules]
