"""A day that violates an expectation beyond its limit changes no published table; the message says which and why."""

import datetime
import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_app.commands.errors import failure
from spark_app.commands.show import first_rows
from spark_app.errors import InputError, QualityGateError
from tests.integration.home import DAY, Home, customer, sale

OTHER_DAY = datetime.date(2024, 1, 2)
PUBLISHED = ("transactions", "daily_sales")
OF_OTHER_DAY = {"created_at": "2024-01-02T23:00:00Z", "updated_at": "2024-01-02T23:00:00Z"}
LATE = {"created_at": "2024-01-01T23:00:00Z", "updated_at": "2024-01-01T23:00:00Z"}


def good(count: int = 40) -> list[dict[str, object]]:
    """Sales that meet every expectation."""
    return [sale(number, amount=f"{10 + number}.00", **LATE) for number in range(1, count + 1)]


def versions(home: Home) -> list[tuple[int, str]]:
    """The commits of the published tables."""
    files = [
        file for name in PUBLISHED for file in (home.folder / "data/warehouse" / name / "_delta_log").glob("*.json")
    ]
    return sorted((int(file.stem), file.parts[-3]) for file in files)


def shown_rows(home: Home, message: str) -> list[int]:
    """How many rows each command that a message names shows."""
    counts = []
    for command in re.findall(r"spark-app show (.+?)\)(?:;|$)", message):
        table, _, date, _, where = shlex.split(command)
        day = datetime.date.fromisoformat(date)
        counts.append(len(first_rows(home.table(table), table=table, date=day, where=where, limit=1_000).rows))
    return counts


@pytest.fixture(scope="module")
def two_days(new_home: Callable[[str], Home]) -> Home:
    """Two good days are published, with the shipped limits."""
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


def test_a_rejected_day_changes_nothing_that_is_published(shop: Home) -> None:
    """The message names every violated expectation with its numbers and a command that shows its rows.

    No published table gets a commit, whichever expectation is violated: of single rows, of keys, of the age of the
    newest row, of amounts. A corrected day replaces its own rows and no others.
    """
    before = versions(shop), shop.content(*PUBLISHED)
    morning = [row | {"created_at": "2024-01-01T08:00:00Z"} for row in good(60)]
    last = sale(97, created_at="2024-01-01T09:00:00.623456Z")
    rows = [*morning, *morning[:5], last, sale(98, amount="50000.00"), sale(99, amount="-5.00")]
    shop.deliver("transactions", rows)
    with pytest.raises(QualityGateError) as raised:
        shop.run()
    rejection = failure(raised.value)
    assert rejection.exit_code == 4
    parts = [part.partition(" (rows:")[0] for part in rejection.message.split("; ")]
    assert parts == [
        "amount.range: 1 of 68 (1.4706%), allowed 1.0000%",
        "duplicates: 5 of 68 (7.3529%), allowed 5.0000%",
        "freshness: no valid row in the last 53,999 s of the day, allowed 21,600 s",
        "outliers: 1 of 62 (1.6129%), allowed 0.5000%",
    ]
    assert shown_rows(shop, rejection.message) == [1, 10, 1, 1]
    results = raised.value.results  # type: ignore[attr-defined]
    assert [run.outcome for run in results] == ["succeeded", "rejected"]
    mean, sigma = results[1].facts["mean"], results[1].facts["sigma"]
    assert f"abs(double(amount) - {mean!r}D) > {3 * sigma!r}D" in rejection.message
    assert (versions(shop), shop.content(*PUBLISHED)) == before

    shop.deliver("transactions", good(60))
    shop.run()
    assert len(shop.rows("transactions", "amount", where=f"processed_date = '{DAY}'")) == 60
    assert len(shop.rows("transactions", "amount", where=f"processed_date = '{OTHER_DAY}'")) == 40


def test_a_day_without_rows_changes_nothing(shop: Home) -> None:
    """Files without transactions are missing input; files without customers say that no customer changed."""
    kept = ("bronze", "customers", *PUBLISHED)
    before = versions(shop), shop.content(*kept)
    shop.deliver_text("customers", "", name="a.json")
    shop.deliver_text("transactions", "\n\n", name="a.json")
    with pytest.raises(InputError) as raised:
        shop.run()
    missing = failure(raised.value)
    assert missing.exit_code == 3
    assert missing.message.startswith(f"no rows at {shop.day_folder('transactions')}")
    customers = raised.value.results[0]  # type: ignore[attr-defined]
    assert (customers.outcome, customers.counts["read"], customers.counts["published"]) == ("succeeded", 0, 0)
    assert (versions(shop), shop.content(*kept)) == before
    assert [run.outcome for run in shop.run(replay=True)] == ["succeeded", "succeeded"]
    assert shop.content(*kept) == before[1]


def test_rejected_customers_stop_the_day_before_its_sales(shop: Home) -> None:
    """The history of the customers stays, for single rows and for duplicates; no transaction is read."""
    before = versions(shop), shop.content("customers", "bronze", *PUBLISHED)
    shop.deliver("customers", [customer(1, segment="pirate"), *[customer(2)] * 9])
    with pytest.raises(QualityGateError, match=r"segment\.allowed: 1 of 10 \(10") as raised:
        shop.run()
    assert "duplicates: 8 of 10 (80" in str(raised.value)
    assert shown_rows(shop, str(raised.value)) == [1, 9]
    assert (versions(shop), shop.content("customers", "bronze", *PUBLISHED)) == before
    assert len(raised.value.results) == 1  # type: ignore[attr-defined]


def test_without_checks_only_malformed_rows_are_quarantined(shop: Home) -> None:
    """`checks: false` measures what checks cost: no expectation is judged, and the rows still add up."""
    for pipeline in ("etl.customers", "etl.daily_sales"):
        shop.configure(pipeline, checks=False)
    shop.deliver("transactions", [*good(), *good(1), sale(99, amount="-5.00", **LATE)])
    shop.deliver_text("transactions", "{no row\n", name="b.json")
    sales = shop.run()[1]
    assert (sales.expectations, sales.nulls, sales.facts) == ([], {}, {})
    assert sales.counts == {"read": 43, "published": 41, "quarantined": 1, "duplicates": 1}
