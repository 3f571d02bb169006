"""Limits of expectations, as an operator configures them."""

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Annotated, ClassVar

from pydantic import BaseModel, ConfigDict, Field, field_validator

from spark_app.quality.results import FRESHNESS
from spark_app.settings import Share

Limit = Annotated[float, Field(strict=True, ge=0, allow_inf_nan=False)]


class LimitedConfig(BaseModel):
    """A configuration with limits; `expectation_names` are the allowed keys of `limits`.

    Where the configuration says nothing of an expectation, its limit is that of `usual_limits`, else `default_limit`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)
    expectation_names: ClassVar[Sequence[str]] = ()
    usual_limits: ClassVar[Mapping[str, float]] = {}

    default_limit: Share = 0.01
    limits: dict[str, Limit] = Field(default_factory=dict)

    @field_validator("limits")
    @classmethod
    def _are_limits_of_expectations(cls, limits: dict[str, float]) -> dict[str, float]:
        for expectation, limit in limits.items():
            if expectation not in cls.expectation_names:
                near = get_close_matches(expectation, cls.expectation_names, n=1)
                raise ValueError(
                    f"unknown expectation {expectation!r}; {f'do you mean {near[0]}? ' if near else ''}allowed are "
                    f"{', '.join(sorted(cls.expectation_names))}"
                )
            if expectation != FRESHNESS and limit > 1:
                raise ValueError(f"{expectation} is limited by a share from 0 to 1, not by {limit}")
        return limits

    @property
    def all_limits(self) -> dict[str, float]:
        """The limit of each expectation."""
        usual = {name: self.usual_limits.get(name, self.default_limit) for name in self.expectation_names}
        return {name: self.limits.get(name, limit) for name, limit in usual.items()}
