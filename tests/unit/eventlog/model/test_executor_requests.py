"""How many executors were asked for, and how many there were."""

import pytest

from spark_app.eventlog.model.executor_requests import asked, most_at_once
from tests.unit.eventlog import log

POD = {"spark.master": "k8s://https://host:6443"}


@pytest.mark.parametrize(
    ("settings", "number"),
    [
        (POD, 2),
        (POD | {"spark.executor.instances": "7"}, 7),
        (POD | {"spark.executor.instances": "many"}, None),
        (POD | {"spark.dynamicAllocation.enabled": "true", "spark.executor.instances": "7"}, None),
        ({"spark.master": "yarn"}, 2),
        ({"spark.master": "spark://host:7077"}, None),
        ({"spark.master": "spark://host:7077", "spark.executor.instances": "3"}, 3),
    ],
)
def test_settings_ask_for_executors(settings: dict[str, str], number: int | None) -> None:
    """Kubernetes and YARN have a default; with dynamic allocation the work asks."""
    assert asked(settings) == number


def test_executors_that_followed_each_other_were_not_there_at_once() -> None:
    """One of three came when another had gone."""
    lines = [log.started(1000), log.executor("1", time=2000), log.executor("2", time=2000)]
    lines += [log.removed("1", time=3000, reason="gone"), log.executor("3", time=4000), log.ended(5000)]
    assert most_at_once(log.application(lines)) == 2
    assert most_at_once(log.application([log.started(1000), log.ended(5000)])) == 0
