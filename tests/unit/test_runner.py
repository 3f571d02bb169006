"""What a command says that it was asked to do."""

from app.runner import workload


def test_what_takes_another_time_is_another_workload() -> None:
    """A range, and rows from bronze; which days they are of makes no difference, and is not said."""
    asked = [workload(days, is_replay=replay) for days in (1, 2) for replay in (False, True)]
    assert asked == [
        "etl.customers + etl.daily_sales, 1 day",
        "etl.customers + etl.daily_sales, 1 day, replay",
        "etl.customers + etl.daily_sales, 2 days",
        "etl.customers + etl.daily_sales, 2 days, replay",
    ]
