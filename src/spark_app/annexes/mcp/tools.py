"""The tools: questions about runs, whose answers are JSON documents. Their docstrings are what an assistant reads."""

import threading
from functools import partial
from typing import Annotated, Final, Literal

from pydantic import Field

from spark_app.annexes.mcp.answers import MAX_CHARACTERS, Document, Page, PagedRows, answer
from spark_app.annexes.mcp.documents import (
    NO_LISTS,
    WORST,
    brief,
    cause_row,
    document,
    query_document,
    query_row,
    stack_totals,
    stage_document,
    stage_row,
)
from spark_app.annexes.mcp.library import Library
from spark_app.annexes.mcp.search import Wanted, search
from spark_app.errors import InputError
from spark_app.eventlog.comparison import baselines
from spark_app.eventlog.comparison.compare import compare
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.replay.what_if import parsed
from spark_app.observe.analysis import Analysis
from spark_app.report import values
from spark_app.report.formatting import text
from spark_app.report.results import build
from spark_app.report.run_info import RunInfo
from spark_app.report.scope import Scope, scope
from spark_app.report.sections import queries, stages
from spark_app.report.sections.replays import Replays, replays

MAX_WIDTH: Final = MAX_CHARACTERS * 5 // 12
"""An event is JSON within JSON: each of its quotes and backslashes takes two characters of an answer."""

Run = Annotated[str, Field(description="A name from list_runs, or the id of an application.")]
Limit = Annotated[int, Field(ge=1, le=200, description="The most rows of each list in the answer.")]
Offset = Annotated[int, Field(ge=0, description="Rows of each list to leave out, as `left_out` of an answer says.")]
Number = Annotated[int, Field(ge=0)]


