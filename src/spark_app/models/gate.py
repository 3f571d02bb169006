"""Whether a version may go to production: good by itself, and better than what is there, or as good and newer."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from spark_app.runs.model_card import AVERAGE_PRECISION, Evaluation, SliceScore, VersionComparison


class Gate(BaseModel):
    """The limits of the gate.

    Attributes:
        resamples: Samples of the paired bootstrap, by which the average precision is compared with that of the version
            in production.
        margin: The average precision that a version may lose against the one in production, at the lower end of the
            interval, and still count as equally good.
        max_age_days: An equally good version replaces one in production that was trained so many days before it; 0 for
            any.
        lift: How many times the share of the rare class the average precision must be, with or without a production.
        slice_loss: By how much the ROC AUC of a slice may be below that of the version in production.
        slice_positives: Slices with fewer rows of the rare class are too noisy to judge.
        calibration: The largest mean difference of predicted probabilities and observed shares.
        latency_ms: The longest time to score a thousand rows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    resamples: int = Field(default=1_000, ge=1)
    margin: float = Field(default=0.02, ge=0, le=1)
    max_age_days: int = Field(default=7, ge=0)
    lift: float = Field(default=2, ge=1)
    slice_loss: float = Field(default=0.05, ge=0, le=1)
    slice_positives: int = Field(default=50, ge=1)
    calibration: float = Field(default=0.03, ge=0, le=1)
    latency_ms: float = Field(default=10_000, gt=0)


def refusals(
    gate: Gate, candidate: Evaluation, production: Evaluation | None, comparison: VersionComparison | None
) -> list[str]:
    """Why a version must not go to production, one sentence each; empty if it may.

    Args:
        gate: The limits.
        candidate: The scores of the version.
        production: The scores of the version in production on the same rows; None without one.
        comparison: How the version compares with that one.
    """
    reasons = [*_by_itself(gate, candidate)]
    if production is not None and comparison is not None:
        reasons += _compared(gate, production, comparison)
        reasons += _slices(gate, candidate, production)
    return reasons


def merit(gate: Gate, comparison: VersionComparison) -> str | None:
    """Why a version is put in place of the one in production, as a clause; None if nothing speaks for it."""
    low = comparison.difference.low
    if low is None:
        return None
    if low > 0:
        return f"its average precision is better by {_interval(comparison)}"
    if low >= -gate.margin and comparison.days_newer >= gate.max_age_days:
        return f"it is as good, {_interval(comparison)}, and was trained {comparison.days_newer} days later"
    return None


def _interval(comparison: VersionComparison) -> str:
    """`+0.012 (-0.001 to +0.025 in 95 % of 1,000 samples of the same rows)`."""
    value, low, high = (comparison.difference.value, comparison.difference.low, comparison.difference.high)
    return f"{value:+.3f} ({low:+.3f} to {high:+.3f} in 95 % of {comparison.samples:,} samples of the same rows)"


def _by_itself(gate: Gate, candidate: Evaluation) -> Iterator[str]:
    reached, least = candidate.score(AVERAGE_PRECISION), gate.lift * candidate.positives / candidate.rows
    if not reached >= least:
        yield f"average precision is {reached:.3f}, and {gate.lift:g} times the share of the rare class is {least:.3f}"
    error = candidate.score("calibration_error")
    if not error <= gate.calibration:
        yield f"probabilities are off by {error:.3f} on average, and at most {gate.calibration:g} is allowed"
    if candidate.latency_ms is not None and candidate.latency_ms > gate.latency_ms:
        yield f"a thousand rows take {candidate.latency_ms:.0f} ms, and at most {gate.latency_ms:.0f} ms are allowed"


def _compared(gate: Gate, production: Evaluation, comparison: VersionComparison) -> Iterator[str]:
    if merit(gate, comparison) is not None:
        return
    than, low = f"version {production.version} in production", comparison.difference.low
    if low is None:
        yield f"the held-out rows do not tell its average precision from that of {than}"
        return
    worse = f"average precision is not better than that of {than} beyond chance: {_interval(comparison)}"
    if low < -gate.margin:
        yield f"{worse}, and at most {gate.margin:g} worse is as good"
    else:
        yield f"{worse}; as good is enough {gate.max_age_days} days after that one, not {comparison.days_newer}"


def _slices(gate: Gate, candidate: Evaluation, production: Evaluation) -> Iterator[str]:
    before = {each.title: each for each in production.slices}
    for each in candidate.slices:
        yield from _slice(gate, each, before.get(each.title))


def _slice(gate: Gate, candidate: SliceScore, production: SliceScore | None) -> Iterator[str]:
    if (
        production is None
        or candidate.roc_auc is None
        or production.roc_auc is None
        or candidate.positives < gate.slice_positives
    ):
        return
    if production.roc_auc - candidate.roc_auc > gate.slice_loss:
        yield f"ROC AUC of {candidate.title} falls from {production.roc_auc:.3f} to {candidate.roc_auc:.3f}"
