"""Which days train a model and which judge it."""

import datetime
from dataclasses import dataclass
from typing import Self

from spark_app.errors import ConfigError

DAY = datetime.timedelta(days=1)


@dataclass(frozen=True)
class Periods:
    """Days of transactions, as of the end of the last day of a history.

    Left out are the first days, which only tell what had happened to customers; the last days, whose labels are not
    known yet; and the days before the held-out ones: when the first held-out row was made, their labels were not known,
    and a model trained then could not have learned from them.

    Attributes:
        first: First day of the training rows.
        train_last: Last day of the training rows.
        held_out_first: First day of the rows that judge the model.
        held_out_last: Last day of those.
    """

    first: datetime.date
    train_last: datetime.date
    held_out_first: datetime.date
    held_out_last: datetime.date

    @classmethod
    def of(
        cls, last: datetime.date, *, history_days: int, window_days: int, held_out_days: int, label_days: int
    ) -> Self:
        """The periods of a history.

        Args:
            last: The last day of the history.
            history_days: Its length.
            window_days: How many days before a row its features look at.
            held_out_days: Days that judge the model.
            label_days: How long after a transaction its label is known.

        Raises:
            ConfigError: So few days leave nothing to train on.
        """
        first, held_out_last = last - (history_days - 1 - window_days) * DAY, last - label_days * DAY
        held_out_first = held_out_last - (held_out_days - 1) * DAY
        train_last = held_out_first - (label_days + 1) * DAY
        if train_last < first:
            least = window_days + held_out_days + 2 * label_days + 1
            raise ConfigError(
                f"history_days is {history_days}, which leaves no day to train on: set it to {least} or more"
            )
        return cls(first, train_last, held_out_first, held_out_last)
