"""Whether a version may go to production: better than what is there, good enough by itself, and fast enough."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict, Field

from app.runs.model_card import AVERAGE_PRECISION, Evaluation, SliceScore


class Gate(BaseModel):
    """The limits of the gate.

    Attributes:
        margin: By how much the average precision must be above that of the version in production.
        lift: How many times the share of the rare class the average precision must be, with or without a production.
        slice_loss: By how much the ROC AUC of a slice may be below that of the version in production.
        slice_positives: Slices with fewer rows of the rare class are too noisy to judge.
        calibration: The largest mean difference of predicted probabilities and observed shares.
        latency_ms: The longest time to score a thousand rows.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    margin: float = Field(ge=0, le=1)
    lift: float = Field(ge=1)
    slice_loss: float = Field(ge=0, le=1)
    slice_positives: int = Field(ge=1)
    calibration: float = Field(ge=0, le=1)
    latency_ms: float = Field(gt=0)


def refusals(gate: Gate, candidate: Evaluation, production: Evaluation | None) -> list[str]:
    """Why a version must not go to production, one sentence each; empty if it may.

    Args:
        gate: The limits.
        candidate: The scores of the version.
        production: The scores of the version in production on the same rows; None without one.
    """
    return [*_by_itself(gate, candidate), *(_compared(gate, candidate, production) if production else ())]


def _by_itself(gate: Gate, candidate: Evaluation) -> Iterator[str]:
    reached, least = candidate.score(AVERAGE_PRECISION), gate.lift * candidate.positives / candidate.rows
    if not reached >= least:
        yield f"average precision is {reached:.3f}, and {gate.lift:g} times the share of the rare class is {least:.3f}"
    error = candidate.score("calibration_error")
    if not error <= gate.calibration:
        yield f"probabilities are off by {error:.3f} on average, and at most {gate.calibration:g} is allowed"
    if candidate.latency_ms is not None and candidate.latency_ms > gate.latency_ms:
        yield f"a thousand rows take {candidate.latency_ms:.0f} ms, and at most {gate.latency_ms:.0f} ms are allowed"


def _compared(gate: Gate, candidate: Evaluation, production: Evaluation) -> Iterator[str]:
    ours, theirs = candidate.score(AVERAGE_PRECISION), production.score(AVERAGE_PRECISION)
    if not ours >= theirs + gate.margin:
        yield (
            f"average precision is {ours:.3f}, not {gate.margin:g} above the {theirs:.3f} of version "
            f"{production.version} in production"
        )
    before = {each.title: each for each in production.slices}
    for each in candidate.slices:
        yield from _slice(gate, each, before.get(each.title))


def _slice(gate: Gate, ours: SliceScore, theirs: SliceScore | None) -> Iterator[str]:
    if theirs is None or ours.roc_auc is None or theirs.roc_auc is None or ours.positives < gate.slice_positives:
        return
    if theirs.roc_auc - ours.roc_auc > gate.slice_loss:
        yield f"ROC AUC of {ours.title} falls from {theirs.roc_auc:.3f} to {ours.roc_auc:.3f}"
