from typing import Any, ClassVar

import pytest

from spark_app.engine import ingest


class Config(ingest.DailyConfig):
    """That of a pipeline with two expectations."""

    expectation_names: ClassVar = ["duplicates", "freshness"]


SHIPPED: dict[str, Any] = {"default_limit": 0.01, "limits": {}, "checks": True, "schedule": None}


@pytest.mark.parametrize("limit", [5, True, float("nan"), float("inf"), -1, "0.5"])
def test_what_would_switch_a_limit_off_is_refused(limit: Any) -> None:
    """A share is a number from 0 to 1: 5 is no percentage, and what is compared with not-a-number never breaches it."""
    for changes in ({"default_limit": limit}, {"limits": {"duplicates": limit}}):
        with pytest.raises(ValueError, match="limit"):
            Config(**SHIPPED | changes)


@pytest.mark.parametrize("limit", [0, 1, 0.5])
def test_a_share_may_be_written_as_a_whole_number(limit: float) -> None:
    """YAML reads 0 and 1 as such."""
    config = Config(**SHIPPED | {"default_limit": limit, "limits": {"duplicates": limit}})
    assert (config.default_limit, config.limits) == (limit, {"duplicates": limit})


def test_the_limit_of_freshness_is_seconds() -> None:
    """It may be more than 1; it must be a number."""
    assert Config(**SHIPPED | {"limits": {"freshness": 21_600}}).limits == {"freshness": 21_600}
    for limit in (-1, True, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="freshness"):
            Config(**SHIPPED | {"limits": {"freshness": limit}})


def test_a_limit_of_no_promise_is_refused() -> None:
    """It would limit nothing; what there is, is named."""
    with pytest.raises(ValueError, match="unknown expectation 'colour'; allowed are duplicates, freshness"):
        Config(**SHIPPED | {"limits": {"duplicates": 0.1, "colour": 0.1}})
