"""How good probabilities are: the scores, curves and calibration of scikit-learn, with intervals and by slice."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
from sklearn import metrics
from sklearn.calibration import calibration_curve

from spark_app.runs.model_card import AVERAGE_PRECISION, LABEL, PREDICTION, Bin, Confusion, Estimate, SliceScore

Floats = npt.NDArray[np.float64]
CALIBRATION_BINS: Final = 10
CURVE_POINTS: Final = 200
"""As many points as a picture shows; the area is computed from all."""
UNKNOWN: Final = "unknown"
INTERVAL: Final = (2.5, 97.5)


def calibration_error(label: Floats, probability: Floats) -> float:
    """How far predicted probabilities are from observed shares: the mean over bins of as many rows each."""
    bins = calibration(label, probability)
    rows = sum(each.rows for each in bins)
    return sum(abs(each.predicted - each.observed) * each.rows for each in bins) / rows


SCORES: Final[dict[str, Callable[[Floats, Floats], float]]] = {
    AVERAGE_PRECISION: metrics.average_precision_score,
    "roc_auc": metrics.roc_auc_score,
    "log_loss": metrics.log_loss,
    "brier": metrics.brier_score_loss,
    "calibration_error": calibration_error,
}


def estimates(label: Floats, probability: Floats, *, samples: int, seed: int) -> dict[str, Estimate]:
    """Every score with its 95 % interval over bootstrap samples of the rows, drawn with a seed."""
    resampled = _resampled(label, probability, samples=samples, seed=seed)
    found = {}
    for name, values in resampled.items():
        low, high = np.percentile(values, INTERVAL) if values else (None, None)
        found[name] = Estimate(value=_score(name, label, probability), low=_float(low), high=_float(high))
    return found


def difference(label: Floats, candidate: Floats, production: Floats, *, samples: int, seed: int) -> Estimate:
    """How much greater the average precision of a candidate is than that of production, on the same rows.

    The interval is that of a paired bootstrap: each sample has the same rows for both (Efron and Tibshirani, An
    Introduction to the Bootstrap, 1993, chapter 8).
    """
    new, old = _Ranking(label, candidate), _Ranking(label, production)
    draws, found = np.random.default_rng(seed), list[float]()
    for _ in range(samples):
        counts = np.bincount(draws.integers(0, len(label), len(label)), minlength=len(label))
        if 0 < label @ counts < len(label):
            found.append(new.average_precision(counts) - old.average_precision(counts))
    if not found or not _has_both(label):
        return Estimate(value=None)
    low, high = np.percentile(found, INTERVAL)
    value = average_precision(label, candidate) - average_precision(label, production)
    return Estimate(value=value, low=float(low), high=float(high))


class _Ranking:
    """Rows in the order of their probabilities, sorted once: scikit-learn would sort the rows of each sample anew."""

    def __init__(self, label: Floats, probability: Floats) -> None:
        self._order = np.argsort(-probability, kind="stable")
        self._label, ordered = label[self._order], probability[self._order]
        self._last_of_equals = np.flatnonzero(np.append(np.diff(ordered) != 0, True))

    def average_precision(self, counts: npt.NDArray[np.int64]) -> float:
        """The score of a sample that has each row so many times."""
        ordered = counts[self._order]
        flagged = np.cumsum(ordered)[self._last_of_equals]
        hit = np.cumsum(ordered * self._label)[self._last_of_equals]
        return float(np.sum(np.diff(hit, prepend=0.0) * hit / np.maximum(flagged, 1)) / hit[-1])


def average_precision(label: Floats, probability: Floats) -> float:
    """The mean of the precisions at each positive row; 0 without one, where it is not defined."""
    return float(metrics.average_precision_score(label, probability)) if label.any() else 0.0


def _resampled(label: Floats, probability: Floats, *, samples: int, seed: int) -> dict[str, list[float]]:
    """By score its values over the samples, of which one is in memory at a time."""
    draws, values = np.random.default_rng(seed), dict[str, list[float]]({name: [] for name in SCORES})
    for _ in range(samples):
        rows = draws.integers(0, len(label), len(label))
        labels, probabilities = label[rows], probability[rows]
        if _has_both(labels):
            for name, score in SCORES.items():
                values[name].append(score(labels, probabilities))
    return values


def _score(name: str, label: Floats, probability: Floats) -> float | None:
    return float(SCORES[name](label, probability)) if _has_both(label) else None


def _float(value: Any) -> float | None:
    return None if value is None else float(value)


def _has_both(label: Floats) -> bool:
    return bool(0 < label.sum() < len(label))


def calibration(label: Floats, probability: Floats) -> list[Bin]:
    """Mean probability and observed share of the positive class, in bins of as many rows each."""
    observed, predicted = calibration_curve(label, probability, n_bins=CALIBRATION_BINS, strategy="quantile")
    edges = np.percentile(probability, np.linspace(0, 100, CALIBRATION_BINS + 1))
    rows = np.bincount(np.searchsorted(edges[1:-1], probability), minlength=CALIBRATION_BINS)
    known = rows[rows > 0]
    return [
        Bin(predicted=float(mean), observed=float(share), rows=int(count))
        for mean, share, count in zip(predicted, observed, known, strict=True)
    ]


def confusion(label: Floats, probability: Floats, threshold: float) -> Confusion:
    """Counts of the rows at a threshold."""
    table = metrics.confusion_matrix(label, probability >= threshold, labels=[0, 1])
    (true_negative, false_positive), (false_negative, true_positive) = table.tolist()
    return Confusion(
        true_negative=true_negative,
        false_positive=false_positive,
        false_negative=false_negative,
        true_positive=true_positive,
    )


def roc(label: Floats, probability: Floats) -> list[tuple[float, float]]:
    """Points of the ROC curve: false positive rate, true positive rate."""
    false_positive, true_positive, _ = metrics.roc_curve(label, probability)
    return _thinned(false_positive, true_positive)


def precision_recall(label: Floats, probability: Floats) -> list[tuple[float, float]]:
    """Points of the precision-recall curve: recall, precision."""
    precision, recall, _ = metrics.precision_recall_curve(label, probability)
    return _thinned(recall[::-1], precision[::-1])


def _thinned(x: Floats, y: Floats) -> list[tuple[float, float]]:
    """As many points at most, evenly along the curve: where few rows are flagged, its points are few and far apart."""
    along = np.concatenate(([0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))))
    kept = np.unique(np.searchsorted(along, np.linspace(0, along[-1], CURVE_POINTS)))
    return [(float(x[point]), float(y[point])) for point in kept]


def by_slice(rows: pd.DataFrame, columns: Sequence[str]) -> list[SliceScore]:
    """The scores of the rows with each value of each column; rows without one are those of the value `unknown`."""
    return [
        _slice(column, UNKNOWN if pd.isna(value) else str(value), part)
        for column in columns
        for value, part in rows.groupby(column, dropna=False)
    ]


def _slice(column: str, value: str, rows: pd.DataFrame) -> SliceScore:
    label, probability = (rows[name].to_numpy(dtype=float) for name in (LABEL, PREDICTION))
    return SliceScore(
        column=column,
        value=value,
        rows=len(rows),
        positives=int(label.sum()),
        average_precision=_score(AVERAGE_PRECISION, label, probability),
        roc_auc=_score("roc_auc", label, probability),
    )


def psi(expected: Mapping[str, float], actual: Mapping[str, float]) -> float:
    """The population stability index of two distributions over the same bins; an empty bin counts as 0.01 %.

    Siddiqi, Credit Risk Scorecards (2006): below 0.1 stable, above 0.25 shifted.
    """
    total = 0.0
    for name in expected.keys() | actual.keys():
        before, now = (max(shares.get(name, 0.0), 1e-4) for shares in (expected, actual))
        total += (now - before) * float(np.log(now / before))
    return total
