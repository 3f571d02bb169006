import msgspec
import pytest

from spark_app.models.gate import Gate, merit, refusals
from spark_app.runs.model_card import Confusion, Estimate, Evaluation, SliceScore, VersionComparison

GATE = Gate(
    resamples=1_000, margin=0.02, max_age_days=28, lift=2, slice_loss=0.05, slice_positives=50, calibration=0.02,
    latency_ms=1_000,
)  # fmt: skip


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
    assert refusals(GATE, candidate, None, None) == [reason]


def compared(value: float, low: float, high: float, *, days_newer: int = 7) -> VersionComparison:
    """A version that is so much better than production, with the interval of the difference."""
    return VersionComparison(difference=Estimate(value=value, low=low, high=high), samples=1_000, days_newer=days_newer)


BETTER = compared(0.05, 0.01, 0.09)


def test_a_version_must_be_better_than_production_beyond_the_interval() -> None:
    """A difference whose interval contains 0 is chance, however great it is."""
    assert refusals(GATE, judged(), judged(1), BETTER) == []
    assert merit(GATE, BETTER) == (
        "its average precision is better by +0.050 (+0.010 to +0.090 in 95 % of 1,000 samples of the same rows)"
    )
    [reason] = refusals(GATE, judged(score=0.35), judged(1), compared(0.05, -0.001, 0.1))
    assert reason == (
        "average precision is not better than that of version 1 in production beyond chance: "
        "+0.050 (-0.001 to +0.100 in 95 % of 1,000 samples of the same rows); "
        "as good is enough 28 days after that one, not 7"
    )


def test_an_equally_good_version_replaces_an_old_one() -> None:
    """It was trained on newer data. One that may be worse than the margin is not as good, however new it is."""
    as_good = compared(-0.001, -0.02, 0.018, days_newer=28)
    assert refusals(GATE, judged(), judged(1), as_good) == []
    assert merit(GATE, as_good) == (
        "it is as good, -0.001 (-0.020 to +0.018 in 95 % of 1,000 samples of the same rows), "
        "and was trained 28 days later"
    )
    assert merit(GATE, msgspec.structs.replace(as_good, days_newer=27)) is None
    [reason] = refusals(GATE, judged(), judged(1), compared(0.0, -0.021, 0.02, days_newer=365))
    assert reason.endswith("samples of the same rows), and at most 0.02 worse is as good")


def test_rows_that_tell_nothing_promote_nothing() -> None:
    """Held-out rows without refunds have no average precision to compare."""
    unknown = VersionComparison(difference=Estimate(value=None), samples=1_000, days_newer=365)
    [reason] = refusals(GATE, judged(), judged(1), unknown)
    assert reason == "the held-out rows do not tell its average precision from that of version 1 in production"


def test_no_slice_may_be_much_worse() -> None:
    """A slice with few refunds, and one that production does not know, are not judged."""
    production = judged(1, DE=0.8, FR=0.8)
    assert refusals(GATE, judged(DE=0.76, FR=0.76, NL=0.1), production, BETTER) == []
    candidate = judged(DE=0.74, FR=0.8)
    assert refusals(GATE, candidate, production, BETTER) == ["ROC AUC of country DE falls from 0.800 to 0.740"]
    few = [msgspec.structs.replace(each, positives=49) for each in candidate.slices]
    assert refusals(GATE, msgspec.structs.replace(candidate, slices=few), production, BETTER) == []


def test_a_score_that_is_not_known_is_not_good() -> None:
    """A held-out period without refunds has no average precision."""
    unknown = {"average_precision": Estimate(value=None), "calibration_error": Estimate(value=None)}
    assert len(refusals(GATE, msgspec.structs.replace(judged(), scores=unknown), None, None)) == 2
