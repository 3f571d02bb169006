"""The model that a run trained, judged or promoted, as its card says it: what is None there is not known here."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, NamedTuple, TypeVar

from spark_app.annexes.model_page import curves
from spark_app.annexes.model_page.curves import Mark, Plot, Point
from spark_app.report.formatting import Mood
from spark_app.report.limits import Limits
from spark_app.report.scope import Scope
from spark_app.report.values import quotient
from spark_app.runs.model_card import (
    SHIFTED,
    SHIFTING,
    Candidate,
    Confusion,
    Estimate,
    Evaluation,
    ModelCard,
    SliceScore,
)

Row = TypeVar("Row")
CANDIDATE: Final = "query"
PRODUCTION: Final = "run"
"""Colours, as classes of the style sheet; the lines of production are dashed, too."""
BAR: Final = 120
"""Height of the greatest bar below a plot, of `curves.SIDE`."""
MARGIN: Final = 3.0
"""Percent of an axis on either side of its values."""
DRIFT_TOP: Final = 0.4
"""The PSI at the end of a bar; more is as wide."""


class Meaning(NamedTuple):
    """What a score is called, how it is read, and whether more of it is better."""

    title: str
    text: str
    is_more_better: bool


MEANINGS: Final[dict[str, Meaning]] = {
    "average_precision": Meaning("average precision", "area under the precision-recall curve", True),
    "roc_auc": Meaning("ROC AUC", "how often a positive row is ranked above a negative one", True),
    "log_loss": Meaning("log loss", "punishes probabilities that are sure and wrong", False),
    "brier": Meaning("Brier score", "mean squared error of the probabilities", False),
    "calibration_error": Meaning(
        "calibration error", "mean distance of predicted probabilities from observed shares", False
    ),
}


@dataclass(frozen=True, slots=True)
class Decision:
    """What became of the version, in a word and with reasons."""

    word: str
    mood: Mood
    text: str
    reasons: list[str]


class Whisker(NamedTuple):
    """An estimate on the axis of its row: places in percent, None where it is not known."""

    value: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """A score of the version, of production on the same rows, and of a model that knows only the share of positives."""

    name: str
    meaning: Meaning | None
    candidate: Estimate
    production: Estimate | None
    blind: float | None

    @property
    def change(self) -> float | None:
        """By how much it is above production's."""
        return _difference(self.candidate.value, self.production.value if self.production else None)

    @property
    def is_better(self) -> bool | None:
        """Whether the change is for the better; None where that is not known, or nothing changed."""
        return None if not self.change or self.meaning is None else (self.change > 0) == self.meaning.is_more_better

    @property
    def whiskers(self) -> tuple[Whisker, Whisker, float | None]:
        """Both estimates and the model that knows nothing on one axis, which holds all of them."""
        production = self.production or Estimate(value=None)
        blind, *placed = _placed([self.blind, *_parts(self.candidate), *_parts(production)])
        return Whisker(*placed[:3]), Whisker(*placed[3:]), blind


@dataclass(frozen=True, slots=True)
class Rates:
    """What the threshold does; None where it is not defined."""

    threshold: float
    confusion: Confusion

    @property
    def rows(self) -> int:
        """All rows."""
        each = self.confusion
        return each.true_negative + each.false_positive + each.false_negative + each.true_positive

    @property
    def flagged(self) -> float | None:
        """The share of the rows that is flagged."""
        return quotient(self.confusion.false_positive + self.confusion.true_positive, self.rows)

    @property
    def precision(self) -> float | None:
        """The share of the flagged rows that is positive."""
        each = self.confusion
        return quotient(each.true_positive, each.true_positive + each.false_positive)

    @property
    def recall(self) -> float | None:
        """The share of the positive rows that is flagged."""
        each = self.confusion
        return quotient(each.true_positive, each.true_positive + each.false_negative)

    @property
    def false_positive_rate(self) -> float | None:
        """The share of the negative rows that is flagged."""
        each = self.confusion
        return quotient(each.false_positive, each.false_positive + each.true_negative)


