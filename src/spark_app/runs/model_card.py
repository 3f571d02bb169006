"""The card of a model, `model.json` in the folder of a run: how it was trained, how good it is, what was decided.

Reports, commands and notebooks read it; a value that is None is not known.
"""

from pathlib import Path
from typing import Any, Final

import msgspec

from spark_app.errors import InputError
from spark_app.local_files import write_atomic

CARD: Final = "model.json"
AVERAGE_PRECISION: Final = "average_precision"
"""The headline: the area under the curve of precision over recall. A rare class makes accuracy say nothing."""

LABEL: Final = "label"
"""The column with what a model learns: 1.0 for the rare class, else 0.0."""
PREDICTION: Final = "probability"
"""What a model says of a row: among the distributions and the drifts it is beside the features."""

SHIFTING: Final = 0.1
SHIFTED: Final = 0.25
"""Drift from which a feature is looked at, and from which it is another one: Siddiqi, Credit Risk Scorecards (2006)."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True):
    """An algorithm with parameters that was tried.

    Attributes:
        algorithm: Its name in the configuration.
        parameters: Those that were varied.
        score: Mean average precision over the folds.
        deviation: Its standard deviation over the folds.
    """

    algorithm: str
    parameters: dict[str, str]
    score: float
    deviation: float

    @property
    def title(self) -> str:
        """`random_forest maxDepth=6`."""
        return " ".join([self.algorithm, *(f"{name}={value}" for name, value in self.parameters.items())])


class FeatureFinding(msgspec.Struct, frozen=True, kw_only=True):
    """What the statistics of the training rows say of a feature, in one sentence."""

    feature: str
    text: str


class Statistics(msgspec.Struct, frozen=True, kw_only=True):
    """Statistics of the training rows.

    Attributes:
        numbers: By number its mean, standard deviation, least and greatest value.
        correlations: By number its Pearson correlation with the label.
        p_values: By category the p-value of the chi-square test of its independence of the label.
        bounds: By number, and of the probability, the bounds of its bins, which are its deciles.
        distributions: By feature, and of the probability, the share of the rows in each bin, or with each value: what
            later data is compared with.
        findings: What is worth a look.
    """

    numbers: dict[str, dict[str, float]]
    correlations: dict[str, float | None]
    p_values: dict[str, float]
    bounds: dict[str, list[float]]
    distributions: dict[str, dict[str, float]]
    findings: list[FeatureFinding] = []


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A score with its 95 % interval over bootstrap samples of the rows; None where it is not defined."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Bin(msgspec.Struct, frozen=True, kw_only=True):
    """Rows of similar probability: their mean probability, the share of positive ones, and their number."""

    predicted: float
    observed: float
    rows: int


class Confusion(msgspec.Struct, frozen=True, kw_only=True):
    """Counts of rows at a threshold."""

    true_negative: int
    false_positive: int
    false_negative: int
    true_positive: int


class SliceScore(msgspec.Struct, frozen=True, kw_only=True):
    """The score of the rows with a value of a column; None where they are all of one class."""

    column: str
    value: str
    rows: int
    positives: int
    average_precision: float | None
    roc_auc: float | None

    @property
    def title(self) -> str:
        """`country DE`."""
        return f"{self.column} {self.value}"


class Evaluation(msgspec.Struct, frozen=True, kw_only=True):
    """The scores of one version on held-out rows.

    Attributes:
        version: The version of the model.
        first_date: First day of the rows.
        last_date: Last day of the rows.
        rows: Their number.
        positives: How many are of the rare class.
        scores: By name: average_precision, roc_auc, log_loss, brier, calibration_error.
        threshold: From which probability on a row is flagged.
        confusion: At that threshold.
        roc: Points of the ROC curve: false positive rate, true positive rate.
        precision_recall: Points of the curve: recall, precision.
        calibration: Bins of as many rows each.
        slices: By column and value.
        latency_ms: What scoring a thousand rows takes, the fastest of some attempts.
        drift: By feature, and of the probability, the PSI of the held-out rows against the training rows.
    """

    version: int
    first_date: str
    last_date: str
    rows: int
    positives: int
    scores: dict[str, Estimate]
    threshold: float
    confusion: Confusion
    roc: list[tuple[float, float]]
    precision_recall: list[tuple[float, float]]
    calibration: list[Bin]
    slices: list[SliceScore]
    latency_ms: float | None = None
    drift: dict[str, float] = {}

    def score(self, name: str) -> float:
        """A score; nan where it is not defined."""
        value = self.scores[name].value
        return float("nan") if value is None else value


class VersionComparison(msgspec.Struct, frozen=True, kw_only=True):
    """A version beside the one in production, on the same held-out rows.

    Attributes:
        difference: By how much its average precision is above, with the 95 % interval over paired bootstrap samples:
            both are scored on the same rows of each sample, so what makes rows easy or hard is no difference.
        samples: The number of samples.
        days_newer: How many days after the other one it was trained: the difference of `as_of`.
    """

    difference: Estimate
    samples: int
    days_newer: int


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the gate decided.

    Attributes:
        is_promoted: Whether the version is in production now.
        text: One line, which says of a promoted version what spoke for it.
        reasons: Why it was refused.
        production: The version that was in production before.
    """

    is_promoted: bool
    text: str
    reasons: list[str] = []
    production: int | None = None


