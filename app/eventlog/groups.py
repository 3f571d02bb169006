"""Names for what stages do, the same in every run of a program: metrics and comparisons go by them.

Spark names a stage by its call site, which tells little of PySpark: `save at NativeMethodAccessorImpl.java:0`, and
`$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768` for what adaptive execution runs ahead.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from app.eventlog.application import Application
from app.eventlog.model import Job, Query, StageAttempt
from app.eventlog.parts import RddInfo
from app.redaction import redacted

MAX_LENGTH: Final = 120
"""Characters of a group; what is longer is cut."""
MAX_READ: Final = 500
"""Characters of a description that are looked at; what the patterns cost grows with the square of a word."""
_CALL: Final = re.compile(r"(?P<call>\S+) at (?P<file>.+):(?P<line>\d+)")
_ANONYMOUS: Final = re.compile(r"\$anonfun\$|\$\d+")
_NOWHERE: Final = ("NativeMethodAccessorImpl.java", "<unknown>")
_STREAM: Final = re.compile(r"(?:<br/>|\n|^)id = .*", re.DOTALL)
_PATH: Final = re.compile(r"(?:\w+:)?/\S*?([^/\s]+)/?(?=\s|$)")
_VARYING: Final = re.compile(
    r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
    r"|\btmp[a-z0-9_]{8}\b"
    r"|\b(?![A-Za-z_]+\d{1,2}\b)\w*\d\w*",
    re.IGNORECASE,
)  # fmt: skip
_WRITTEN: Final = re.compile(rb'InsertIntoHadoopFsRelationCommand ([^\s,"]+),')
_AGAIN: Final = re.compile(r"#(?:\W?#)+")


class _Scope(msgspec.Struct):
    name: str


def group_of(app: Application, stage: StageAttempt) -> str:
    """The name of what a stage does, with where its rows come from and go to: `load sales [json > shuffle]`.

    The name is known as soon as the stage is submitted, and never changes once it was asked for. Dates, paths, ids and
    other numbers in it are `#` or left out.
    """
    if stage.group is None:
        stage.group = _group(app, stage)
    return stage.group


def _group(app: Application, stage: StageAttempt) -> str:
    job = app.job_of(stage)
    told = (text for text in _texts(app, stage, job) if text)
    what = next(told, "") or _varied(_ANONYMOUS.sub("", stage.info.name.partition(" at ")[0]))
    rows = " > ".join(filter(None, ("+".join(_sources(stage)), _target(stage, job))))
    return f"{what if len(what) <= MAX_LENGTH else what[: MAX_LENGTH - 1] + '…'} [{rows}]"


def _texts(app: Application, stage: StageAttempt, job: Job | None) -> Iterator[str]:
    """Descriptions and call sites of a stage, the most telling first; empty where they say nothing."""
    if job is not None:
        yield said(job.properties.description)
        query = app.query_of(job)
        while query is not None:
            yield _asked(query)
            query = app.queries.get(query.root) if query.root is not None else None
    yield said(stage.info.name)
    yield said(job.properties.call_site if job is not None else None)


def _asked(query: Query) -> str:
    """A query's description or call. A call from Python has no line number: the folder that it writes to is added."""
    told = said(query.description)
    written = _WRITTEN.search(query.plan) if query.description.startswith(f"{told} at ") else None
    return f"{told} {_varied(written[1].decode(errors='replace'))}" if written else told


def said(text: str | None) -> str:
    """A description or a call site without what varies; a call from inside Spark says nothing."""
    call = _CALL.fullmatch(text or "")
    if call is None:
        return _varied(_STREAM.sub("", text or ""))
    if "$" in call["call"]:
        return ""
    file = call["file"].rpartition("/")[2]
    return call["call"] if is_nowhere(call[0]) else f"{call['call']} at {_varied(file)}:{call['line']}"


def is_nowhere(call_site: str) -> bool:
    """Whether a call site leads to no line of the program: the call came from Python, or from inside Spark."""
    call, _, place = call_site.rpartition(" at ")
    return place.startswith(_NOWHERE) or ("$" in call and " " not in call)


def _varied(text: str) -> str:
    """A text with `#` for dates, ids and other numbers; short numbers at the end of a word stay: q64, v2."""
    shorter = _PATH.sub(r"\1", redacted(" ".join(text[:MAX_READ].split()))[:MAX_READ])
    return _AGAIN.sub("#", _VARYING.sub("#", shorter))


def _sources(stage: StageAttempt) -> list[str]:
    """Where the rows of a stage come from: formats of files, the cache, a shuffle."""
    found = {source for rdd in stage.info.rdds if (source := _source(_scope(rdd)))}
    return sorted(found | ({"shuffle"} if stage.info.parents else set()))


def _source(scope: str) -> str | None:
    if scope == "InMemoryTableScan":
        return "cache"
    return _varied(scope.split()[1]) if scope.startswith("Scan ") else None


def _target(stage: StageAttempt, job: Job | None) -> str:
    """A job's last stage makes the result, unless it ends in an exchange: adaptive execution wants a shuffle alone."""
    last = max(stage.info.rdds, key=lambda rdd: rdd.id, default=None)
    is_shuffle = (job is not None and stage.info.id != max(job.stages)) or (last and _scope(last) == "Exchange")
    return "shuffle" if is_shuffle else "result"


def _scope(rdd: RddInfo) -> str:
    try:
        return msgspec.json.decode(rdd.scope or "", type=_Scope).name
    except msgspec.DecodeError:
        return ""
