"""A crossed threshold changes nothing that is published, and says what is wrong and how to see it."""

import datetime
import re
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from app.commands.failures import failure
from app.commands.show import first_rows
from app.errors import InputError, QualityGateError
from tests.integration.home import DAY, Home, customer, sale
from tests.integration.processes import kill_when, make_quick

OTHER_DAY = datetime.date(2024, 1, 2)
PUBLISHED = ("transactions", "daily_sales")
OF_OTHER_DAY = {"created_at": "2024-01-02T23:00:00Z", "updated_at": "2024-01-02T23:00:00Z"}
LATE = {"created_at": "2024-01-01T23:00:00Z", "updated_at": "2024-01-01T23:00:00Z"}


def good(count: int = 40) -> list[dict[str, object]]:
    """Sales that keep every promise."""
    return [sale(number, amount=f"{10 + number}.00", **LATE) for number in range(1, count + 1)]


def good_in_the_morning() -> list[dict[str, object]]:
    """The same at eight o'clock."""
    return [row | {"created_at": "2024-01-01T08:00:00Z"} for row in good()]


def invalid() -> list[dict[str, object]]:
    """The same, none of them valid."""
    return [row | {"status": "lost"} for row in good()]


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
    facts = raised.value.results[1].facts  # type: ignore[attr-defined]
    assert f"abs(double(amount) - {facts['mean']!r}D) > {3 * facts['sigma']!r}D" in told.message
    assert shop.content(*PUBLISHED) == before
    assert [version for version in versions(shop) if version[1] == "daily_sales"] == totals
    assert shop.savepoints() == []

    shop.deliver("transactions", good(60))
    shop.run()
    assert len(shop.rows("transactions", "amount", where=f"processed_date = '{DAY}'")) == 60
    assert len(shop.rows("transactions", "amount", where=f"processed_date = '{OTHER_DAY}'")) == 40


def test_what_fails_between_two_tables_changes_neither(shop: Home) -> None:
    """Where the totals cannot be written, the sales of the day go back: both tables tell of the same sales."""
    totals = shop.folder / "data/warehouse/daily_sales"
    shop.spark.sql(f"ALTER TABLE delta.`{totals}` ADD CONSTRAINT few CHECK (transaction_count <= 50)")
    before = shop.content(*PUBLISHED)
    shop.deliver("transactions", good(60))
    with pytest.raises(Exception, match="transaction_count <= 50") as raised:
        shop.run()
    assert shop.content(*PUBLISHED) == before
    assert shop.savepoints() == []
    failed = raised.value.results[1]  # type: ignore[attr-defined]
    assert (failed.rows_read, failed.rows_written) == (60, None)


def test_what_a_killed_run_left_is_put_back_first(shop: Home, tmp_path: Path) -> None:
    """A rerun that is stopped before it gets to the sales, even on another day of its range, leaves no half of them."""
    make_quick(shop)
    before = shop.content(*PUBLISHED)
    shop.deliver("transactions", good(60))
    kill_when(shop, "transactions/_delta_log/00000000000000000003.json", stderr=tmp_path / "stderr")
    assert len(shop.rows("transactions", "amount", where=f"processed_date = '{DAY}'")) == 60

    missing, other = shop.copied(tmp_path / "missing"), shop.copied(tmp_path / "other")
    shop.deliver("customers", [customer(1), customer(2, segment="pirate")])
    with pytest.raises(QualityGateError, match=r"segment\.allowed"):
        shop.run(DAY)
    shutil.rmtree(missing.day_folder("customers"))
    with pytest.raises(InputError, match="no raw data"):
        missing.run(DAY)
    shutil.rmtree(other.day_folder("customers", OTHER_DAY))
    with pytest.raises(InputError, match="no raw data"):
        other.run(OTHER_DAY, DAY)
    for rerun in (shop, missing, other):
        assert rerun.content(*PUBLISHED) == before
        assert rerun.savepoints() == []


def test_a_day_without_rows_changes_nothing(shop: Home) -> None:
    """Files without sales are missing input, not a day without any; of customers they tell that nobody changed."""
    kept = ("bronze", "customers", *PUBLISHED)
    before = versions(shop), shop.content(*kept)
    for text in ("", "\n\n"):
        shop.deliver_text("customers", text, name="a.json")
        shop.deliver_text("transactions", text, name="a.json")
        with pytest.raises(InputError) as raised:
            shop.run()
        told = failure(raised.value)
        assert told.exit_code == 3
        assert told.message.startswith(f"no rows at {shop.day_folder('transactions')}")
        customers = raised.value.results[0]  # type: ignore[attr-defined]
        assert (customers.outcome, customers.rows_read, customers.rows_written) == ("succeeded", 0, 0)
        assert (versions(shop), shop.content(*kept)) == before
        assert shop.savepoints() == []
    assert [run.outcome for run in shop.run(replay=True)] == ["succeeded", "succeeded"]
    assert shop.content(*kept) == before[1]


def test_a_day_that_ends_too_early_is_stopped(shop: Home) -> None:
    """The age of the newest valid row is judged, and that of a day without one is the whole day."""
    before = shop.content(*PUBLISHED)
    shop.configure("etl.daily_sales", default_limit=1.0)
    last = sale(99, created_at="2024-01-01T09:00:00.623456Z")
    for rows, age, shown in (([*good_in_the_morning(), last], "53,999", 1), (invalid(), "86,400", 40)):
        shop.deliver("transactions", rows)
        expected = rf"freshness: no valid row in the last {age} s of the day, allowed 21,600 s \("
        with pytest.raises(QualityGateError, match=expected) as raised:
            shop.run()
        told = failure(raised.value)
        assert shown_rows(shop, told.message) == shown
        assert shop.content(*PUBLISHED) == before


def test_too_many_repeated_rows_are_shown(shop: Home) -> None:
    """Rows that repeat others stop the day, of sales and of customers; the command shows them and what they repeat."""
    kept = ("customers", *PUBLISHED)
    before = shop.content(*kept)
    shop.deliver("transactions", [*good(), *good(5)])
    with pytest.raises(QualityGateError, match=r"^duplicates: 5 of 45 \(") as raised:
        shop.run()
    assert shown_rows(shop, str(raised.value)) == 10
    shop.deliver("customers", [*[customer(2)] * 9, customer(3)])
    with pytest.raises(QualityGateError, match=r"^duplicates: 8 of 10 \(") as raised:
        shop.run()
    assert shown_rows(shop, str(raised.value)) == 9
    assert shop.content(*kept) == before


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
