"""Makes the JSON document from what the report shows: the same sections, in numbers instead of text.

Milliseconds and bytes are whole, shares have four digits, and texts of programs have their secrets masked.
"""

from typing import Final

from msgspec.structs import replace

from spark_app.eventlog import cost, span_ids
from spark_app.eventlog.comparison import compare
from spark_app.eventlog.comparison.causes import Changed
from spark_app.eventlog.diagnoses.excerpts import error as shortened
from spark_app.eventlog.findings import Finding, Place
from spark_app.eventlog.model.entities import Totals
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.parse.events import LogRecord
from spark_app.eventlog.reader import Reading
from spark_app.redaction import redacted
from spark_app.report.formatting import line, text
from spark_app.report.limits import Limits
from spark_app.report.results import schema
from spark_app.report.results.values import DIGITS, evidence, instant, ratio, whole
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import scope
from spark_app.report.sections import findings as worst
from spark_app.report.sections import headline, queries, stages
from spark_app.report.sections.stages import Spread
from spark_app.settings import Prices

LIMITS: Final = Limits(operators=0, findings=1_000_000)
"""Those of the report, but with all findings, which `fail_on.judged` judges before it cuts them; plans are text."""
MOST_TEXT: Final = 800
MOST_NAME: Final = 240
_MEDIAN, _P95, _LONGEST = 2, 4, 5


def application(
    reading: Reading,
    run: RunInfo | None,
    findings: list[Finding],
    compared: compare.Comparison | None,
    *,
    report: str,
    prices: Prices | None = None,
    limits: Limits = LIMITS,
) -> schema.Application:
    """What a report says of an application, or of a run in it.

    Args:
        reading: Its event log.
        run: The run that the report is about; None for the whole application.
        findings: Findings about it, worst first.
        compared: How it compares with earlier ones.
        report: The path or the URL of the report.
        prices: What executors cost.
        limits: How many findings, stages and queries are listed.
    """
    about, app = scope(reading.app, run), reading.app
    top = headline.headline(about)
    record = run.record if run else None
    return schema.Application(
        id=_name(app.id),
        name=_name(about.title),
        log=redacted(str(reading.log.absolute())),
        report=redacted(report),
        run=_run(run),
        spark_version=app.spark_version and _name(app.spark_version),
        started=instant(about.period.start or None),
        ended=instant(run.ended if run else app.ended),
        outcome=record.outcome if record else "running" if run else ending_of(app).outcome,
        summary=_name(top.outcome),
        error=_error(top.error),
        figures=_figures(top.figures, cost.spent(app, about.period.start, about.period.end), prices),
        findings=[of_finding(each) for each in worst.findings(about, findings, limits).shown],
        stages=[of_stage(each) for each in stages.stages(about, limits).shown],
        queries=[of_query(each) for each in queries.queries(about, limits).shown],
        comparison=comparison(compared) if compared else None,
        remarks=[text(remark, MOST_TEXT) for remark in headline.unread(reading, about)],
        trace_id=f"{span_ids.of_application(app).trace_id:032x}",
        log_records=[_log_record(each) for each in list(app.log_records)[-limits.logs :]] if limits.logs else [],
    )


def comparison(compared: compare.Comparison) -> schema.Comparison:
    """Why a run took longer or shorter than before."""
    return schema.Comparison(
        application=_name(compared.application),
        now=_name(compared.now),
        before=_name(compared.before),
        runs=compared.runs,
        now_ms=round(compared.now_ms),
        before_ms=round(compared.before_ms),
        difference_ms=round(compared.difference_ms),
        difference_ratio=ratio(compared.difference_ms / compared.before_ms if compared.before_ms else None),
        noise_ms=round(compared.noise_ms),
        is_significant=not compared.is_noise,
        causes=[
            schema.Cause(each.kind, round(each.ms), _text(each.text), each.advice, _settings(each.settings))
            for each in compared.causes
        ],
        unexplained_ms=round(compared.unexplained_ms),
        settings=_settings(compared.settings),
        changes=[schema.Change(each.what, _text(each.text)) for each in compared.changes],
        remarks=[_text(each) for each in compared.remarks],
    )


