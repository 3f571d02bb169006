from decimal import Decimal

import pytest

from spark_app.eventlog.cost import CoreHours, by_user, requested_memory, spent
from spark_app.settings import Prices
from tests.unit.eventlog import log

HOUR = 3_600_000
GIB = 1 << 30


def test_executors_cost_while_they_are_registered() -> None:
    """One for two hours, one for an hour, of four cores and 2 GiB each; what comes before the period is not counted."""
    lines = [
        log.environment({"spark.master": "spark://host:7077", "spark.executor.memory": "2g"}),
        log.started(),
        log.executor("1", time=1000),
        log.executor("2", time=1000),
        log.removed("2", time=1000 + 2 * HOUR, reason="idle"),
        log.ended(1000 + 3 * HOUR),
    ]
    assert spent(log.application(lines), 1000 + HOUR, 1000 + 3 * HOUR) == CoreHours(core_hours=12, gib_hours=6)


def test_users_of_spark_connect_share_what_the_executors_took() -> None:
    """By the time of their tasks, each on two cores; what no task of a user had is nobody's."""
    lines = [
        log.environment({"spark.master": "spark://host:7077", "spark.task.cpus": "2"}),
        log.started(0), log.executor("1", cores=4, time=0), log.session(), log.operation("o"),
        log.job(0, [0], **{"spark.job.tags": log.tag("o")}), log.stage(0), log.task(0, 0, seconds=3600),
        log.job(1, [1]), log.stage(1), log.task(1, 1, seconds=3600), log.ended(2 * HOUR),
    ]  # fmt: skip
    app = log.application(lines)
    shares = by_user(app, app.stages.values(), CoreHours(core_hours=8, gib_hours=4))
    assert shares == {"ana": CoreHours(2, 1), "": CoreHours(6, 3)}


def test_a_price_is_exact_and_unknown_without_prices() -> None:
    """A tenth of a unit for a core-hour, a hundredth for a GiB-hour."""
    took, prices = CoreHours(12, 6), Prices(currency="EUR", core_hour=Decimal("0.1"), gib_hour=Decimal("0.01"))
    assert took.price(prices) == Decimal("1.26")
    assert took.price(Prices(currency="EUR", core_hour=None, gib_hour=None)) is None
    assert CoreHours(12, None).price(prices) is None


def test_other_cores_have_as_much_memory_each() -> None:
    """Half a GiB for each core."""
    assert CoreHours(12, 6).on(8, HOUR) == CoreHours(core_hours=8, gib_hours=4)


@pytest.mark.parametrize(
    ("properties", "memory"),
    [
        ({"spark.master": "spark://host:7077"}, GIB),
        ({"spark.master": "spark://host:7077", "spark.executor.memory": "512m"}, GIB // 2),
        ({"spark.master": "yarn", "spark.executor.memory": "10g"}, 11 * GIB),
        ({"spark.master": "yarn", "spark.executor.memory": "1g"}, GIB + 384 * (1 << 20)),
        (
            {"spark.master": "k8s://host", "spark.executor.memory": "1g", "spark.executor.memoryOverhead": "1024"},
            2 * GIB,
        ),
        ({"spark.master": "local[2]", "spark.driver.memory": "2g", "spark.executor.memory": "9g"}, 2 * GIB),
        ({"spark.master": "yarn", "spark.executor.memory": "lots"}, None),
    ],
)
def test_the_memory_is_what_spark_requests(properties: dict[str, str], memory: int | None) -> None:
    """With what it requests beside the heap, where a resource manager is asked."""
    assert requested_memory(properties) == memory