class ModelCard(msgspec.Struct, frozen=True, kw_only=True):
    """A version of a model.

    Attributes:
        model: Its name, which is its pipeline.
        version: Its number.
        algorithm: The one that was chosen.
        parameters: Those that were chosen.
        trained_at: ISO 8601.
        as_of: The day at whose end it was trained: what happened later is in no row and in no label.
        first_date: First day of the training rows.
        last_date: Last day of the training rows.
        rows: Training rows.
        positives: How many of them are of the rare class.
        seed: The seed.
        threshold: From which probability on a row is flagged.
        tried: Every candidate, best first.
        importances: By feature, how much the average precision on held-out rows falls when its values are shuffled.
        statistics: Of the training rows.
        features: By name what it means.
        table_versions: Versions of the tables.
        git_commit: Commit of the program.
        trace_id: Trace of the run that trained it.
        evaluation: Its scores; None before it was evaluated.
        production: The scores of the version in production on the same rows; None without one.
        comparison: How it compares with that one; None without one.
        verdict: What the gate decided; None before.
    """

    model: str
    version: int
    algorithm: str
    parameters: dict[str, str]
    trained_at: str
    as_of: str
    first_date: str
    last_date: str
    rows: int
    positives: int
    seed: int
    threshold: float
    tried: list[Candidate]
    importances: dict[str, float]
    statistics: Statistics
    features: dict[str, str]
    table_versions: dict[str, int]
    git_commit: str | None = None
    trace_id: str | None = None
    evaluation: Evaluation | None = None
    production: Evaluation | None = None
    comparison: VersionComparison | None = None
    verdict: Verdict | None = None


def encode(content: msgspec.Struct) -> str:
    """The JSON text of a card or a part of it.

    Raises:
        ValueError: A figure is nan. JSON has only null for that, which a reader of the figure would refuse.
    """
    return _encoded(content).decode("utf-8")


def _encoded(content: msgspec.Struct) -> bytes:
    text = msgspec.json.encode(content)
    try:
        msgspec.json.decode(text, type=type(content))
    except msgspec.ValidationError as error:
        raise ValueError(f"{type(content).__name__} has a figure that is nan, and must have None: {error}") from error
    return text


def decode(text: str, kind: type[Any]) -> Any:
    """The card, or the part of it, that a JSON text holds."""
    return msgspec.json.decode(text, type=kind)


def write(folder: Path, card: ModelCard) -> None:
    """Replaces the card in the folder of a run atomically.

    Raises:
        OSError: It cannot be written.
        ValueError: A figure is nan.
    """
    write_atomic(folder / CARD, msgspec.json.format(_encoded(card), indent=2) + b"\n")


def read(folder: Path) -> ModelCard:
    """The card in the folder of a run.

    Raises:
        InputError: There is none, or the file is not one.
    """
    try:
        return msgspec.json.decode((folder / CARD).read_bytes(), type=ModelCard)
    except OSError as error:
        raise InputError(f"cannot read the model card {folder / CARD}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise InputError(f"{folder / CARD} is not a model card: {error}") from error
