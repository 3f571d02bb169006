"""The record of an application, made of its event log; see `record`."""

import re
from collections import defaultdict
from collections.abc import Iterator
from statistics import median
from typing import Final

from msgspec.structs import astuple, replace

from app.eventlog import groups
from app.eventlog.application import Application
from app.eventlog.comparison import fingerprints
from app.eventlog.comparison.record import VERSION, Group, Outcome, Spent, Summary, Volume, Wall, merged, place_and_flow
from app.eventlog.comparison.steps import steps
from app.eventlog.comparison.wallclock import Key, Part, WallClock, wall_clock
from app.eventlog.losses import is_lost
from app.eventlog.model import StageAttempt, Totals
from app.eventlog.reading import Reading
from app.redaction import is_secret, redacted
from app.telemetry.spark_names import WORKLOAD

MAX_GROUPS: Final = 200
"""Groups of one application that are kept apart; the rest is one, so that a record stays small."""
REST: Final = "everything else"
MAX_VALUE: Final = 200
"""Characters of the value of a setting; what is longer is cut."""

_VOLATILE: Final = re.compile(
    r"spark\.(app\.(id|startTime|submitTime|initial\..*|attempt\..*|name)|driver\.(host|port|bindAddress)|eventLog\..*"
    r"|executor\.id|ui\..*|.*\.dir|.*path|submit\..*|jars|files|repl\..*|hadoop\.fs\..*|sparkApp\..*"
    r"|databricks\.delta\.(lastCommitVersionInSession|commitInfo\..*)|sql\.execution\..*root\.id)",
    re.IGNORECASE,
)  # fmt: skip


def of(reading: Reading) -> Summary:
    """The record of the application of a log."""
    app = reading.app
    clock = wall_clock(app)
    kept = _groups(app, clock)
    places = {group.place for group in kept}
    return Summary(
        version=VERSION,
        application=app.name or "",
        id=app.id or reading.log.name,
        outcome=outcome_of(app),
        started=app.began or 0,
        duration_ms=max(0, app.last - (app.began or 0)),
        startup_ms=clock.startup,
        end_ms=clock.end,
        core_ms=clock.core_ms,
        executors_lost=sum(is_lost(app, executor) for executor in app.executors.values()),
        spark_version=app.spark_version,
        settings=dict(sorted(_settings(app))),
        groups=kept,
        plans={place: plans for place, plans in fingerprints.plans(app).items() if place in places},
        workload=app.properties.get(WORKLOAD, ""),
        steps=steps(app),
    )


def outcome_of(app: Application) -> Outcome:
    """How an application ended; it failed if its last job did, too: a driver in Python has no exit code for Spark."""
    if app.ended is None:
        return "incomplete"
    last = max(app.jobs.values(), key=lambda job: job.completed or 0, default=None)
    return "failed" if app.exit_code or (last is not None and last.has_failed) else "succeeded"


def _groups(app: Application, clock: WallClock) -> list[Group]:
    """Stages by what they do, in the order of their first one; those that took least are one group."""
    keys: dict[str, list[Key]] = defaultdict(list)
    for key, stage in app.stages.items():
        keys[groups.group_of(app, stage)].append(key)
    found = [_group(app, name, own, [clock.parts[key] for key in own]) for name, own in keys.items()]
    if len(found) <= MAX_GROUPS:
        return found
    by_time = sorted(found, key=lambda group: group.wall.work + group.wall.idle, reverse=True)
    rest = replace(merged(by_time[MAX_GROUPS:]), place=REST, flow="")
    small = {(group.place, group.flow) for group in by_time[MAX_GROUPS:]}
    return [*(group for group in found if (group.place, group.flow) not in small), rest]


def _group(app: Application, name: str, keys: list[Key], parts: list[Part]) -> Group:
    stages = [app.stages[key] for key in keys]
    durations = sorted(duration for stage in stages for duration in stage.durations_ms)
    place, flow = place_and_flow(name)
    return Group(
        place=place,
        flow=flow,
        wall=Wall(*(round(sum(getattr(part, field) for part in parts), 1) for field in Wall.__struct_fields__)),
        spent=_spent(app, stages),
        volume=_volume(stages),
        stages=len({key[0] for key in keys}),
        tasks=len(durations),
        failed=sum(stage.failed for stage in stages),
        has_python=any("Python" in rdd.name or "Python" in (rdd.scope or "") for s in stages for rdd in s.info.rdds),
        median_ms=median(durations) if durations else 0,
        longest_ms=durations[-1] if durations else 0,
        largest_share=max((_largest_share(stage) for stage in stages), default=0),
    )


def _spent(app: Application, stages: list[StageAttempt]) -> Spent:
    spent, cpus = Spent(), app.task_cpus
    for stage in stages:
        total = sum(stage.durations_ms)
        if _is_repeated(app, stage):
            spent.wasted += total
            continue
        run, cpu, gc, wait = (of_all - of_wasted for of_all, of_wasted in zip(
            _times(stage.totals, cpus), _times(stage.wasted, cpus), strict=True
        ))  # fmt: skip
        cpu = min(cpu, run)
        gc = min(gc, run - cpu)
        wait = min(wait, run - cpu - gc)
        spent.cpu += cpu
        spent.gc += gc
        spent.shuffle_wait += wait
        spent.other += run - cpu - gc - wait
        spent.overhead += total - stage.wasted_ms - run
        spent.wasted += stage.wasted_ms
    return Spent(*(round(ms, 1) for ms in astuple(spent)))


def _times(totals: Totals, cpus: int) -> tuple[float, float, float, float]:
    return totals.run_ms / cpus, totals.cpu_ns / 1e6, totals.gc_ms, totals.shuffle_wait_ms


def _is_repeated(app: Application, stage: StageAttempt) -> bool:
    """Whether it makes results again that were there: the attempt before it went well."""
    before = app.stages.get((stage.info.id, stage.info.attempt - 1))
    return before is not None and before.info.failure is None


def _volume(stages: list[StageAttempt]) -> Volume:
    fields = Volume.__struct_fields__
    return Volume(*(sum(getattr(s.totals, field) - getattr(s.wasted, field) for s in stages) for field in fields))


def _largest_share(stage: StageAttempt) -> float:
    read = stage.shuffle_read_bytes
    total = sum(read, start=0)
    return max(read) / total if len(read) > 1 and total else 0


def _settings(app: Application) -> Iterator[tuple[str, str]]:
    told = dict(app.properties)
    for query in app.queries.values():
        told |= query.settings
    for name, value in told.items():
        if name.startswith("spark.") and not _VOLATILE.fullmatch(name) and not is_secret(name):
            yield name, redacted(value)[:MAX_VALUE]
