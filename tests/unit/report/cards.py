"""Model cards made by hand."""

from collections.abc import Callable
from typing import Any, Final

from spark_app.runs.model_card import (
    Bin,
    Candidate,
    Confusion,
    Estimate,
    Evaluation,
    FeatureFinding,
    ModelCard,
    SliceScore,
    Statistics,
    Verdict,
)

SCORES: Final = {
    "average_precision": 0.31,
    "roc_auc": 0.84,
    "log_loss": 0.15,
    "brier": 0.041,
    "calibration_error": 0.006,
}


def evaluation(version: int = 3, *, less: float = 0.0, **content: Any) -> Evaluation:
    """Scores of 1,000 rows, 50 of them positive; how much less than usual the scores are."""
    usual: dict[str, Any] = {
        "version": version,
        "first_date": "2024-01-07",
        "last_date": "2024-01-08",
        "rows": 1000,
        "positives": 50,
        "scores": {
            name: Estimate(value=value - less, low=value - less - 0.02, high=value - less + 0.025)
            for name, value in SCORES.items()
        },
        "threshold": 0.125,
        "confusion": Confusion(true_negative=900, false_positive=50, false_negative=20, true_positive=30),
        "roc": curve(lambda x: x ** (0.25 + less)),
        "precision_recall": [(x, 0.05 + (0.7 - less) * (1 - x) ** 2) for x, _ in curve(float)],
        "calibration": [Bin(predicted=x / 40, observed=x / 40 + (x % 3 - 1) * 0.02, rows=100) for x in range(1, 11)],
        "slices": [
            slice_score("country", "DE", 400, 0.86 - less),
            slice_score("country", "FR", 300, 0.79 - less),
            slice_score("country", "AT", 7, None),
        ],
        "latency_ms": 812.0,
        "drift": {"amount_log": 0.02, "channel": 0.17, "country": 0.31},
    }
    return Evaluation(**usual | content)


def curve(height: Callable[[float], float], points: int = 200) -> list[tuple[float, float]]:
    """Points of a curve from 0 to 1."""
    return [(number / (points - 1), height(number / (points - 1))) for number in range(points)]


def slice_score(column: str, value: str, rows: int, roc_auc: float | None) -> SliceScore:
    """The scores of a slice; without a ROC AUC it has no positives."""
    positives, precision = (0, None) if roc_auc is None else (rows // 20, roc_auc / 3)
    return SliceScore(
        column=column, value=value, rows=rows, positives=positives, average_precision=precision, roc_auc=roc_auc
    )


def card(**content: Any) -> ModelCard:
    """A version that was promoted in place of another."""
    usual: dict[str, Any] = {
        "model": "ml.refunds",
        "version": 3,
        "algorithm": "random_forest",
        "parameters": {"maxDepth": "8"},
        "trained_at": "2024-01-09T08:00:00+00:00",
        "as_of": "2024-01-09",
        "first_date": "2024-01-01",
        "last_date": "2024-01-05",
        "rows": 4321,
        "positives": 216,
        "seed": 7,
        "threshold": 0.125,
        "tried": [
            Candidate(algorithm="random_forest", parameters={"maxDepth": "8"}, score=0.33, deviation=0.01),
            Candidate(algorithm="logistic_regression", parameters={"regParam": "0.001"}, score=0.29, deviation=0.02),
        ],
        "importances": {"amount_log": 0.5, "channel": 0.3, "country": 0.15, "hour_sin": 0.05},
        "statistics": statistics(),
        "features": {"amount_log": "logarithm of the price", "channel": "web, app or store"},
        "table_versions": {"transactions": 17, "refund_events": 4},
        "git_commit": "0123abc",
        "trace_id": "f" * 32,
        "evaluation": evaluation(),
        "production": evaluation(2, less=0.04, drift={"amount_log": 0.05}),
        "verdict": Verdict(is_promoted=True, text="version 3 is in production in place of version 2", production=2),
    }
    return ModelCard(**usual | content)


def statistics(**content: Any) -> Statistics:
    """Of three features, of which one never varies."""
    usual: dict[str, Any] = {
        "numbers": {
            "amount_log": {"mean": 3.25, "std": 1.5, "min": 0.0, "max": 9.75},
            "quantity": {"mean": 1.0, "std": 0.0, "min": 1.0, "max": 1.0},
        },
        "correlations": {"amount_log": 0.123, "quantity": None},
        "p_values": {"channel": 0.00001, "country": 0.44},
        "bounds": {},
        "distributions": {},
        "findings": [FeatureFinding(feature="quantity", text="quantity never varies: it tells a model nothing")],
    }
    return Statistics(**usual | content)


def hostile(text: str) -> ModelCard:
    """A card in which every name and every text is this one."""
    candidate = Candidate(algorithm=text, parameters={text: text}, score=0.3, deviation=0.1)
    judged = evaluation(
        first_date=text,
        last_date=text,
        scores={text: Estimate(value=0.5)},
        slices=[slice_score(text, text, 100, 0.7)],
        drift={text: 0.2},
    )
    found = statistics(
        numbers={text: {"mean": 1.0}},
        correlations={text: 0.5},
        p_values={text: 0.5},
        findings=[FeatureFinding(feature=text, text=text)],
    )
    return card(
        **dict.fromkeys(("model", "algorithm", "trained_at", "as_of", "first_date", "last_date", "git_commit"), text),
        trace_id=text,
        parameters={text: text},
        tried=[candidate],
        importances={text: 1.0},
        features={text: text},
        table_versions={text: 1},
        statistics=found,
        evaluation=judged,
        production=judged,
        verdict=Verdict(is_promoted=False, text=text, reasons=[text]),
    )
