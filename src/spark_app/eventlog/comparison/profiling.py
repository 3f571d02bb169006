"""Builds the run profile of an application from its event log; see `profile`."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from statistics import median
from typing import Final

from msgspec.structs import astuple, replace

from spark_app.eventlog import cost
from spark_app.eventlog.comparison import fingerprints
from spark_app.eventlog.comparison.profile import (
    VERSION,
    RunProfile,
    StageGroup,
    TaskTime,
    Volume,
    Wall,
    merged,
    place_and_flow,
)
from spark_app.eventlog.comparison.steps import steps
from spark_app.eventlog.comparison.wallclock import Key, WallClock, wall_clock
from spark_app.eventlog.model import stage_groups
from spark_app.eventlog.model.application import Application
from spark_app.eventlog.model.connect import is_own_server
from spark_app.eventlog.model.entities import StageAttempt
from spark_app.eventlog.model.executor_loss import is_lost
from spark_app.eventlog.model.operators import has_python
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.model.plan_names import PYTHON_TIME, SCAN_TIME
from spark_app.eventlog.model.task_numbers import Totals
from spark_app.eventlog.parse.events import PROPERTIES_OF_RUN, counted
from spark_app.eventlog.parse.locations import LogPath
from spark_app.eventlog.reader import Reading
from spark_app.redaction import is_secret, redacted
from spark_app.vocabulary.spark_names import WORKLOAD
from spark_app.vocabulary.spark_progress import sum_of_known
from spark_app.vocabulary.spark_settings import without_recording

MAX_GROUPS: Final = 200
"""Groups of one application at most; the rest is one group, which keeps the profile small."""
REST: Final = "everything else"
MAX_USERS: Final = 100
"""Users of a Spark Connect server at most, as many as keep the profile small."""
MAX_VALUE: Final = 200
"""Characters of the value of a setting; longer ones are truncated."""

_VOLATILE: Final = re.compile(
    rf"{PROPERTIES_OF_RUN}|spark\.(app\.(attempt\..*|name)|driver\.bindAddress|eventLog\..*"
    r"|ui\..*|.*\.dir|.*path|submit\..*|jars|files|repl\..*|hadoop\.fs\..*|sparkApp\..*"
    r"|observed\.(launch|name))",
    re.IGNORECASE,
)  # fmt: skip


def run_profile(reading: Reading) -> RunProfile:
    """The run profile of the application of a log."""
    app, (name, started, id_) = reading.app, identity(reading.app, reading.log)
    clock = wall_clock(app)
    kept = _groups(app, clock)
    places = {group.place for group in kept}
    planned = {place: own for place, own in fingerprints.planned(app).items() if place in places}
    return RunProfile(
        version=VERSION,
        application=name,
        id=id_,
        outcome=ending_of(app).outcome,
        exit_code=app.process_exit_code,
        started=started,
        duration_ms=max(0, app.last - started),
        startup_ms=clock.startup,
        end_ms=clock.end,
        core_ms=clock.core_ms,
        executors_lost=sum(is_lost(app, executor) for executor in app.executors.values()),
        spark_version=app.spark_version,
        settings=dict(sorted(_settings(app))),
        groups=kept,
        plans={place: own.plans for place, own in planned.items()},
        operators={place: own.operators for place, own in planned.items()},
        workload=app.properties.get(WORKLOAD, ""),
        runnable=_runnable(app),
        gib_ms=_memory(app, started),
        steps=steps(app),
        host_load=app.host_load,
        users=_users(app, started),
        peak_heap_bytes=max((each.peak_heap for each in app.executors.values() if each.peak_heap), default=None),
        largest_shuffle_bytes=max(filter(None, map(partial(_shuffled, app), app.stages.values())), default=None),
    )


def _shuffled(app: Application, stage: StageAttempt) -> int:
    """What a stage of a query read of shuffles."""
    return stage.totals.shuffle_read_bytes if app.query_of(app.job_of(stage)) is not None else 0


def _users(app: Application, started: int) -> dict[str, float]:
    """The time of cores of each user."""
    took = cost.spent(app, started, app.last)
    if took is None:
        return {}
    if not app.connect.sessions or is_own_server(app.properties):
        return {app.user or "": round(took.core_hours * cost.HOUR_MS)}
    shares = cost.by_user(app, app.stages.values(), took)
    ranked = sorted(filter(None, shares), key=lambda user: -shares[user].core_hours)[:MAX_USERS]
    times: dict[str, float] = {user: round(shares[user].core_hours * cost.HOUR_MS) for user in ranked}
    return times | {"": round(took.core_hours * cost.HOUR_MS) - sum(times.values())}


def _memory(app: Application, started: int) -> float | None:
    """Memory of the executors in GiB, multiplied by milliseconds."""
    spent = cost.spent(app, started, app.last)
    return None if spent is None or spent.gib_hours is None else round(spent.gib_hours * cost.HOUR_MS)


def _runnable(app: Application) -> float | None:
    host = app.host_load
    threads = None if host is None else host.runnable(app.began or 0, app.last)
    return None if host is None or threads is None else round(threads / host.processors, 2)


def identity(app: Application, log: LogPath) -> tuple[str, int, str]:
    """The name, the start and the id of an application: what its profile is stored under."""
    return app.name or "", app.began or 0, app.id or log.name


def _groups(app: Application, clock: WallClock) -> list[StageGroup]:
    """Stages by their work, in the order of their first one; the shortest groups are one."""
    keys: dict[str, list[Key]] = defaultdict(list)
    for key, stage in app.stages.items():
        keys[stage_groups.group_of(app, stage)].append(key)
    times = _measured(app)
    groups = [
        _group(app, name, own, [clock.parts[key] for key in own], times=[times[key] for key in own])
        for name, own in keys.items()
    ]
    if len(groups) <= MAX_GROUPS:
        return groups
    by_time = sorted(groups, key=lambda group: group.wall.work + group.wall.idle, reverse=True)
    rest = replace(merged(by_time[MAX_GROUPS:]), place=REST, flow="")
    small = {(group.place, group.flow) for group in by_time[MAX_GROUPS:]}
    return [*(group for group in groups if (group.place, group.flow) not in small), rest]


def _measured(app: Application) -> dict[Key, dict[str, float]]:
    """The times in Python and in scans of each stage attempt: how much Spark's sums grew since the stages before."""
    times: dict[Key, dict[str, float]] = {}
    sums: dict[int, int] = {}
    for key, stage in sorted(app.stages.items(), key=lambda item: item[1].info.completed or app.last):
        own = times[key] = {}
        for name in (PYTHON_TIME, SCAN_TIME):
            totals = counted([each for each in stage.info.accumulables if each.name == name])
            if totals:
                own[name] = sum(max(0, total - sums.get(number, 0)) for number, total in totals.items())
            sums |= totals
    return times