def _log_record(record: LogRecord) -> schema.LogRecord:
    exception = _text(record.exception) if record.exception else None
    place, number = _name(record.file), max(0, record.line)
    return schema.LogRecord(
        instant(record.time), record.severity, _name(record.logger), _text(record.message), place, number, exception
    )


def _text(content: object) -> str:
    return text(content, MOST_TEXT)


def _name(content: object) -> str:
    return line(content, MOST_NAME)


def _error(content: str | None) -> str | None:
    return None if content is None else text(shortened(content), MOST_TEXT)


def _run(run: RunInfo | None) -> schema.Run | None:
    if run is None:
        return None
    record = run.record
    return schema.Run(
        run_id=run.folder.name,
        pipeline=record.pipeline if record else run.title,
        slice=record.slice if record else "",
        trace_id=run.trace_id,
    )


def _figures(figures: schema.Figures, spent: cost.CoreHours | None, prices: Prices | None) -> schema.Figures:
    """The figures with what executors took, and its price."""
    price = spent.price(prices) if spent and prices else None
    return replace(
        figures,
        core_hours=ratio(spent.core_hours) if spent else None,
        gib_hours=ratio(spent.gib_hours) if spent else None,
        price=None if price is None else round(price, DIGITS),
        currency=prices.currency if prices and price is not None else None,
    )


def of_finding(found: Finding) -> schema.Finding:
    """A finding with its evidence."""
    return schema.Finding(
        rule=found.rule,
        severity=found.severity,
        subject=found.subject,
        text=_text(found.text),
        advice=_text(found.advice),
        evidence=evidence(found.numbers),
        cost_ms=whole(found.cost_ms),
        cost_ratio=ratio(found.cost_ratio),
        operator=found.operator and _name(found.operator),
        places=[_place(place) for place in found.places or (found.place,)],
    )


def _place(place: Place) -> schema.Place:
    stage = schema.StageKey(*place.stage) if place.stage else None
    return schema.Place(stage, place.query, place.stream and _name(place.stream), whole(place.cost_ms))


def of_stage(stage: stages.Stage) -> schema.Stage:
    """An attempt of a stage."""
    return schema.Stage(
        id=stage.id,
        attempt=stage.attempt,
        name=_name(stage.name),
        status=stage.status,
        error=_error(stage.failure),
        started=instant(stage.started),
        duration_ms=whole(stage.duration),
        tasks=stage.tasks,
        ended_tasks=stage.ended,
        failed_tasks=stage.failed,
        killed_tasks=stage.killed,
        task_times=_task_times(stage.spread),
        data=None if stage.totals is None else _data(stage.totals, is_input_missed=stage.is_input_missed),
        gc_ratio=ratio(stage.gc_share),
    )


def _data(totals: Totals, *, is_input_missed: bool) -> schema.Data:
    return schema.Data(
        rows_read=_counted(totals.input_records, totals.input_bytes),
        bytes_read=None if is_input_missed else _counted(totals.input_bytes, totals.input_records),
        rows_written=_counted(totals.output_records, totals.output_bytes),
        bytes_written=_counted(totals.output_bytes, totals.output_records),
        shuffle_read_bytes=totals.shuffle_read_bytes,
        shuffle_written_bytes=totals.shuffle_write_bytes,
        spilled_bytes=totals.disk_spilled,
    )


def _counted(number: int, other: int) -> int | None:
    """Rows, or bytes; unknown where only the other was counted."""
    return None if other and not number else number


def _task_times(spread: Spread | None) -> schema.TaskTimes | None:
    if spread is None:
        return None
    return schema.TaskTimes(*(max(0, round(spread.times[rank])) for rank in (_MEDIAN, _P95, _LONGEST)))


def of_query(query: queries.Sql) -> schema.Query:
    """A SQL execution, without its plan."""
    return schema.Query(
        id=query.id,
        name=_name(query.name),
        status=query.status,
        error=_error(query.error),
        started=instant(query.started),
        duration_ms=whole(query.duration),
        jobs=query.jobs,
    )


def _settings(changed: Changed) -> list[schema.Setting]:
    """The changed settings, which hold the value of before first."""
    return [
        schema.Setting(name, now and _text(now), before and _text(before)) for name, (before, now) in changed.items()
    ]
