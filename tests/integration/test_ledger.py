"""The figures of the real pipeline equal the ledger of the faults planted in a day, exactly."""

from collections.abc import Callable

import pytest

from app.demo.ledger import Ledger
from spark_app.runs.run_record import RunRecord
from tests.integration.home import Home, assert_is_ledger

ROWS = 20_000


@pytest.fixture(scope="module")
def day(new_home: Callable[[str], Home]) -> tuple[Home, dict[str, Ledger], list[RunRecord]]:
    """A day with every fault planted, once through both pipelines with the shipped thresholds."""
    home = new_home("ledger")
    ledgers = home.made(rows=ROWS)
    return home, ledgers, home.run()


def test_every_kind_of_fault_is_planted(day: tuple[Home, dict[str, Ledger], list[RunRecord]]) -> None:
    """The ledger of the tested day has no kind of fault that it counts as 0."""
    _, ledgers, _ = day
    assert min(ledgers["transactions"].planted.values()) > 0


def test_transactions_equal_their_ledger(day: tuple[Home, dict[str, Ledger], list[RunRecord]]) -> None:
    """Rows, published, quarantined, duplicates, nulls, outliers and every reason are those of the ledger."""
    _, ledgers, results = day
    assert_is_ledger(results[1], ledgers["transactions"])


def test_customers_equal_their_ledger(day: tuple[Home, dict[str, Ledger], list[RunRecord]]) -> None:
    """So are those of the customers' feed."""
    _, ledgers, results = day
    assert_is_ledger(results[0], ledgers["customers"])


def test_bronze_keeps_every_row_and_one_reason_each(day: tuple[Home, dict[str, Ledger], list[RunRecord]]) -> None:
    """Nothing is dropped on the way to bronze; a quarantined row has the reason that was planted and no other."""
    home, ledgers, _ = day
    assert home.table("bronze").count() == ledgers["transactions"].rows
    assert home.table("bronze_customers").count() == ledgers["customers"].rows
    reasons = home.table("quarantine").groupBy("source", "violations").count().collect()
    assert {len(row.violations) for row in reasons} == {1}
    assert sum(row["count"] for row in reasons) == sum(ledger.parts["quarantined"] for ledger in ledgers.values())
    assert home.table("quarantine").where("raw IS NULL").count() == 0


def test_published_rows_are_those_of_the_ledger(day: tuple[Home, dict[str, Ledger], list[RunRecord]]) -> None:
    """The table holds each valid key once, every customer is found, and the totals add up to it."""
    home, ledgers, _ = day
    published = home.table("transactions")
    assert (
        published.count()
        == published.select("transaction_id").distinct().count()
        == ledgers["transactions"].parts["valid"]
    )
    assert published.where("customer_segment IS NULL OR customer_country IS NULL").count() == 0
    sold = published.where("status IN ('completed', 'pending')").selectExpr("count(*)", "sum(amount)").collect()
    summed = home.table("daily_sales").selectExpr("sum(transaction_count)", "sum(total_amount)").collect()
    assert tuple(sold[0]) == tuple(summed[0])
