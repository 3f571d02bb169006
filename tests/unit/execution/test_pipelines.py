from collections.abc import Sequence

import pytest
from pyspark.sql.types import StructType

from spark_app.declarations.pipeline import Pipeline
from spark_app.errors import UsageError
from spark_app.execution import pipelines
from spark_app.warehouse.tables import Table
from tests import declared


def pipeline(reads: Sequence[str], writes: Sequence[str]) -> Pipeline:
    """A pipeline that declares tables."""
    return declared.pipeline(reads=reads, writes=[Table(name, StructType()) for name in writes])


def test_pipelines_run_after_those_that_write_what_they_read() -> None:
    """Whatever their names; tables that no pipeline writes do not matter."""
    known = {
        "etl.a": pipeline(["totals"], ["report"]),
        "etl.b": pipeline(["rows", "elsewhere"], ["totals"]),
        "etl.c": pipeline([], ["rows"]),
    }
    assert pipelines.in_order(known) == ["etl.c", "etl.b", "etl.a"]


def test_circles_and_shared_tables_are_refused() -> None:
    """The message names the pipelines."""
    with pytest.raises(UsageError, match=r"read from each other in a circle: etl\.. -> etl\.. -> etl\.."):
        pipelines.in_order({"etl.a": pipeline(["y"], ["x"]), "etl.b": pipeline(["x"], ["y"])})
    with pytest.raises(UsageError, match=r"etl\.a and etl\.b both write the table x"):
        pipelines.in_order({"etl.a": pipeline([], ["x"]), "etl.b": pipeline([], ["x"])})


def test_pipelines_are_found_by_their_package_and_named_with_or_without_it() -> None:
    """A name that is not there is refused with those that are."""
    assert pipelines.names("etl") == ["etl.customers", "etl.daily_sales"]
    assert pipelines.qualified("etl", ["daily_sales", "etl.customers"]) == ["etl.daily_sales", "etl.customers"]
    with pytest.raises(UsageError, match=r"no pipeline 'sales' in app/etl; the pipelines are etl\.customers, "):
        pipelines.qualified("etl", ["sales"])


def test_what_reads_the_tables_of_a_pipeline_is_chosen_with_a_plus() -> None:
    """And what reads theirs, in their order."""
    known = {
        "etl.c": pipeline([], ["rows"]),
        "etl.b": pipeline(["rows"], ["totals"]),
        "etl.a": pipeline(["totals"], []),
    }
    assert pipelines.downstream(known, "etl.b") == ["etl.b", "etl.a"]
    assert pipelines.downstream(known, "etl.c") == ["etl.c", "etl.b", "etl.a"]
    assert pipelines.qualified("etl", ["customers+"]) == ["etl.customers", "etl.daily_sales"]
    assert pipelines.qualified("etl", ["daily_sales+", "customers"]) == ["etl.daily_sales", "etl.customers"]


def test_every_table_is_declared_once_by_the_pipeline_that_writes_it() -> None:
    """The warehouse, `show` and the quarantine know tables from there."""
    sources = {table.name: table.source for table in pipelines.declared_tables()}
    assert sources == {
        "bronze_customers": "customers",
        "customers": None,
        "bronze": "transactions",
        "transactions": None,
        "daily_sales": None,
        "abandoned_carts": None,
        "activity": None,
        "attributions": None,
        "balances": None,
        "dead_letter_replays": None,
        "dead_letters": None,
        "events": None,
        "sessions": None,
        "bronze_refunds": "refunds",
        "refund_events": None,
        "refund_scores": None,
        "models": None,
        "model_evaluations": None,
        "model_promotions": None,
    }