@dataclass(frozen=True, slots=True)
class Attempt:
    """A candidate, and its score with the deviation on either side, on one axis for all candidates."""

    candidate: Candidate
    whisker: Whisker


@dataclass(frozen=True, slots=True)
class FeatureImportance:
    """How much the average precision falls without a feature; `width` is that of its bar in percent of the greatest."""

    name: str
    meaning: str | None
    fall: float
    width: float


@dataclass(frozen=True, slots=True)
class Drift:
    """The PSI of a feature in the held-out rows, against the training rows of the version and of production's."""

    name: str
    psi: float | None
    production: float | None

    @property
    def mood(self) -> Mood:
        """By the greater of both."""
        worst = self.worst
        return "unsure" if worst is None or SHIFTING <= worst < SHIFTED else "bad" if worst >= SHIFTED else "good"

    @property
    def word(self) -> str:
        """The same in a word."""
        if self.worst is None:
            return "not known"
        return {"good": "stable", "unsure": "shifting", "bad": "shifted"}[self.mood]

    @property
    def worst(self) -> float | None:
        """The greater of both."""
        return max((psi for psi in (self.psi, self.production) if psi is not None), default=None)

    @property
    def width(self) -> float:
        """That of its bar in percent."""
        return round(100 * min(1.0, (self.worst or 0.0) / DRIFT_TOP), 1)


@dataclass(frozen=True, slots=True)
class SliceRow:
    """The scores of a slice, and production's on the same rows."""

    candidate: SliceScore
    production: SliceScore | None

    @property
    def change(self) -> float | None:
        """By how much the ROC AUC is above production's."""
        return _difference(self.candidate.roc_auc, self.production.roc_auc if self.production else None)


@dataclass(frozen=True, slots=True)
class FeatureStatistics:
    """Statistics of a feature over the training rows; a number has measures and a correlation, a category a p-value."""

    name: str
    measures: Mapping[str, float]
    correlation: float | None
    p_value: float | None


@dataclass(frozen=True, slots=True)
class ShownRows(Generic[Row]):
    """As many rows as the report has room for; `total` counts all."""

    shown: list[Row]
    total: int


@dataclass(frozen=True, slots=True)
class Model:
    """A version of a model; without an evaluation there are no scores, plots, rates, drifts and slices."""

    card: ModelCard
    decision: Decision
    scores: list[ScoreRow]
    plots: list[Plot]
    rates: Rates | None
    production_rates: Rates | None
    importances: ShownRows[FeatureImportance]
    drift: ShownRows[Drift]
    tried: ShownRows[Attempt]
    slices: ShownRows[SliceRow]
    numbers: ShownRows[FeatureStatistics]
    categories: ShownRows[FeatureStatistics]

    @property
    def positive_share(self) -> float | None:
        """The share of positives in the held-out rows."""
        judged = self.card.evaluation
        return quotient(judged.positives, judged.rows) if judged else None


def model(scope: Scope, limits: Limits) -> Model | None:
    """The model of a run; None for a run that left no card of one."""
    card = scope.run.card if scope.run else None
    if card is None:
        return None
    judged, production, statistics = card.evaluation, card.production, card.statistics
    numbers = [
        FeatureStatistics(name, measures, statistics.correlations.get(name), None)
        for name, measures in statistics.numbers.items()
    ]
    categories = [FeatureStatistics(name, {}, None, p_value) for name, p_value in statistics.p_values.items()]
    return Model(
        card=card,
        decision=_decision(card),
        scores=_scores(judged, production) if judged else [],
        plots=_plots(judged, production, limits.points) if judged else [],
        rates=Rates(judged.threshold, judged.confusion) if judged else None,
        production_rates=Rates(production.threshold, production.confusion) if production else None,
        importances=_shown_rows(_importances(card), limits),
        drift=_shown_rows(_drifts(judged, production) if judged else [], limits),
        tried=_shown_rows(_attempts(card.tried), limits),
        slices=_shown_rows(_slices(judged, production) if judged else [], limits),
        numbers=_shown_rows(numbers, limits),
        categories=_shown_rows(categories, limits),
    )


