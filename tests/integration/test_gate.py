"""A crossed threshold changes nothing that is published, and says what is wrong and how to see it."""

import datetime
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from app.commands.failures import failure
from app.commands.show import first_rows
from app.errors import QualityGateError
from tests.integration.home import DAY, Home, customer, sale

OTHER_DAY = datetime.date(2024, 1, 2)
PUBLISHED = ("transactions", "daily_sales")
OF_OTHER_DAY = {"created_at": "2024-01-02T23:00:00Z", "updated_at": "2024-01-02T23:00:00Z"}
LATE = {"created_at": "2024-01-01T23:00:00Z", "updated_at": "2024-01-01T23:00:00Z"}


def good(count: int = 40) -> list[dict[str, object]]:
    """Sales that keep every promise."""
    return [sale(number, amount=f"{10 + number}.00", **LATE) for number in range(1, count + 1)]


def versions(home: Home) -> list[tuple[int, str]]:
    """The commits of what is published."""
    files = [
        file for name in PUBLISHED for file in (home.folder / "data/warehouse" / name / "_delta_log").glob("*.json")
    ]
    return sorted((int(file.stem), file.parts[-3]) for file in files)


def shown_rows(home: Home, message: str) -> int:
    """How many rows the command shows that a message names; fails if it names none."""
    command = re.search(r"spark-app show (.+?)\)(?:;|$)", message)
    assert command, message
    table, _, date, _, where = shlex.split(command[1])
    rows = first_rows(home.table(table), table=table, date=datetime.date.fromisoformat(date), where=where, limit=1_000)
    return len(rows.rows)


@pytest.fixture(scope="module")
def two_days(new_home: Callable[[str], Home]) -> Home:
    """Two good days are published, with the shipped thresholds."""
    home = new_home("two days")
    for day, changes in ((DAY, {}), (OTHER_DAY, OF_OTHER_DAY)):
        home.deliver("customers", [customer(1)], date=day)
        home.deliver("transactions", [row | changes for row in good()], date=day)
    home.run(DAY, OTHER_DAY)
    return home


@pytest.fixture
def shop(two_days: Home, tmp_path: Path) -> Home:
    """A copy of them."""
    return two_days.copied(tmp_path / "shop")


def test_too_many_bad_rows_change_nothing(shop: Home) -> None:
    """Neither table gets as much as a commit; the message names the promise, how far off, and the rows."""
    before = versions(shop), shop.content(*PUBLISHED)
    shop.deliver("transactions", [*good(), sale(99, amount="-5.00", **LATE)])
    with pytest.raises(QualityGateError) as raised:
        shop.run()
    told = failure(raised.value)
    assert told.exit_code == 4
    assert "amount.range: 1 of 41 (2.4390%), allowed 1.0000%" in told.message
    assert shown_rows(shop, told.message) == 1
    assert (versions(shop), shop.content(*PUBLISHED)) == before
    assert [run.outcome for run in raised.value.results] == ["succeeded", "rejected"]  # type: ignore[attr-defined]
    assert shop.savepoints() == []


def test_too_many_outliers_put_the_day_back(shop: Home) -> None:
    """What only the second pass can know puts the sales of the day back and does not touch the totals."""
    before = shop.content(*PUBLISHED)
    totals = [version for version in versions(shop) if version[1] == "daily_sales"]
    rows = [*good(60), sale(98, amount="50000.00", **LATE)]
    shop.deliver("transactions", rows)
    with pytest.raises(QualityGateError) as raised:
        shop.run()
    told = failure(raised.value)
    assert told.exit_code == 4
    assert "outliers: 1 of 61 (1.6393%), allowed 0.5000%" in told.message
    assert shown_rows(shop, told.message) == 1
    assert shop.content(*PUBLISHED) == before
    assert [version for version in versions(shop) if version[1] == "daily_sales"] == totals
    assert shop.savepoints() == []

    shop.deliver("transactions", good(60))
    shop.run()
    assert len(shop.rows("transactions", "amount", where=f"processed_date = '{DAY}'")) == 60
    assert len(shop.rows("transactions", "amount", where=f"processed_date = '{OTHER_DAY}'")) == 40


def test_a_first_run_that_is_stopped_leaves_nothing(home: Home) -> None:
    """Where there was nothing before, there is nothing after, whichever pass stopped the run."""
    home.deliver("customers", [customer(1)])
    for bad in (sale(98, amount="50000.00", **LATE), sale(98, status="lost", **LATE)):
        home.deliver("transactions", [*good(), bad])
        with pytest.raises(QualityGateError):
            home.run()
        assert home.content(*PUBLISHED) == []
        assert home.table("bronze").count() == 41


def test_customers_that_break_a_promise_do_not_reach_the_history(home: Home) -> None:
    """Too many bad customers stop the day before its sales, and the history stays."""
    home.deliver("customers", [customer(1), customer(2, segment="pirate")])
    home.deliver("transactions", good())
    with pytest.raises(QualityGateError, match=r"segment\.allowed: 1 of 2 \(50") as raised:
        home.run()
    assert shown_rows(home, str(raised.value)) == 1
    assert home.content("customers") == []
    assert len(raised.value.results) == 1  # type: ignore[attr-defined]


def test_without_checks_nothing_is_judged(shop: Home) -> None:
    """`checks: false` measures what checks cost: what does not parse is held back all the same, and the run adds up."""
    for pipeline in ("etl.customers", "etl.daily_sales"):
        shop.configure(pipeline, checks=False)
    shop.deliver("transactions", [*good(), sale(99, amount="-5.00", **LATE)])
    shop.deliver_text("transactions", "{no row\n", name="b.json")
    sales = shop.run()[1]
    assert (sales.figures, sales.nulls, sales.facts) == ([], {}, {})
    assert (sales.rows_read, sales.rows_written, sales.rows_quarantined, sales.rows_duplicate) == (42, 41, 1, 0)
