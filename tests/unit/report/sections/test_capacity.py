from decimal import Decimal
from pathlib import Path

from spark_app.eventlog import reader
from spark_app.eventlog.cost import HOUR_MS
from spark_app.report import page
from spark_app.report.scope import scope
from spark_app.report.sections.capacity import capacity
from spark_app.settings import Prices
from tests.unit.eventlog import log
from tests.unit.report import made
from tests.unit.report.conftest import Read

PRICES = Prices(currency="USD", core_hour=Decimal("3.60"), gib_hour=None)


def tasks_in_turn(*, cores: int, registered: int = 1000) -> list[log.Line]:
    """Eight tasks of a second on two cores, from a second after the start to the end of the application."""
    tasks = [made.ended_task(number, 0, 2000 + number // 2 * 1000, 1000) for number in range(8)]
    return [
        log.started(1000),
        log.executor("1", time=registered, cores=cores),
        log.job(0, [0]),
        made.submitted(0, 2000, 8, "save"),
        *log.starts(tasks),
        *tasks,
        log.ended(6000),
    ]


def test_other_cores_are_priced(reading: Read) -> None:
    """Four seconds of work on two cores: half of them take twice as long, and cost less, as they idle less."""
    found = capacity(scope(reading(tasks_in_turn(cores=2)).app, None), PRICES)
    assert found is not None
    assert [(choice.cores, choice.ms) for choice in found.choices] == [(1, 9000), (2, 5000), (4, 3000), (None, 2000)]
    assert [choice.price and round(choice.price, 4) for choice in found.choices] == [
        Decimal("0.0090"), Decimal("0.0100"), Decimal("0.0120"), None,
    ]  # fmt: skip


def test_each_row_costs_the_time_in_which_its_executors_are_registered(reading: Read) -> None:
    """They come a second after the start, on any number of cores: what was and what would be count the same time."""
    found = capacity(scope(reading(tasks_in_turn(cores=2, registered=2000)).app, None), PRICES)
    assert found is not None
    core_ms = {choice.cores: choice.spent and round(choice.spent.core_hours * HOUR_MS) for choice in found.choices}
    assert [choice.ms for choice in found.choices] == [9000, 5000, 3000, 2000]
    assert core_ms == {1: 8000, 2: 8000, 4: 8000, None: None}


def test_a_play_that_is_far_off_is_not_shown(reading: Read, tmp_path: Path) -> None:
    """The report says so instead."""
    lines = tasks_in_turn(cores=8)
    found = capacity(scope(reading(lines).app, None), PRICES)
    assert found is not None
    assert found.choices == []
    log_file = made.written(tmp_path / "app-1", lines)
    page.write(reader.read(log_file), output=tmp_path / "report.html", prices=PRICES)
    assert "60 % too short" in (tmp_path / "report.html").read_text()


def test_without_prices_there_are_hours_only(reading: Read, tmp_path: Path) -> None:
    """No price is invented."""
    page.write(reader.read(made.written(tmp_path / "app-1", tasks_in_turn(cores=2))), output=tmp_path / "report.html")
    text = (tmp_path / "report.html").read_text()
    assert "core-hours" in text
    assert "EUR" not in text
