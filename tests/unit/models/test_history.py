import datetime
from collections.abc import Sequence

import pytest

from spark_app.models.history import reach

DAY = datetime.timedelta(days=1)
TODAY = datetime.date(2024, 1, 8)


@pytest.mark.parametrize(
    ("sales", "refunds", "until"),
    [
        ([-3, -2, -1], [-3, -2, -1], 0),
        ([-2, -1, 0, 5], [-1, 0], 0),
        ([-2], [-1], -1),
        ([-1], [-9], -8),
        ([-1], [], None),
        ([0, 1], [-1], None),
    ],
)
def test_the_table_that_ends_first_says_how_far_the_history_of_a_request_reaches(
    sales: Sequence[int], refunds: Sequence[int], until: int | None
) -> None:
    """Up to the start of the day of the request, however far the tables go on; before that it is stale."""
    published = [[TODAY + age * DAY for age in ages] for ages in (sales, refunds)]
    assert reach(published, TODAY) == (TODAY, None if until is None else TODAY + until * DAY, until != 0)
