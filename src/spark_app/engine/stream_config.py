"""What an operator tunes of streaming queries, as in `config/streaming/`."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from spark_app.engine.limits import LimitedConfig
from spark_app.settings import Interval
from spark_app.vocabulary.spark_settings import INTERVAL_UNITS_MS


def milliseconds(interval: Interval) -> int:
    """The length of an interval, `10 minutes`, in milliseconds."""
    number, unit = interval.split()
    return int(number) * INTERVAL_UNITS_MS[unit.removesuffix("s")]


class StreamConfig(BaseModel):
    """What an operator tunes of any streaming query."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    trigger: Interval = "5 seconds"
    records_per_trigger: int = Field(default=200_000, gt=0)
    files_per_trigger: int = Field(default=1_000, gt=0)


class RealTimeConfig(StreamConfig):
    """What an operator tunes of a query that can work in real time: it has no state, and sends to a topic.

    Attributes:
        real_time: How often it commits in real time, which wants Kafka, and a core for each partition that is read;
            None for micro-batches.
    """

    real_time: Interval | None = None


class CheckedConfig(StreamConfig, LimitedConfig):
    """What an operator tunes of a query with expectations."""

    on_breach: Literal["report", "stop"] = "report"
