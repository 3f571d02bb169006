import datetime

import pytest

from spark_app.errors import ConfigError
from spark_app.models.periods import Periods


def day(number: int) -> datetime.date:
    """A day of January."""
    return datetime.date(2024, 1, number)


def test_labels_of_training_rows_are_known_before_the_first_held_out_row() -> None:
    """Of ten days the last has no labels yet; of those before, one trains nothing, as its labels come too late."""
    found = Periods.of(day(10), history_days=10, window_days=0, held_out_days=2, label_days=1)
    assert found == Periods(day(1), day(6), day(8), day(9))


def test_what_happened_to_the_customers_of_every_row_is_known() -> None:
    """The first days train nothing: what happened before them is not in the history."""
    found = Periods.of(day(10), history_days=10, window_days=3, held_out_days=2, label_days=1)
    assert found == Periods(day(4), day(6), day(8), day(9))


def test_too_few_days_are_refused_with_the_least_number() -> None:
    """One day less than that leaves nothing to train on."""
    with pytest.raises(ConfigError, match="set it to 7 or more"):
        Periods.of(day(10), history_days=6, window_days=2, held_out_days=2, label_days=1)
    assert Periods.of(day(10), history_days=7, window_days=2, held_out_days=2, label_days=1).train_last == day(6)
