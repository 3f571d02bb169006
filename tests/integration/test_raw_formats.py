"""A day is the same day in whatever format it comes."""

import gzip
import json
from decimal import Decimal

import pytest

from spark_app.errors import QualityGateError
from tests.integration.home import DAY, Home, assert_is_ledger, customer, ledger_figures, sale

CSV_HEAD = (
    "transaction_id,customer_id,product_id,category,quantity,amount,currency,status,payment_method,channel,country,"
    "created_at,updated_at"
)
CSV_ROW = (
    "t-20240101-{number:07},c-0000001,p-00001,books,1,10.00,EUR,completed,card,web,DE,"
    "2024-01-01T08:00:00Z,2024-01-01T08:00:00Z"
)
CUSTOMERS_CSV = (
    "customer_id,segment,country,signed_up_at,updated_at\n"
    "c-0000001,consumer,DE,2020-01-01T00:00:00Z,2023-01-01T00:00:00Z\n"
)


@pytest.mark.parametrize(("transactions", "customers"), [("csv", "json"), ("parquet", "csv")])
def test_every_format_equals_its_ledger(home: Home, transactions: str, customers: str) -> None:
    """Compressed JSON, CSV and Parquet give the figures of their ledgers, with every fault that they can hold."""
    home.forgive()
    ledgers = home.made(rows=2_000, kind=transactions, customers=customers)
    for file in home.day_folder("customers").glob("*.json"):
        file.with_name(f"{file.name}.gz").write_bytes(gzip.compress(file.read_bytes()))
        file.unlink()
    customer_run, sales = home.run()
    assert len(ledger_figures(ledgers["transactions"])) >= 11
    assert_is_ledger(sales, ledgers["transactions"])
    assert_is_ledger(customer_run, ledgers["customers"])
    reasons = home.table("quarantine").selectExpr("size(violations) = 1 AND raw IS NOT NULL").distinct().collect()
    assert [row[0] for row in reasons] == [True]


def test_a_new_column_is_reported_and_kept_in_bronze_only(home: Home) -> None:
    """Each CSV file is read by its own header: a column that appears at noon shifts no value and reaches no sale."""
    home.forgive()
    home.reads("csv")
    home.deliver_text("customers", CUSTOMERS_CSV, name="a.csv")
    home.deliver_text("transactions", f"{CSV_HEAD}\n{CSV_ROW.format(number=1)}\n", name="a.csv")
    head = CSV_HEAD.replace("customer_id", "voucher,customer_id")
    row = CSV_ROW.format(number=2).replace("c-0000001", "v-9,c-0000001")
    home.deliver_text("transactions", f"{head}\n{row}\n", name="b.csv")
    home.run()
    assert home.notes == ["new columns upstream, kept in bronze only: voucher"]
    assert home.rows("bronze", "source_file", "extra['voucher']", "size(violations)") == [
        ("a.csv", None, 0),
        ("b.csv", "v-9", 0),
    ]
    assert "voucher" not in home.table("transactions").columns
    assert len(home.rows("transactions", "transaction_id", where="customer_id = 'c-0000001' AND amount = 10")) == 2


def test_what_cannot_be_read_is_no_missing_value(home: Home) -> None:
    """Nulls are counted where nothing was said, once more in a replay; what would be rounded is in no column."""
    home.forgive()
    home.deliver("customers", [customer(1)])
    lines = [sale(1), sale(2, amount="12.505"), sale(3, created_at="12:00"), sale(4, amount=None)]
    twice = '{"x": 1, "x": 2}'
    home.deliver_text("transactions", "\n".join([*map(json.dumps, lines), twice]), name="a.json")
    for replay in (False, True):
        sales = home.run(replay=replay)[1]
        assert {column: count for column, count in sales.nulls.items() if count} == {"amount": 1}
        assert home.rows("bronze", "violations[0]", "amount", "raw", where="size(violations) > 0") == [
            ("amount.not_null", None, json.dumps(lines[3])),
            ("amount.type", None, json.dumps(lines[1])),
            ("created_at.type", Decimal("10.00"), json.dumps(lines[2])),
            ("malformed", None, twice),
        ]


def test_a_missing_column_rejects_the_day(home: Home) -> None:
    """Columns that no row has any more are named, text or not, also where single nulls would be allowed."""
    home.configure("etl.daily_sales", default_limit=1.0, limits={"freshness": 86_400})
    home.deliver("customers", [customer(1)])
    missing = ("amount", "payment_method")
    rows = [{name: value for name, value in sale(number).items() if name not in missing} for number in range(3)]
    home.deliver("transactions", rows)
    with pytest.raises(QualityGateError, match=r"columns\.missing: 2 of 13"):
        home.run(DAY)
    assert f"no row has a value for {', '.join(missing)}" in home.notes
    assert home.content("transactions", "daily_sales") == []
