import pytest

from spark_app.errors import UsageError
from spark_app.execution import pipelines, training


def test_a_model_is_found_by_its_module() -> None:
    """Modules of `app/ml/` without a model are none; the only model need not be named."""
    assert training.models() == ["ml.refunds"]
    assert [training.chosen_model(name) for name in (None, "refunds", "ml.refunds")] == ["ml.refunds"] * 3
    for name in ("refund_events", "unknown"):
        with pytest.raises(UsageError, match=r"ml\.refunds"):
            training.chosen_model(name)


def test_a_table_needs_its_writer_and_what_that_reads() -> None:
    """In the order of their runs; other pipelines are left out, and so is a table that nobody writes."""
    loaded = pipelines.load("etl") | pipelines.load("ml")
    assert pipelines.needed(loaded, "transactions") == ["etl.customers", "etl.daily_sales"]
    assert pipelines.needed(loaded, "refund_events") == ["ml.refund_events"]
    assert pipelines.needed(loaded, "unknown") == []
