"""Names the work of stages, with equal names in every run of a program, for metrics and comparisons.

A call site is a part of a name without its line, which changes with every edit above it. `work_names` names the same
work for a person, with the line.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from spark_app.eventlog.model import batch_descriptions, call_sites
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.connect import Operation, is_request
from spark_app.eventlog.model.entities import Job, Query, StageAttempt
from spark_app.eventlog.model.plan_names import EXCHANGE, IN_MEMORY_TABLE_SCAN
from spark_app.eventlog.parse.events import RddInfo
from spark_app.redaction import redacted, shortened

MAX_LENGTH: Final = 120
"""Characters of the name of a group; longer ones are truncated."""
MAX_SQL: Final = 80
"""Characters of SQL in a name."""
MAX_READ: Final = 500
"""Characters of a description that the patterns search; their cost grows with the square of the length of a word."""
_PATH: Final = re.compile(r"(?:\w+:)?/\S*?([^/\s]+)/?(?=\s|$)")
_VARYING: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\btmp[a-z0-9_]{8}\b"
    r"|\b(?![A-Za-z_]+\d{1,2}\b)\w*\d\w*",
    re.IGNORECASE,
)  # fmt: skip
_LITERAL: Final = re.compile(r"'(?:[^'\\]|\\.)*+(?:'|$)|\"(?:[^\"\\]|\\.)*+(?:\"|$)", re.DOTALL)
_AGAIN: Final = re.compile(r"#(?:\W?#)+")


class _Scope(msgspec.Struct):
    name: str


def group_of(app: Application, stage: StageAttempt) -> str:
    """The name of the work of a stage, with the sources and the target of its rows: `load sales [json > shuffle]`.

    The name is known when the stage is submitted, and never changes after the first call. Dates, paths, ids and
    other numbers in it are `#` or left out.
    """
    if stage.group is None:
        stage.group = _group(app, stage)
    return stage.group


def work_of(app: Application, stage: StageAttempt) -> str:
    """The name of the group of a stage without the sources and the target of its rows."""
    return group_of(app, stage).rpartition(" [")[0]


def _group(app: Application, stage: StageAttempt) -> str:
    job = app.job_of(stage)
    texts = (text for text in _texts(app, stage, job) if text)
    work = next(texts, "") or _varied(call_sites.called(stage.info.name))
    rows = flow_of(app, stage)
    return f"{shortened(work, MAX_LENGTH)} [{rows}]"


def flow_of(app: Application, stage: StageAttempt) -> str:
    """Where the rows of a stage come from and go: `json > shuffle`."""
    return " > ".join(filter(None, ("+".join(_sources(stage)), _target(stage, app.job_of(stage)))))


def _texts(app: Application, stage: StageAttempt, job: Job | None) -> Iterator[str]:
    """Descriptions and call sites of a stage, the most specific first; empty where they lead into Spark."""
    if job is not None:
        yield name_of_operation(job.operation) if job.operation is not None else ""
        yield stable_name(job.properties.description)
        query = app.query_of(job)
        while query is not None:
            yield _query_name(query)
            query = app.queries.get(query.root) if query.root is not None else None
    yield stable_name(stage.info.name)
    yield stable_name(job.properties.call_site if job is not None else None)


def _query_name(query: Query) -> str:
    """The description or call of a query; a call with the folder or the table that it writes."""
    text = stable_name(query.description)
    if not query.target or call_sites.parse(query.description) is None:
        return text
    return f"{text}{':' if ' at ' in text else ''} {_varied(query.target.name.rstrip('/').rpartition('/')[2])}"


def name_of_operation(operation: Operation) -> str:
    """What an operation of Spark Connect does, without literals and lines: `SELECT shop, count(*) FROM orders`."""
    statement, site = operation.statement, operation.statement.call_site
    if statement.sql and statement.subject is None:
        return shortened(_varied(_LITERAL.sub("#", statement.sql)), MAX_SQL)
    name = " ".join(filter(None, (statement.kind, _varied((statement.subject or "").rpartition("/")[2]))))
    return f"{name} at {_varied(site.file.rpartition('/')[2])}" if site else name


def stable_name(text: str | None) -> str:
    """A description or a call site without its line and what else varies.

    Empty for a call from inside Spark, and for the text of a request of Spark Connect.
    """
    site, batch = call_sites.parse(text), batch_descriptions.parse(text)
    if is_request(text):
        return ""
    if site is None:
        return _varied(batch.name if batch else text or "")
    if site.is_internal:
        return ""
    return f"{site.call} at {_varied(site.file.rpartition('/')[2])}" if site.is_of_program else site.action


def _varied(text: str) -> str:
    """A text with `#` for dates, ids and other numbers; short numbers at the end of a word stay: q64, v2."""
    shorter = _PATH.sub(r"\1", redacted(" ".join(text[:MAX_READ].split()))[:MAX_READ])
    return _AGAIN.sub("#", _VARYING.sub("#", shorter))


def _sources(stage: StageAttempt) -> list[str]:
    """The sources of the rows of a stage: file formats, the cache, a shuffle."""
    sources = {source for rdd in stage.info.rdds if (source := _source(_scope(rdd)))}
    return sorted(sources | ({"shuffle"} if stage.info.parents else set()))


def _source(scope: str) -> str | None:
    if scope == IN_MEMORY_TABLE_SCAN:
        return "cache"
    return _varied(scope.split()[1]) if scope.startswith("Scan ") else None


def _target(stage: StageAttempt, job: Job | None) -> str:
    """The last stage of a job makes its result, unless it ends in an exchange, as shuffles of adaptive execution do."""
    last = max(stage.info.rdds, key=lambda rdd: rdd.id, default=None)
    is_shuffle = (job is not None and stage.info.id != max(job.stages)) or (last and _scope(last) == EXCHANGE)
    return "shuffle" if is_shuffle else "result"


def _scope(rdd: RddInfo) -> str:
    try:
        return msgspec.json.decode(rdd.scope or "", type=_Scope).name
    except msgspec.DecodeError:
        return ""
