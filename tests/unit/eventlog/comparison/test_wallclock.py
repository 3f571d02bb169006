import random
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from spark_app.eventlog import cost
from spark_app.eventlog.comparison.profile import Wall
from spark_app.eventlog.comparison.wallclock import WallClock, wall_clock
from spark_app.eventlog.reader import read
from tests.unit.eventlog.made import Run, Stage, Task

RECORDED = Path(__file__).parents[3] / "eventlogs" / "diagnoses"


def total(clock: WallClock) -> float:
    """All parts."""
    return clock.startup + clock.end + sum(p.work + p.idle + p.waiting + p.gap for p in clock.parts.values())


def test_each_part_of_the_time_is_told_apart() -> None:
    """Start, wait for the first task, work with idle cores, the driver between stages and at the end."""
    first = Stage("a", 1000, 3000, [Task(1200, 2000), Task(1200, 3000)])
    second = Stage("b", 3500, 5500, [Task(3500, 5500)])
    clock = wall_clock(Run(6000, [first, second]).application)
    assert (clock.startup, clock.end, clock.core_ms) == (1000, 500, 12_000)
    assert clock.parts[0, 0] == Wall(work=1300, idle=500, waiting=200)
    assert clock.parts[1, 0] == Wall(work=1000, idle=1000, gap=500)


def test_an_application_without_stages_is_all_start() -> None:
    """What never came to a stage has no end after one."""
    clock = wall_clock(Run(700, []).application)
    assert (clock.startup, clock.end, clock.parts) == (700, 0, {})


def test_work_that_keeps_another_job_from_its_first_task_is_told() -> None:
    """A job that has tasks and none running, while all cores are taken, is blocked by those that run."""
    other = Stage("other", 0, 4000, [Task(0, 4000), Task(0, 4000)])
    ours = Stage("ours", 1000, 5000, [Task(4000, 5000)])
    clock = wall_clock(Run(5000, [other, ours]).application)
    assert clock.parts[0, 0].blocking == 3000
    assert clock.parts[1, 0].blocking == 0


def test_a_task_may_need_several_cores() -> None:
    """An executor runs as many tasks as their share of its cores allows; all of its cores cost, as elsewhere."""
    run = Run(1000, [Stage("a", 0, 1000, [Task(0, 1000)])], cores=4, settings={"spark.task.cpus": "2"})
    clock = wall_clock(run.application)
    assert (clock.parts[0, 0], clock.core_ms) == (Wall(work=500, idle=500), 4000)
    lost = replace(run, lost_at=500).application
    spent = cost.spent(lost, lost.began or 0, lost.last)
    assert spent is not None
    assert wall_clock(lost).core_ms == spent.core_hours * cost.HOUR_MS == 6000


@pytest.mark.parametrize("seed", range(30))
def test_the_parts_add_up_to_the_duration(seed: int) -> None:
    """Whatever overlaps, is late or lost: no millisecond is counted twice or not at all."""
    draw = random.Random(seed)
    stages = []
    for _ in range(draw.randrange(12)):
        start = draw.randrange(9000)
        tasks = [Task(at := start + draw.randrange(500), at + draw.randrange(1500)) for _ in range(draw.randrange(6))]
        stages.append(Stage("s", start, start + draw.randrange(2000), tasks))
    run = Run(12_000, stages, cores=draw.randrange(1, 5), lost_at=draw.choice([None, draw.randrange(9000)]))
    assert total(wall_clock(run.application)) == pytest.approx(12_000)


@pytest.mark.parametrize("log", [*RECORDED.glob("*.zst")], ids=lambda log: log.stem)
def test_findings_reports_and_comparisons_count_the_same_time(log: Path) -> None:
    """Idle time, cores and tasks. While a log is read, events are a little out of order: 0.1 % is allowed."""
    app = read(log).app
    clock = wall_clock(app)
    compared = clock.startup + clock.end + sum(part.waiting + part.gap for part in clock.parts.values())
    reported = app.occupancy(app.stages.values(), (app.began or 0, app.last)).utilization
    assert compared == pytest.approx(reported.idle_ms)
    assert app.usage.idle_ms == sum(app.task_free.sums.values())
    assert astuple(app.usage) == pytest.approx(astuple(reported), rel=0.001)
