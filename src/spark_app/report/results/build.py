"""Makes the JSON document of an application from the sections of its report, in numbers instead of text."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType, SimpleNamespace
from typing import Any, Final

from msgspec.structs import replace

from spark_app.eventlog import cost, span_ids
from spark_app.eventlog.comparison.compare import Comparison, FunctionChange
from spark_app.eventlog.document import StageKey
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.reader import Reading
from spark_app.report.limits import Limits
from spark_app.report.parts import Figures
from spark_app.report.results import schema
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import Scope, scope
from spark_app.report.sections import connect, headline, queries, stages, streams
from spark_app.report.sections.replays import Replays
from spark_app.report.sections.stack_samples import Row, StackSection
from spark_app.report.sections.unexplained import Unexplained
from spark_app.report.values import DIGITS, document, quotient
from spark_app.settings import Prices

LIMITS: Final = Limits(operators=0, tasks=0, points=1)
"""Those of the report; plans, tasks and charts are not in the document."""
MAX_FUNCTIONS: Final = 20
"""Of a stage."""


def application(
    reading: Reading,
    run: RunInfo | None,
    findings: list[Finding],
    compared: Comparison | None,
    *,
    report: str,
    prices: Prices | None = None,
    limits: Limits = LIMITS,
    labels: Mapping[str, str] = MappingProxyType({}),
) -> schema.Application:
    """What a report says of an application, or of a run in it.

    Args:
        reading: Its event log.
        run: The run that the report is about; None for the whole application.
        findings: Findings about it, worst first; all of them, which `fail_on.judged` judges before it cuts them.
        compared: How it compares with earlier ones.
        report: The path or the URL of the report.
        prices: What executors cost.
        limits: How many stages, queries, streaming queries and log records are listed.
        labels: Whom it belongs to.
    """
    about, app, record = scope(reading.app, run), reading.app, run.record if run else None
    top = headline.headline(about)
    shown = SimpleNamespace(
        id=app.id,
        name=about.title,
        log=reading.log.absolute(),
        report=report,
        spark_version=app.spark_version or None,
        started=about.period.start or None,
        ended=run.ended if run else app.ended,
        outcome=record.outcome if record else "running" if run else ending_of(app).outcome,
        summary=top.outcome,
        error=top.error,
        figures=_with_cost(top.figures, cost.spent(app, about.period.start, about.period.end), prices),
        **_sections(about, limits, prices),
        replays=None,
        stack_samples=None,
        unexplained=[],
        log_records=list(app.log_records)[-limits.logs :],
        trace_id=f"{span_ids.of_application(app).trace_id:032x}",
        run=_run(run) if run else None,
        findings=findings,
        comparison=compared,
        labels=labels,
        remarks=headline.unread(reading, about),
    )
    return document(schema.Application, shown)


def _sections(about: Scope, limits: Limits, prices: Prices | None) -> dict[str, Any]:
    """The lists of the document that sections make, by their names there; one that raises is empty, and a remark."""
    failed = about.app.failed_parts
    return {
        "stages": failed.get("section stages", lambda: stages.stages(about, limits).shown, []),
        "queries": failed.get("section queries", lambda: queries.queries(about, limits).shown, []),
        "streaming_queries": failed.get("section streams", lambda: streams.streams(about, limits).shown, []),
        "connect": failed.get("section connect", lambda: connect.connect(about, limits, prices), None),
    }


def replays(found: Replays | None) -> Replays | None:
    """Blocked time and forecasts, which are computed once for a report and its document."""
    return None if found is None else document(Replays, found)


def unexplained(works: Sequence[Unexplained]) -> list[Unexplained]:
    """The work with much of the time that no finding claims."""
    return [document(Unexplained, work) for work in works]


def stack_samples(section: StackSection | None) -> schema.StackSamples | None:
    """Samples of stacks by stage, with the user's hottest functions."""
    if section is None:
        return None
    of_tasks = section.of_tasks.samples
    shown = schema.StackSamples(
        section.profile.intervals_ms,
        section.total.samples,
        of_tasks,
        quotient(section.in_stages.samples, of_tasks),
        section.jvm_cpu_ratio,
        section.profile.scaled_from,
        [_place_samples(section, row) for row in section.rows[: section.limits.stages]],
    )
    return document(schema.StackSamples, shown)


def place_samples(section: StackSection, row: Row) -> schema.PlaceSamples:
    """The samples of a stage, or of the driver."""
    return document(schema.PlaceSamples, _place_samples(section, row))


def _place_samples(section: StackSection, row: Row) -> schema.PlaceSamples:
    hot = [each for each in section.functions if each.place == row.place][:MAX_FUNCTIONS]
    functions = [
        schema.HotFunction(
            language=each.function.language,
            name=each.function.name,
            file=each.function.file,
            line=each.time.line or None,
            is_udf=each.time.is_udf,
            samples=each.time.innermost.samples,
            innermost_ratio=each.share,
            innermost_error_ratio=each.apart,
            total_ratio=each.total_share,
        )
        for each in hot
    ]
    return schema.PlaceSamples(
        place=row.name,
        stage=StageKey(*row.place) if isinstance(row.place, tuple) else None,
        samples=row.part.total.samples,
        jvm_ratio=row.share("jvm"),
        python_ratio=row.share("python"),
        reading_and_writing_ratio=row.share("reading and writing"),
        lock_ratio=row.share("lock"),
        waiting_for_python_ratio=row.share("waiting for python"),
        waiting_ratio=row.share("waiting"),
        gc_ratio=row.collecting,
        functions=functions,
        spark_work=row.works,
    )


def finding(found: Finding) -> schema.Finding:
    """A finding with its evidence."""
    return document(schema.Finding, found)


def comparison(compared: Comparison, functions: Sequence[FunctionChange] = ()) -> Comparison:
    """Why a run took longer or shorter than before, and which functions grew by samples of their stacks."""
    return document(Comparison, replace(compared, functions=[*functions]))


def judged_forecasts(decided: Sequence[object]) -> list[schema.JudgedForecast]:
    """Forecasts that a run has decided."""
    return [document(schema.JudgedForecast, each) for each in decided]


def _run(run: RunInfo) -> schema.Run:
    pipeline, part = (run.record.pipeline, run.record.slice) if run.record else (run.title, "")
    return schema.Run(run.folder.name, pipeline, part, run.trace_id)


def _with_cost(figures: Figures, spent: cost.CoreHours | None, prices: Prices | None) -> Figures:
    """The figures with what executors took, and its price."""
    price = spent.price(prices) if spent and prices else None
    return replace(
        figures,
        core_hours=spent and spent.core_hours,
        gib_hours=spent and spent.gib_hours,
        price=None if price is None else round(price, DIGITS),
        currency=prices.currency if prices and price is not None else None,
    )
