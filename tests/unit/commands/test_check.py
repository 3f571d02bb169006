import pytest

from spark_app.commands.check import answer
from spark_app.errors import ConfigError
from spark_app.execution.checks import Checked, Finding, Module
from tests.unit.conftest import Printed

MODULES = [Module("etl.sales", "daily tables", "bronze, sales", "orders"), Module("etl.amounts", "helper", "", "")]
FIRST = Finding("etl.sales", "sales", "mistake", "shop/etl/sales.py:7: sales: there is no column amout")
SECOND = Finding("etl.sales", "bronze", "mistake", "shop/etl/sales.py:3: bronze returns nothing")
NOTE = Finding("etl.sales", "sales", "note", "shop/etl/sales.py:9: sales: not checked without data: 1 / 0")


def test_a_project_without_mistakes_is_listed(printed: Printed) -> None:
    """With its helpers, so that a decorator that was lost is seen, and with what could not be checked."""
    answer(Checked(MODULES, [NOTE]), printed.terminal, is_json=False)
    assert [line.split() for line in printed.out.getvalue().splitlines()[1:]] == [
        ["etl.sales", "daily", "tables", "bronze,", "sales", "orders"],
        ["etl.amounts", "helper"],
    ]
    assert printed.err.getvalue() == f"{NOTE.message}\n"


def test_one_mistake_is_the_failure(printed: Printed) -> None:
    """As a run would say it."""
    with pytest.raises(ConfigError) as raised:
        answer(Checked(MODULES, [NOTE, FIRST]), printed.terminal, is_json=False)
    assert (str(raised.value), printed.out.getvalue()) == (FIRST.message, "")


def test_of_several_mistakes_each_is_a_line(printed: Printed) -> None:
    """In the JSON document they are findings."""
    for is_json in (False, True):
        with pytest.raises(ConfigError, match="2 mistakes, each with its line above") as raised:
            answer(Checked(MODULES, [FIRST, SECOND]), printed.terminal, is_json=is_json)
        assert raised.value.document["findings"] == [FIRST, SECOND]
    assert printed.out.getvalue().splitlines() == [FIRST.message, SECOND.message]