def _group(
    app: Application, name: str, keys: list[Key], parts: list[Wall], *, times: list[Mapping[str, float]]
) -> StageGroup:
    stages = [app.stages[key] for key in keys]
    durations = sorted(duration for stage in stages for duration in stage.durations_ms)
    place, flow = place_and_flow(name)
    return StageGroup(
        place=place,
        flow=flow,
        wall=Wall(*(round(sum(getattr(part, field) for part in parts), 1) or 0 for field in Wall.__struct_fields__)),
        spent=_spent(app, stages),
        volume=_volume(stages),
        stages=len({key[0] for key in keys}),
        tasks=len(durations),
        failed=sum(stage.failed for stage in stages),
        has_python=any(has_python(stage.info) for stage in stages),
        median_ms=median(durations) if durations else 0,
        longest_ms=durations[-1] if durations else 0,
        largest_share=max((_largest_share(stage) for stage in stages), default=0),
        python_ms=sum_of_known(own.get(PYTHON_TIME) for own in times),
        scan_ms=sum_of_known(own.get(SCAN_TIME) for own in times),
    )


def _spent(app: Application, stages: list[StageAttempt]) -> TaskTime:
    spent, cpus = TaskTime(), app.task_cpus
    for stage in stages:
        total = sum(stage.durations_ms)
        if _is_repeated(app, stage):
            spent.wasted += total
            continue
        useful = (total - stage.wasted_ms) * _used_share(stage)
        run, cpu, gc, wait = ((of_all - of_wasted) * _used_share(stage) for of_all, of_wasted in zip(
            _times(stage.totals, cpus), _times(stage.wasted, cpus), strict=True
        ))  # fmt: skip
        run = min(run, useful)
        cpu = min(cpu, run)
        gc = min(gc, run - cpu)
        wait = min(wait, run - cpu - gc)
        spent.cpu += cpu
        spent.gc += gc
        spent.shuffle_wait += wait
        spent.other += run - cpu - gc - wait
        spent.overhead += useful - run
        spent.wasted += total - useful
    return TaskTime(*(round(ms, 1) for ms in astuple(spent)))


def _used_share(stage: StageAttempt) -> float:
    """The share of the successful task attempts, by their time, whose output was not lost.

    What an attempt that lost its output did is not known apart: it is taken to have worked as fast as the others.
    """
    succeeded = sum(stage.durations_ms) - stage.wasted_ms
    return max(0.0, 1 - stage.resubmitted_ms / succeeded) if succeeded else 1.0


def _times(totals: Totals, cpus: int) -> tuple[float, float, float, float]:
    return totals.run_ms / cpus, (totals.cpu_ns or 0) / 1e6, totals.gc_ms, totals.shuffle_wait_ms


def _is_repeated(app: Application, stage: StageAttempt) -> bool:
    """Whether the attempt repeats results: the attempt before it succeeded."""
    before = app.stages.get((stage.info.id, stage.info.attempt - 1))
    return before is not None and before.info.failure is None


def _volume(stages: list[StageAttempt]) -> Volume:
    return Volume(*(_moved(stages, field) for field in Volume.__struct_fields__))


def _moved(stages: list[StageAttempt], field: str) -> int:
    used = ((getattr(each.totals, field) - getattr(each.wasted, field)) * _used_share(each) for each in stages)
    return sum(map(round, used))


def _largest_share(stage: StageAttempt) -> float:
    read = stage.shuffle_read_bytes
    total = sum(read, start=0)
    return max(read) / total if len(read) > 1 and total else 0


def _settings(app: Application) -> Iterator[tuple[str, str]]:
    settings = dict(app.properties)
    for query in app.queries.values():
        settings |= query.settings
    for name, value in settings.items():
        own = without_recording(value)
        is_ours = value and not own  # without samples, the application has no such setting
        if name.startswith("spark.") and not is_ours and not _VOLATILE.fullmatch(name) and not is_secret(name):
            yield name, redacted(own)[:MAX_VALUE]
