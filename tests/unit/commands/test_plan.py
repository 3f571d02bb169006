"""`spark-app plan` reads as a tree of what follows from what, and fails where it is asked to."""

import json
from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.commands.plan import show
from spark_app.execution.forecast import Forecast
from spark_app.execution.plan import NO_ROWS, Plan, Table
from spark_app.warehouse import delta_log
from tests.unit.conftest import Printed

TREE = """\
6 tables beside data/warehouse
all tables: Spark: 4.1.0 → 4.2.0

orders: breaking (net)
  - column net: int → bigint
  totals: rows may differ (total)
    - follows orders: net
    shares: rows may differ
      - follows totals: total

customers: unchanged
  - comments of its columns differ

new: visits
unchanged: countries

to write the days again, without the start of Spark:
  etl.a: 30 days, 1 min 00 s to 2 min 30 s, by 7 runs that are kept here
  etl.b: 1 day, it is not known how long: too few runs are kept here
ml.refunds reads orders, and is not compared itself
not compared, since no function of the project makes them: dead_letters
"""


def test_a_table_stands_below_the_one_that_it_follows(printed: Printed) -> None:
    """With each reason in a line of its own; those of which there is nothing to say are in one line."""
    tables = [
        Table(
            table="orders", pipeline="etl.a", state="breaking", reasons=["column net: int → bigint"], columns=["net"]
        ),
        Table(
            table="totals",
            pipeline="etl.a",
            state="rows may differ",
            reasons=["follows orders: net"],
            columns=["total"],
            follows=["orders"],
        ),
        Table(
            table="shares",
            pipeline="etl.b",
            state="rows may differ",
            reasons=["follows totals: total"],
            columns=None,
            follows=["customers", "totals"][1:],
        ),
        Table(table="customers", pipeline="etl.c", state="unchanged", reasons=["comments of its columns differ"]),
        Table(table="countries", pipeline="etl.c", state="unchanged"),
        Table(table="visits", pipeline="etl.d", state="new", reasons=[NO_ROWS], columns=None),
    ]
    again = [Forecast("etl.a", 30, 7, 60, 150), Forecast("etl.b", 1, 1)]
    found = Plan(tables, ["Spark: 4.1.0 → 4.2.0"], ["dead_letters"], {"ml.refunds": ["orders"]}, again)
    show(found, printed.terminal, "data/warehouse")
    assert printed.out.getvalue() == TREE


@pytest.fixture
def gone(shop: Path) -> Path:
    """A project whose warehouse has a table that it does not declare any more."""
    log = shop.parent / "data" / "warehouse" / "old_orders" / "_delta_log"
    log.mkdir(parents=True)
    info = {"timestamp": 1, "operation": "WRITE", "userMetadata": delta_log.metadata_of("run#1", '{"code":"1"}')}
    (log / f"{0:020d}.json").write_text(json.dumps({"commitInfo": info}), encoding="utf-8")
    return shop


def test_a_condition_ends_the_command_with_a_code_of_its_own(gone: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The message names the tables, and the document has all that was found."""
    assert program.run(["plan"]) == 0
    assert "old_orders: gone\n  - no function declares it any more\n" in capsys.readouterr().out
    assert program.run(["plan", "--fail-on", "breaking", "--json"]) == 5
    document = json.loads(capsys.readouterr().out)
    assert document["error"]["message"] == "--fail-on breaking: old_orders"
    assert [each["state"] for each in document["tables"]] == ["gone", "new", "new", "new", "new"]
    assert document["again"] == []


def test_a_wrong_condition_is_refused(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As is a wrong value of any other option."""
    assert program.run(["plan", "--fail-on", "anything"]) == 2
    assert "'breaking', 'rows'" in capsys.readouterr().err