def _decision(card: ModelCard) -> Decision:
    verdict = card.verdict
    if verdict is None:
        done = "trained" if card.evaluation is None else "judged"
        return Decision("not decided", "unsure", f"The run {done} version {card.version} and decided nothing.", [])
    if verdict.is_promoted:
        return Decision("promoted", "good", verdict.text, verdict.reasons)
    return Decision("not promoted", "bad", verdict.text, verdict.reasons)


def _scores(judged: Evaluation, production: Evaluation | None) -> list[ScoreRow]:
    scores = production.scores if production else {}
    return [
        ScoreRow(name, MEANINGS.get(name), estimate, scores.get(name), _blind(name, judged))
        for name, estimate in judged.scores.items()
    ]


def _blind(name: str, judged: Evaluation) -> float | None:
    """What a model scores that gives every row the share of positives as its probability."""
    share = quotient(judged.positives, judged.rows)
    if share is None or not 0 < share < 1:
        return None
    scores = {
        "average_precision": share,
        "roc_auc": 0.5,
        "log_loss": -share * math.log(share) - (1 - share) * math.log(1 - share),
        "brier": share * (1 - share),
    }
    return scores.get(name)


class _Drawn(NamedTuple):
    """An evaluation in a plot."""

    name: str
    colour: str
    of: Evaluation

    @property
    def rates(self) -> Rates:
        """What its threshold does."""
        return Rates(self.of.threshold, self.of.confusion)


def _plots(judged: Evaluation, production: Evaluation | None, most: int) -> list[Plot]:
    """The version in front of production."""
    behind = [_Drawn(f"production, version {production.version}", PRODUCTION, production)] if production else []
    drawn = [*behind, _Drawn(f"version {judged.version}", CANDIDATE, judged)]
    return [_roc(drawn, most), _precision_recall(drawn, most), _calibration(drawn, most)]


def _roc(drawn: Sequence[_Drawn], most: int) -> Plot:
    return Plot(
        "ROC curve",
        "Each point is a threshold, and the dot the one in use. Good is near the top left corner; the dotted line is "
        "chance.",
        "share of the negatives that is flagged",
        "share of the positives that is flagged",
        [curves.curve(each.name, each.colour, [Point(*pair) for pair in each.of.roc], most=most) for each in drawn],
        reference=(curves.line([Point(0, 0), Point(1, 1)]), "chance"),
        marks=list(_marks((each, each.rates.false_positive_rate, each.rates.recall) for each in drawn)),
    )


def _precision_recall(drawn: Sequence[_Drawn], most: int) -> Plot:
    judged = drawn[-1].of
    share = quotient(judged.positives, judged.rows)
    paths = [
        curves.curve(each.name, each.colour, [Point(*pair) for pair in each.of.precision_recall], most=most)
        for each in drawn
    ]
    return Plot(
        "Precision and recall",
        "Each point is a threshold, and the dot the one in use. Good is high and far to the right; flagging at random "
        "gives the dotted line.",
        "recall: share of the positives that is flagged",
        "precision: share of the flagged that is positive",
        paths,
        reference=None if share is None else (curves.line([Point(0, share), Point(1, share)]), "share of positives"),
        marks=list(_marks((each, each.rates.recall, each.rates.precision) for each in drawn)),
    )


def _marks(points: Iterable[tuple[_Drawn, float | None, float | None]]) -> Iterator[Mark]:
    for each, x, y in points:
        if x is not None and y is not None:
            yield Mark(*curves.place(Point(x, y)), each.name, each.colour)