class Tools:
    """One call at a time: they share the logs that were read."""

    def __init__(self, library: Library) -> None:
        """Reads nothing yet."""
        self._library = library
        self._lock = threading.Lock()

    def list_runs(
        self,
        name: Annotated[
            str, Field(description="Only those whose name or application contains this; case does not matter.")
        ] = "",
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Document:
        """List Spark applications and runs, the last written first: start here.

        The value of `run` names one in the other tools. An event log has an outcome here only if it was observed;
        `summary` reads it.
        """
        with self._lock:
            entries = self._library.entries()
            if name:
                entries = [entry for entry in entries if _is_named(entry.describe(), name)]
            return answer({"runs": PagedRows(entries, lambda entry: entry.describe())}, Page(limit, offset))

    def summary(self, run: Run, limit: Limit = 10, offset: Offset = 0) -> Document:
        """Tell what a run did: outcome, error, figures, worst findings, its stages, queries and streaming queries.

        Of Spark Connect, it tells the users and the operations of the clients.

        Failed stages and queries come first, then the longest. `remarks` say what the log lacks. `comparison` is with
        earlier runs.
        """
        with self._lock:
            analysis, about, info = self._read(run)
            found = analysis.findings_of(info)
            reading, compared, labels = analysis.reading, analysis.comparison, analysis.profile.labels
            whole = build.application(reading, info, [], compared, report="", limits=NO_LISTS, labels=labels)
            worst = [{"rule": each.rule, "severity": each.severity, "text": text(each.text)} for each in found[:WORST]]
            shown = document(whole) | {
                "report": None,
                "comparison": brief(whole.comparison),
                "number_of_findings": len(found),
                "findings": worst,
                "stages": PagedRows(stages.ranked(about), partial(stage_row, about)),
                "queries": PagedRows(queries.ranked(about), partial(query_row, about)),
                "stack_samples": stack_totals(analysis.stacks_of(info)),
                "connect": whole.connect and {"users": whole.connect.users},
                "operations": PagedRows(whole.connect.operations) if whole.connect else None,
                "streaming_queries": PagedRows(whole.streaming_queries) if whole.streaming_queries else None,
            }
            return answer(shown, Page(limit, offset))

    def findings(
        self,
        run: Run,
        severity: Annotated[Literal["warning", "info"] | None, Field(description="Only those of a severity.")] = None,
        rule: Annotated[str | None, Field(description="Only those of a rule, such as `spill`.")] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Document:
        """Tell what is wrong with a run and what to change: findings, the worst first.

        Each has evidence in numbers, advice, the estimated cost in wall-clock time, and the stages or queries where it
        was made.
        """
        with self._lock:
            analysis, _, info = self._read(run)
            found = analysis.findings_of(info)
            wanted = [each for each in found if severity in (None, each.severity) and rule in (None, each.rule)]
            rows = PagedRows(wanted, build.finding)
            return answer({"run": run, "findings": rows}, Page(limit, offset))

    def compare(
        self,
        run: Run,
        baseline: Annotated[
            str | None,
            Field(description="The run to compare with; without it, the last successful runs of the application."),
        ] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Document:
        """Explain why a run took longer or shorter than another: causes in milliseconds, the largest first.

        `changes` are what else differs: settings, plans, rows. A difference below `noise_ms` is not significant and has
        no causes.
        """
        with self._lock:
            now = self._analysis(run)
            profiles, log = self._library.settings.profiles_path, now.reading.log
            named = [self._analysis(baseline).profile] if baseline else None
            compared = build.comparison(compare(named or baselines.earlier(profiles, now.profile, log), now.profile))
            lists = {
                "causes": PagedRows(compared.causes, cause_row),
                "settings": PagedRows(compared.settings),
                "changes": PagedRows(compared.changes),
            }
            return answer(document(compared) | lists, Page(limit, offset))

    def what_if(
        self,
        run: Run,
        changes: Annotated[
            list[str] | None,
            Field(
                description="Each `cores=N`, `executors=N`, `memory=SIZE`, `partitions=N` (of shuffles) or "
                "`without=CAUSE`; without any: half and twice the cores, and unlimited ones."
            ),
        ] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Document:
        """Tell how long a run would have taken otherwise: its schedule, replayed.

        `forecasts` have the time with a change, between `low_ms` and `high_ms` in nine of ten cases, or `reasons` why
        the log does not tell. `blocked_time` is how much sooner it would have ended at most without what its tasks
        waited for: `network` (shuffle blocks), `disk` (shuffle files), `gc`, `scheduling`, `deserializing`, `python`,
        and `skew`. `critical_path_steps` are what its end waited for, the longest first. `error_ratio` is how far the
        replay of what was is off.
        """
        with self._lock:
            _, about, _ = self._read(run)
            try:
                asked = None if changes is None else [parsed(text) for text in changes]
            except ValueError as error:
                raise InputError(str(error)) from error
            found = replays(about, asked)
            if found is None:
                raise InputError(f"{run} has no tasks to replay, or streaming queries, which wait for their input")
            shown = values.document(Replays, found)
            path = shown.critical_path
            longest = sorted(path.steps, key=lambda step: -step.duration_ms) if path else None
            rows = {
                "forecasts": PagedRows(shown.forecasts),
                "blocked_time": PagedRows(shown.blocked_time),
                "critical_path": path and {"length_ms": path.length_ms, "driver_ms": path.driver_ms},
                "critical_path_steps": longest and PagedRows(longest),
            }
            return answer(document(shown) | {"run": run} | rows, Page(limit, offset))

    def stage(
        self,
        run: Run,
        stage: Annotated[Number, Field(description="The id of the stage.")],
        attempt: Annotated[Number | None, Field(description="The attempt; by default the last one.")] = None,
        limit: Limit = 20,
        offset: Offset = 0,
    ) -> Document:
        """Show a stage: its work, task times and skew, data moved, slowest and failed tasks, findings, its query.

        `task_times_ms` are those at 5, 25, 50, 75, 95 and 100 % of the tasks; `task_seconds` are sums over all tasks.
        `stack_samples` say in which functions and lines of the program its time went, if the run was profiled.
        """
        with self._lock:
            analysis, about, info = self._read(run)
            chosen = _attempt(run, about, stage, attempt)
            found, stacks = analysis.findings_of(info), analysis.stacks_of(info)
            return answer(stage_document(about, chosen, found, stacks), Page(limit, offset))

    def query_plan(
        self,
        run: Run,
        query: Annotated[Number, Field(description="The id of the query, its SQL execution.")],
        limit: Limit = 100,
        offset: Offset = 0,
    ) -> Document:
        """Show the plan that a SQL query ran with, each operator with rows, bytes and times that it has counted.

        Each operator reads from the next one with the same `depth`, or, where it is followed by deeper ones, from
        those: a join is followed by its two sides.
        """
        with self._lock:
            _, about, _ = self._read(run)
            chosen = next((each for each in about.queries if each.id == query), None)
            if chosen is None:
                raise InputError(f"{run} has no query {query}{_ids([each.id for each in about.queries])}")
            return answer(query_document(about, chosen), Page(limit, offset))

    def search_events(
        self,
        run: Run,
        contains: Annotated[str, Field(description="A part of the JSON of the event; case does not matter.")] = "",
        event: Annotated[str, Field(description="A part of the name of the event, such as `TaskEnd`.")] = "",
        after: Annotated[Number, Field(description="Only events after this line of the log.")] = 0,
        limit: Annotated[int, Field(ge=1, le=50, description="The most events in the answer.")] = 10,
        width: Annotated[
            int, Field(ge=100, le=MAX_WIDTH, description="Characters of each event, around the first match.")
        ] = 1_000,
    ) -> Document:
        """Search the events of Spark's event log as Spark wrote them, for what the other tools do not show.

        Examples: `event="EnvironmentUpdate"` for settings, `event="TaskEnd"` with `contains="FetchFailed"`.
        """
        with self._lock:
            log = self._library.source(run).log
            hits = search(log, Wanted(contains, event, after, width), limit + 1)
            rows = PagedRows(hits, ask=lambda shown: f"more match: ask again with after={shown[-1].line}")
            return answer({"run": run, "events": rows}, Page(limit))

    def _analysis(self, run: str) -> Analysis:
        return self._library.analysis(self._library.source(run).log)

    def _read(self, run: str) -> tuple[Analysis, Scope, RunInfo | None]:
        """The analysis of a log, the part of its application that is meant, and the run if that is one."""
        source = self._library.source(run)
        analysis = self._library.analysis(source.log)
        return analysis, scope(analysis.reading.app, source.run), source.run


def _is_named(row: Document, part: str) -> bool:
    return any(part.lower() in row.get(key, "").lower() for key in ("run", "application"))


def _attempt(run: str, about: Scope, stage: int, attempt: int | None) -> StageAttempt:
    """The attempt of a stage.

    Raises:
        InputError: There is none.
    """
    attempts = [each for each in about.stages if each.info.id == stage]
    if not attempts:
        raise InputError(f"{run} ran no stage {stage}{_ids([each.info.id for each in about.stages])}")
    numbers = [each.info.attempt for each in attempts]
    if attempt is not None and attempt not in numbers:
        raise InputError(f"stage {stage} of {run} has no attempt {attempt}, only {', '.join(map(str, numbers))}")
    return max(attempts, key=lambda each: (each.info.attempt == attempt, each.info.attempt))


def _ids(known: list[int]) -> str:
    """Which there are, for the message of an error."""
    return f": it has {len(set(known))}, from {min(known)} to {max(known)}" if known else ": it has none"
