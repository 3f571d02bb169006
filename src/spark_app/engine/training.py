"""What a pipeline that trains models is handed: each fit is traced, scored and shown, with its Spark jobs below it."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from statistics import fmean
from typing import Any, Final

from pyspark.ml import Estimator, Model, PipelineModel, Transformer
from pyspark.ml.evaluation import Evaluator
from pyspark.ml.param import Param
from pyspark.ml.tuning import CrossValidator, CrossValidatorModel
from pyspark.sql import DataFrame

from spark_app.engine.context import Context
from spark_app.models.estimators import Trial
from spark_app.runs import model_card
from spark_app.runs.model_card import ModelCard
from spark_app.spark import job_properties
from spark_app.telemetry.run_telemetry import FitTelemetry

CROSS_VALIDATION: Final = "cross-validate"
ADAPTIVE: Final = "spark.sql.adaptive.enabled"
"""Fits read rows in memory, in partitions of which none is to be merged: adaptive execution would only plan each of
their queries again, and log each plan."""
Params = dict[Param[Any], Any]


@dataclass
class TrainingContext(Context):
    """One run of a pipeline that trains, judges or promotes models.

    The day is the one at whose end it does so: nothing that happened later is known.
    """

    def cross_validate(
        self, validator: CrossValidator, rows: DataFrame, trials: Sequence[Trial]
    ) -> CrossValidatorModel:
        """Fits every candidate on every fold, and the best one on all rows.

        Args:
            validator: A plain `CrossValidator` whose `estimatorParamMaps` are those of the candidates, in their order.
            rows: The labelled rows.
            trials: The candidates.
        """
        with self.step(CROSS_VALIDATION, kind="fit"), job_properties.setting(self.spark, ADAPTIVE, "false"):
            fits = _Fits(self, validator, trials)
            with fits.ended():
                return fits.validator.fit(rows)

    def save(self, model: PipelineModel, folder: str) -> None:
        """Writes a fitted pipeline, whole, to a folder that no other run writes to."""
        with self.step("write artifact", kind="write"):
            model.write().overwrite().save(folder)

    def write_card(self, card: ModelCard) -> None:
        """Leaves the card of a model in the folder of the run, for the command and the report."""
        try:
            model_card.write(self.telemetry.identity.folder, card)
        except OSError as error:
            self.note(f"cannot write {self.telemetry.identity.folder / model_card.CARD}: {error.strerror}")


class _Fits:
    """The fits of one cross-validation: a span each, around the fit and its evaluation, in whichever thread they run.

    `CrossValidator` fits and evaluates a candidate in one thread of its pool. That thread has neither the context of
    the step nor the properties of its jobs, so each fit brings its own.
    """

    def __init__(self, context: TrainingContext, validator: CrossValidator, trials: Sequence[Trial]) -> None:
        """The fits of a validator, whose estimator and evaluator are wrapped in a copy."""
        self.context = context
        self.trials = trials
        self.folds = validator.getNumFolds()
        self.validator = validator.copy()
        self.validator.setEstimator(_SeenEstimator(validator.getEstimator(), self))
        self.validator.setEvaluator(_SeenEvaluator(validator.getEvaluator(), self))
        self._parent = context.telemetry.context()
        self._numbers = count(1)
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._open = list[ExitStack]()
        self._scores = [list[float]() for _ in trials]

    @contextmanager
    def ended(self) -> Iterator[None]:
        """Ends the spans of fits that failed."""
        with ExitStack() as failed:
            failed.callback(self._close)
            yield

    def _close(self) -> None:
        for stack in self._open:
            stack.close()

    def next_fold(self) -> int:
        """The number of the fold whose fits begin; folds come one after another."""
        return next(self._numbers)

    def begin(self, position: int, fold: int | None) -> None:
        """A fit begins in this thread."""
        trial, telemetry = self.trials[position], self.context.telemetry
        parameters = " ".join(f"{name}={value}" for name, value in trial.parameters.items())
        stack = ExitStack()
        fit = stack.enter_context(telemetry.fit(self._parent, trial.algorithm, parameters=parameters, fold=fold))
        where = "all rows" if fold is None else f"fold {fold}/{self.folds}"
        job_properties.own_properties(self.context.spark)
        stack.enter_context(
            job_properties.step_properties(
                self.context.spark,
                f"{self.context.title}: fit {trial.title} on {where}",
                traceparent=fit.traceparent,
                trace_id=fit.trace_id,
            )
        )
        self._thread.fit, self._thread.stack, self._thread.position = fit, stack, position
        self._thread.title = f"{where}, {trial.title}"
        with self._lock:
            self._open.append(stack)
        if fold is None:
            self._show(f"{where}, {trial.title}")

    def end(self, score: float | None = None) -> None:
        """The fit that began last in this thread has ended."""
        fit: FitTelemetry = self._thread.fit
        if score is not None:
            fit.scored(score)
        self._thread.stack.close()
        with self._lock:
            self._open.remove(self._thread.stack)
            if score is not None:
                self._scores[self._thread.position].append(score)
                done, best = sum(map(len, self._scores)), max(map(fmean, filter(None, self._scores)))
        if score is not None:
            total = self.folds * len(self.trials)
            self._show(f"{done}/{total}: {self._thread.title}: {score:.3f}, best mean {best:.3f}")

    def _show(self, text: str) -> None:
        context = self.context
        context.listener.step_progress(context.telemetry.identity.pipeline, context.slice, CROSS_VALIDATION, text)


class _SeenEstimator(Estimator[Model]):
    """An estimator whose fits are seen."""

    def __init__(self, plain: Estimator[Model], fits: _Fits) -> None:
        super().__init__()
        self._plain, self._fits = plain, fits

    def fitMultiple(self, dataset: DataFrame, paramMaps: Sequence[Params]) -> "_SeenModels":  # type: ignore[override]  # noqa: N802, N803
        return _SeenModels(self._plain, dataset, paramMaps, self._fits)

    def fit(self, dataset: DataFrame, params: Any = None) -> Any:
        position = self._fits.validator.getEstimatorParamMaps().index(params)
        self._fits.begin(position, None)
        model = self._plain.fit(dataset, params)
        self._fits.end()
        return model

    def _fit(self, dataset: DataFrame) -> Model:
        return self._plain.fit(dataset)


class _SeenModels:
    """The models of one fold, fitted by whichever thread asks for the next."""

    def __init__(self, plain: Estimator[Model], rows: DataFrame, params: Sequence[Params], fits: _Fits) -> None:
        self._plain, self._rows, self._params, self._fits = plain, rows, params, fits
        self._fold = fits.next_fold()
        self._positions = iter(range(len(params)))
        self._lock = threading.Lock()

    def __iter__(self) -> "_SeenModels":
        return self

    def __next__(self) -> tuple[int, Transformer]:
        with self._lock:
            position = next(self._positions)
        self._fits.begin(position, self._fold)
        return position, self._plain.fit(self._rows, self._params[position])


class _SeenEvaluator(Evaluator):
    """An evaluator whose scores are seen: it ends the fit of its thread."""

    def __init__(self, plain: Evaluator, fits: _Fits) -> None:
        super().__init__()
        self._plain, self._fits = plain, fits

    def _evaluate(self, dataset: DataFrame) -> float:
        score = self._plain.evaluate(dataset)
        self._fits.end(score)
        return score

    def isLargerBetter(self) -> bool:  # noqa: N802
        return self._plain.isLargerBetter()