def _calibration(drawn: Sequence[_Drawn], most: int) -> Plot:
    version, bins = drawn[-1], drawn[-1].of.calibration[:most]
    top = curves.top_of([max(each.predicted, each.observed) for one in drawn for each in one.of.calibration])
    points = [[Point(each.predicted, each.observed) for each in one.of.calibration] for one in drawn]
    spans = [(each.predicted, curves.wilson(each.observed * each.rows, each.rows)) for each in bins]
    rows = max((each.rows for each in bins), default=0) or 1
    return Plot(
        "Calibration",
        "Each dot is a bin of rows, with the 95 % interval of its share, and a bar for the number of its rows. Good is "
        "on the dotted line: of the rows with a probability of 0.2, a fifth is positive.",
        "predicted probability",
        "observed share of positives",
        [curves.curve(one.name, one.colour, each, most=most, top=top) for one, each in zip(drawn, points, strict=True)],
        reference=(curves.line([Point(0, 0), Point(top, top)], top), "perfect"),
        marks=[Mark(*curves.place(point, top), version.name, version.colour) for point in points[-1][:most]],
        whiskers="".join(curves.line([Point(x, span[0]), Point(x, span[1])], top) for x, span in spans if span),
        bars=[(curves.place(Point(each.predicted, 0), top)[0], round(BAR * each.rows / rows, 1)) for each in bins],
        top=top,
    )


def _attempts(tried: Sequence[Candidate]) -> list[Attempt]:
    values = _placed(
        [part for each in tried for part in (each.score, each.score - each.deviation, each.score + each.deviation)]
    )
    return [Attempt(each, Whisker(*values[3 * number : 3 * number + 3])) for number, each in enumerate(tried)]


def _importances(card: ModelCard) -> list[FeatureImportance]:
    ranked = sorted(card.importances.items(), key=lambda pair: -pair[1])
    most = max((fall for _, fall in ranked), default=0.0)
    return [
        FeatureImportance(name, card.features.get(name), fall, round(100 * max(fall, 0) / most, 1) if most > 0 else 0.0)
        for name, fall in ranked
    ]


def _drifts(judged: Evaluation, production: Evaluation | None) -> list[Drift]:
    """The features, the furthest shifted first."""
    drift = production.drift if production else {}
    names = [*judged.drift, *(name for name in drift if name not in judged.drift)]
    drifts = [Drift(name, judged.drift.get(name), drift.get(name)) for name in names]
    return sorted(drifts, key=lambda each: -(each.worst or 0.0))


def _slices(judged: Evaluation, production: Evaluation | None) -> list[SliceRow]:
    """By column, the worst slice first; those without a score last."""
    known = {(each.column, each.value): each for each in production.slices} if production else {}
    columns = list(dict.fromkeys(each.column for each in judged.slices))
    rows = [SliceRow(each, known.get((each.column, each.value))) for each in judged.slices]
    return sorted(
        rows,
        key=lambda row: (
            columns.index(row.candidate.column),
            2.0 if row.candidate.roc_auc is None else row.candidate.roc_auc,
        ),
    )


def _shown_rows(rows: Sequence[Row], limits: Limits) -> ShownRows[Row]:
    return ShownRows(list(rows[: limits.features]), len(rows))


def _placed(values: Sequence[float | None]) -> list[float | None]:
    """Values on one axis that holds all of them, in percent."""
    known = [value for value in values if value is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    wide = high - low
    return [
        None if value is None else MARGIN + (100 - 2 * MARGIN) * ((value - low) / wide if wide else 0.5)
        for value in values
    ]


def _parts(estimate: Estimate) -> tuple[float | None, float | None, float | None]:
    return estimate.value, estimate.low, estimate.high


def _difference(candidate: float | None, production: float | None) -> float | None:
    return None if candidate is None or production is None else candidate - production
