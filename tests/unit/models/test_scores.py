import tracemalloc

import numpy as np
import pandas as pd
import pytest
from sklearn import metrics

from spark_app.models import scores

DRAWS = np.random.default_rng(5)
PROBABILITY = DRAWS.beta(1, 15, 4_000)
LABEL = (DRAWS.random(4_000) < PROBABILITY).astype(float)


def test_scores_are_those_of_scikit_learn_with_intervals_around_them() -> None:
    """And the same seed gives the same intervals."""
    found = scores.estimates(LABEL, PROBABILITY, samples=50, seed=1)
    assert found["average_precision"].value == metrics.average_precision_score(LABEL, PROBABILITY)
    assert found["roc_auc"].value == metrics.roc_auc_score(LABEL, PROBABILITY)
    assert found["log_loss"].value == metrics.log_loss(LABEL, PROBABILITY)
    assert found["brier"].value == metrics.brier_score_loss(LABEL, PROBABILITY)
    for name in ("average_precision", "roc_auc", "log_loss", "brier"):
        low, value, high = found[name].low, found[name].value, found[name].high
        assert low is not None
        assert value is not None
        assert high is not None
        assert low < value < high
    assert found == scores.estimates(LABEL, PROBABILITY, samples=50, seed=1)


def test_a_difference_is_judged_on_the_same_rows() -> None:
    """Of two that are equally good the interval holds 0, also where one scores higher; a better one is clear."""
    draws = np.random.default_rng(3)
    one, other = (PROBABILITY * np.exp(draws.normal(0, 0.5, len(LABEL))) for _ in range(2))
    chance = scores.difference(LABEL, one, other, samples=1_000, seed=1)
    assert chance.value == metrics.average_precision_score(LABEL, one) - metrics.average_precision_score(LABEL, other)
    assert chance.value is not None
    assert chance.low is not None
    assert chance.high is not None
    assert chance.low < 0 < chance.high
    assert abs(chance.value) > 0.005, "a difference that a limit of 0.005 takes for progress"
    clear = scores.difference(LABEL, PROBABILITY, 1 / (1 + PROBABILITY), samples=1_000, seed=1)
    assert clear.low is not None
    assert clear.low > 0
    assert chance == scores.difference(LABEL, one, other, samples=1_000, seed=1)
    same = scores.difference(LABEL, one, one, samples=10, seed=1)
    assert (same.value, same.low, same.high) == (0, 0, 0)
    assert scores.difference(np.zeros(9), one[:9], other[:9], samples=10, seed=1).value is None


def test_the_interval_of_a_difference_is_that_of_scikit_learn() -> None:
    """Of samples of which each has the same rows for both, also where probabilities are equal."""
    label, one = LABEL[:500], PROBABILITY[:500].round(2)
    other, draws, drawn = one[::-1].copy(), np.random.default_rng(1), []
    for _ in range(20):
        rows = draws.integers(0, len(label), len(label))
        drawn.append([metrics.average_precision_score(label[rows], each[rows]) for each in (one, other)])
    low, high = np.percentile(np.subtract(*np.transpose(drawn)), [2.5, 97.5])
    found = scores.difference(label, one, other, samples=20, seed=1)
    assert [found.low, found.high] == pytest.approx([low, high])


def test_intervals_hold_one_sample_at_a_time() -> None:
    """Not all: 200 samples of five million held-out rows would be 8 GB."""
    samples, times = 60, 5
    tracemalloc.start()
    try:
        scores.estimates(np.tile(LABEL, times), np.tile(PROBABILITY, times), samples=samples, seed=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < samples * times * LABEL.nbytes / 2


def test_honest_probabilities_are_calibrated_and_doubled_ones_are_not() -> None:
    """Bins hold as many rows each, and all rows are in one."""
    bins = scores.calibration(LABEL, PROBABILITY)
    assert [each.rows for each in bins] == [400] * 10
    assert scores.calibration_error(LABEL, PROBABILITY) < 0.015
    assert scores.calibration_error(LABEL, 2 * PROBABILITY) == pytest.approx(PROBABILITY.mean(), rel=0.3)


def test_rows_of_one_class_have_no_score() -> None:
    """Unknown, and not 0: a slice without refunds is neither good nor bad."""
    rows = pd.DataFrame({"country": ["DE", "DE", "FR"], "label": [0.0, 1.0, 0.0], "probability": [0.1, 0.9, 0.2]})
    german, french = scores.by_slice(rows, ["country"])
    assert (german.title, german.average_precision, german.roc_auc, german.positives) == ("country DE", 1.0, 1.0, 1)
    assert (french.title, french.average_precision, french.roc_auc, french.positives) == ("country FR", None, None, 0)


@pytest.mark.parametrize("missing", [None, float("nan")])
def test_rows_without_a_value_are_a_slice_of_their_own(missing: float | None) -> None:
    """It is called unknown, and its rows are scored like others."""
    rows = pd.DataFrame({"country": ["DE", missing, missing], "label": [0.0, 1.0, 0.0], "probability": [0.1, 0.9, 0.2]})
    titles = {each.title: each.roc_auc for each in scores.by_slice(rows, ["country"])}
    assert titles == {"country DE": None, "country unknown": 1.0}


def test_a_curve_keeps_its_shape_where_few_rows_are_flagged() -> None:
    """Near every point of the whole curve is one that is kept, from the first flagged row on; both ends are kept."""
    precision, recall, _ = metrics.precision_recall_curve(LABEL, PROBABILITY)
    false_positive, true_positive, _ = metrics.roc_curve(LABEL, PROBABILITY)
    wholes = (np.array([recall, precision]), np.array([false_positive, true_positive]))
    curves = (scores.precision_recall(LABEL, PROBABILITY), scores.roc(LABEL, PROBABILITY))
    for curve, whole in zip(curves, wholes, strict=True):
        kept = np.array(curve).T
        apart = np.hypot(*(kept[:, :, np.newaxis] - whole[:, np.newaxis, :])).min(axis=0)
        assert apart.max() < 0.03
        assert len(curve) <= scores.CURVE_POINTS
        assert (curve[0][0], curve[-1][0]) == (0.0, 1.0)


def test_a_distribution_drifts_as_far_as_its_shares_move() -> None:
    """The same has not; one that lost and gained a value has, and is not infinite."""
    assert scores.psi({"a": 0.5, "b": 0.5}, {"a": 0.5, "b": 0.5}) == 0
    assert scores.psi({"a": 0.5, "b": 0.5}, {"a": 0.6, "b": 0.4}) == pytest.approx(0.0405, abs=1e-4)
    assert 5 < scores.psi({"a": 1.0}, {"b": 1.0}) < 20
