from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan
from pyspark.ml import Estimator, Model
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param, Params, TypeConverters
from pyspark.ml.tuning import CrossValidator
from pyspark.sql import DataFrame, SparkSession

from spark_app.engine.training import ADAPTIVE, TrainingContext
from spark_app.models.estimators import Trial
from spark_app.spark import job_properties
from spark_app.vocabulary.names import TRACEPARENT
from tests.integration.home import DAY, Home
from tests.unit.telemetry.memory import InMemory


class Constant(Model):
    """Says the same of every row."""

    def __init__(self, value: float) -> None:
        """The value."""
        super().__init__()
        self.value = value

    def _transform(self, dataset: DataFrame) -> DataFrame:
        return dataset


class Guess(Estimator[Any]):
    """Guesses its parameter, and notes whose jobs its thread would run."""

    value: Param[float] = Param(Params._dummy(), "value", "what it says", TypeConverters.toFloat)

    def __init__(self, properties: dict[float, list[str | None]], adaptive: list[str | None]) -> None:
        """Notes the properties by the value, and whether execution is adaptive."""
        super().__init__()
        self.properties, self.adaptive = properties, adaptive

    def _fit(self, dataset: DataFrame) -> Constant:
        value = self.getOrDefault(self.value)
        found = dataset.sparkSession.sparkContext.getLocalProperty(TRACEPARENT)
        self.properties.setdefault(value, []).append(found)
        self.adaptive.append(dataset.sparkSession.conf.get(ADAPTIVE))
        if value < 0:
            raise ValueError("cannot guess less than nothing")
        return Constant(value)


class Size(Evaluator):
    """The number of rows left out."""

    def _evaluate(self, dataset: DataFrame) -> float:
        return float(dataset.count())


class Run:
    """A cross-validation of two guesses with two folds, two fits at a time."""

    def __init__(
        self, folder: Path, spark: SparkSession, values: Sequence[float], folds: Sequence[int] = (0, 1) * 5
    ) -> None:
        """Runs it on rows of these folds; `error` is how it failed."""
        self.properties: dict[float, list[str | None]] = {}
        home, memory = Home(folder / "home", spark), InMemory(folder)
        self.adaptive: list[str | None] = []
        guess = Guess(self.properties, self.adaptive)
        trials = [Trial("guess", {"value": str(value)}, {guess.value: value}) for value in values]
        validator = CrossValidator(
            estimator=guess, estimatorParamMaps=[each.params for each in trials], evaluator=Size(), numFolds=2,
            foldCol="fold", parallelism=2,
        )  # fmt: skip
        run = memory.run(pipeline="ml.refunds")
        context = TrainingContext(spark, home.warehouse, home.settings, DAY, run, home)
        rows = spark.createDataFrame([(fold,) for fold in folds], "fold int")
        self.error: BaseException | None = None
        with run:
            try:
                self.means = context.cross_validate(validator, rows, trials).avgMetrics
            except ValueError as error:
                self.error = error
        self.progress = home.progress
        self.after = spark.sparkContext.getLocalProperty(TRACEPARENT)
        memory.telemetry.close()
        self.spans = memory.spans_kept.get_finished_spans()

    @property
    def fits(self) -> list[ReadableSpan]:
        """The spans of fits."""
        return [span for span in self.spans if span.name == "fit guess"]


def span_id(traceparent: str | None) -> int:
    """The span that the jobs of a thread are children of."""
    assert traceparent is not None
    return int(traceparent.split("-")[2], 16)


def test_each_fold_and_set_of_parameters_is_a_span_with_its_own_jobs(tmp_path: Path, spark: SparkSession) -> None:
    """Also in the threads of the validator; the best candidate is fitted once more on all rows."""
    run = Run(tmp_path, spark, [1.0, 2.0])
    [step] = [span for span in run.spans if span.name == "step cross-validate"]
    attributes = [dict(span.attributes or {}) for span in run.fits]
    found = {(each["ml.parameters"], each.get("ml.fold"), each.get("ml.score")) for each in attributes}
    assert found == {
        ("value=1.0", 1, 5.0), ("value=2.0", 1, 5.0), ("value=1.0", 2, 5.0), ("value=2.0", 2, 5.0),
        ("value=1.0", None, None),
    }  # fmt: skip
    assert step.context is not None
    assert {span.parent.span_id for span in run.fits if span.parent} == {step.context.span_id}
    for value in (1.0, 2.0):
        own = [span for span in run.fits if (span.attributes or {})["ml.parameters"] == f"value={value}"]
        found_ids = sorted(span_id(traceparent) for traceparent in run.properties[value])
        assert found_ids == sorted(span.context.span_id for span in own if span.context)
    assert run.after is None


def test_a_fit_that_fails_ends_its_span_and_the_step(tmp_path: Path, spark: SparkSession) -> None:
    """The exception is the one of the fit."""
    run = Run(tmp_path, spark, [-1.0])
    assert str(run.error) == "cannot guess less than nothing"
    assert {(span.attributes or {}).get("ml.fold") for span in run.fits} == {1}
    [step] = [span for span in run.spans if span.name == "step cross-validate"]
    assert not step.status.is_ok


def test_the_best_so_far_is_a_mean_over_folds(tmp_path: Path, spark: SparkSession) -> None:
    """As in the table of the candidates; the best fold of all says only which fold was easy."""
    run = Run(tmp_path, spark, [1.0, 2.0], folds=[0] * 8 + [1] * 2)
    last = run.progress[-2]
    assert last.startswith("4/4: fold 2/2, guess value=")
    assert last.endswith(f": 2.000, best mean {max(run.means):.3f}")
    assert max(run.means) == 5.0


def test_queries_of_fits_are_planned_once(tmp_path: Path, spark: SparkSession) -> None:
    """Adaptive execution has nothing to merge in them, and its plans were most of the event log; others keep it."""
    with job_properties.setting(spark, ADAPTIVE, "true"):
        run = Run(tmp_path, spark, [1.0])
        assert spark.conf.get(ADAPTIVE) == "true"
    assert set(run.adaptive) == {"false"}
