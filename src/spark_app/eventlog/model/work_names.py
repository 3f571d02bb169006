"""Names queries and stages for a person: what the program calls them, the line of the program, and what they write.

`stage_groups` names the same work for metrics and comparisons, without what varies between runs.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Raw

from spark_app.eventlog.model import batch_descriptions, call_sites
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.connect import Operation, is_request
from spark_app.eventlog.model.entities import Job, Query
from spark_app.eventlog.model.plan_names import LOCATION, PATHS, SCAN_OF_TABLE
from spark_app.eventlog.parse.events import JobProperties, StageInfo
from spark_app.redaction import excerpt

MAX_SOURCES: Final = 3
"""How many sources of a query are named."""
MAX_SQL: Final = 120
"""Characters of SQL in the name of an operation."""
_CELL: Final = re.compile(r".*ipykernel_\d+/.*")
_LOCATION: Final = re.compile(rf'"{LOCATION}":"(?!DeltaLog){PATHS}([^\],"]+)'.encode())
_TABLE: Final = re.compile(rf'"nodeName":"{SCAN_OF_TABLE}"'.encode())


def of_query(app: Application, query: Query) -> str:
    """The name of a query: `clean orders, parquet at jobs/flights.py:24, writes out/orders`.

    A query within another query that has no name of its own has the name of that one.
    """
    return _joined(*_parts(app, query)) or "query"


def of_stage(app: Application, info: StageInfo, properties: JobProperties | None) -> str:
    """The name of the work of a stage: the description of its job and the line of the program, or that of its query."""
    own = [properties] if properties else []
    words, call = _description(properties.description) if properties else "", _call([info.name, *_sites(own)])
    if " at " in call:
        return _joined(words, call)
    execution = properties.execution if properties else None
    query = app.queries.get(int(execution)) if execution and execution.isdecimal() else None
    if query is not None:
        words, call, rows = _parts(app, query)
        return (_joined(words, call) if words or " at " in call else _joined(call, rows)) or "query"
    return _joined(words, call) or call_sites.called(info.name)


def of_operation(operation: Operation) -> str:
    """The beginning of the SQL of an operation, or what it does: `aggregate at jobs/flights.py:24`."""
    statement, site = operation.statement, operation.statement.call_site
    sql = excerpt(statement.sql, MAX_SQL) if statement.sql and statement.subject is None else ""
    name = sql or " ".join(filter(None, (statement.kind, statement.subject)))
    return f"{name} at {_file(site.file)}:{site.line}" if site else name


def of_job(job: Job) -> str:
    """What the program calls a job, and its line of the program; empty where the log has neither."""
    if job.operation is not None:
        return of_operation(job.operation)
    return _joined(_description(job.properties.description), _call(_sites([job.properties])))


def _parts(app: Application, query: Query) -> tuple[str, str, str]:
    """What the program calls a query, its call site or action, and what it writes, or reads if no more is known."""
    words, call = _named(app, query)
    root = None if query.root is None else app.queries.get(query.root)
    if root is not None and not (words or call):
        query, (words, call) = root, _named(app, root)
    if query.target:
        return words, call, f"writes {shortened_path(query.target.name)}"
    if words or " at " in call:
        return words, call, ""
    if query.sources is None:
        query.sources = _reads(query.plan)
    return words, call, query.sources


def _named(app: Application, query: Query) -> tuple[str, str]:
    """What the program, or the client of a server, calls a query; and its call site or action."""
    if query.operation is not None:
        return of_operation(_asked(app, query, query.operation)), ""
    return _description(query.description), _call(_texts(app, query))


def _asked(app: Application, query: Query, operation: Operation) -> Operation:
    """The operation that a query ran for; in a run of a pipeline the definition of its flow."""
    return (app.connect.flow(operation, query.target.name) if query.target else None) or operation


def _texts(app: Application, query: Query) -> list[str | None]:
    properties = [app.jobs[number].properties for number in query.jobs if number in app.jobs]
    return [query.details.partition("\n")[0], query.description, *_sites(properties)]


def _joined(*parts: str) -> str:
    return ", ".join(filter(None, parts))


def call_site(app: Application, query: Query) -> str | None:
    """The call and the line of the program that ran a query; None where the log does not have it."""
    if query.operation is not None:
        return of_client(_asked(app, query, query.operation))
    call = _call(_texts(app, query))
    return call if " at " in call else None


def of_client(operation: Operation) -> str | None:
    """The outermost line of the client in an operation; None where Spark has none, as of SQL."""
    site = operation.statement.call_site
    return None if site is None else f"{site.call} at {_file(site.file)}:{site.line}"


def placed(text: str) -> str:
    """A call site with the end of its path; empty if it leads to no line of the program."""
    call = _call([text])
    return call if " at " in call else ""


def _sites(properties: Iterable[JobProperties]) -> Iterator[str | None]:
    for each in properties:
        yield each.call_site
        yield each.stream_call_site


def _description(text: str | None) -> str:
    """What the program calls its work, or the batch of a streaming query; empty for a call site, or a request."""
    batch = batch_descriptions.parse(text)
    if batch is not None:
        return f"{batch.name or f'stream {batch.query[:8]}'}: batch {batch.batch}"
    return "" if call_sites.parse(text) or is_request(text) else " ".join((text or "").split())


def _call(texts: Iterable[str | None]) -> str:
    """The first call site with a line of the program; else the first action that was called; else empty."""
    calls = [site for site in map(call_sites.parse, texts) if site and not site.is_internal]
    line = next((site for site in calls if site.is_of_program), None)
    if line is not None:
        return f"{line.call} at {_file(line.file)}:{line.line}"
    return calls[0].action if calls else ""


def _file(file: str) -> str:
    """The end of the path of a program: `jobs/flights.py`."""
    return "notebook cell" if _CELL.fullmatch(file) else shortened_path(file)


def shortened_path(path: str) -> str:
    """The last two parts of a path."""
    return "/".join([part for part in path.split("/") if part][-2:]) or path


def _reads(plan: Raw) -> str:
    """What a query reads, by its plan."""
    text = bytes(plan)
    tables = (match[1].decode(errors="replace") for match in _TABLE.finditer(text))
    paths = (shortened_path(match[1].decode(errors="replace")) for match in _LOCATION.finditer(text))
    sources = list(dict.fromkeys([*tables, *paths]))
    more = f" and {len(sources) - MAX_SOURCES} more" if len(sources) > MAX_SOURCES else ""
    return f"reads {', '.join(sources[:MAX_SOURCES])}{more}" if sources else ""
