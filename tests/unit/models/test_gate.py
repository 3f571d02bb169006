import msgspec
import pytest

from app.models.gate import Gate, refusals
from app.runs.model_card import Confusion, Estimate, Evaluation, SliceScore

GATE = Gate(margin=0.005, lift=2, slice_loss=0.05, slice_positives=50, calibration=0.02, latency_ms=1_000)


def judged(
    version: int = 2, *, score: float = 0.3, calibration: float = 0.01, latency: float = 100, **slices: float
) -> Evaluation:
    """An evaluation of a thousand rows, 50 of them refunded, with the ROC AUC of countries."""
    scores = {"average_precision": Estimate(value=score), "calibration_error": Estimate(value=calibration)}
    return Evaluation(
        version=version,
        first_date="2024-01-06",
        last_date="2024-01-07",
        rows=1_000,
        positives=50,
        scores=scores,
        threshold=0.1,
        confusion=Confusion(true_negative=900, false_positive=50, false_negative=20, true_positive=30),
        roc=[],
        precision_recall=[],
        calibration=[],
        slices=[
            SliceScore(column="country", value=name, rows=500, positives=60, average_precision=None, roc_auc=auc)
            for name, auc in slices.items()
        ],
        latency_ms=latency,
    )


@pytest.mark.parametrize(
    ("candidate", "reason"),
    [
        (judged(score=0.09), "average precision is 0.090, and 2 times the share of the rare class is 0.100"),
        (judged(calibration=0.03), "probabilities are off by 0.030 on average, and at most 0.02 is allowed"),
        (judged(latency=1_001), "a thousand rows take 1001 ms, and at most 1000 ms are allowed"),
    ],
)
def test_a_version_must_be_good_by_itself(candidate: Evaluation, reason: str) -> None:
    """Also where nothing is in production."""
    assert refusals(GATE, candidate, None) == [reason]


def test_a_version_must_be_better_than_production_by_the_margin() -> None:
    """As good is not enough."""
    assert refusals(GATE, judged(score=0.3051), judged(1)) == []
    [reason] = refusals(GATE, judged(score=0.3049), judged(1))
    assert reason == "average precision is 0.305, not 0.005 above the 0.300 of version 1 in production"


def test_no_slice_may_be_much_worse() -> None:
    """A slice with few refunds, and one that production does not know, are not judged."""
    production = judged(1, DE=0.8, FR=0.8)
    assert refusals(GATE, judged(score=0.4, DE=0.76, FR=0.76, NL=0.1), production) == []
    candidate = judged(score=0.4, DE=0.74, FR=0.8)
    assert refusals(GATE, candidate, production) == ["ROC AUC of country DE falls from 0.800 to 0.740"]
    few = [msgspec.structs.replace(each, positives=49) for each in candidate.slices]
    assert refusals(GATE, msgspec.structs.replace(candidate, slices=few), production) == []


def test_a_score_that_is_not_known_is_not_good() -> None:
    """A held-out period without refunds has no average precision."""
    unknown = {"average_precision": Estimate(value=None), "calibration_error": Estimate(value=None)}
    assert len(refusals(GATE, msgspec.structs.replace(judged(), scores=unknown), None)) == 2
