"""Trains and judges the versions of a model: the same for every model of `app/ml/`."""

import datetime
import itertools
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.engine import model_metrics, promotion
from spark_app.engine.context import Context
from spark_app.engine.model import Data, Model, ModelConfig, labelled_data
from spark_app.errors import InputError
from spark_app.models import provenance, reference, registry
from spark_app.models.reference import Reference
from spark_app.models.registry import Version
from spark_app.runs.model_card import (
    LABEL,
    PREDICTION,
    Candidate,
    Evaluation,
    ModelCard,
    VersionComparison,
)
from spark_app.vocabulary import names

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.ml import PipelineModel

    from spark_app.engine.training import TrainingContext


def run(context: "TrainingContext", model: Model, config: ModelConfig) -> None:
    """Trains as of the end of the day of the context, judges the new version, and promotes it if it passes the gate.

    Raises:
        PromotionError: The gate refuses it; what is in production stays.
    """
    with labelled_data(context, model, config, context.date) as data:
        version = train(context, model, config, data)
        evaluate(context, model, config, version, data)
    promotion.promote(context, model, config, version)


def train(context: "TrainingContext", model: Model, config: ModelConfig, data: Data) -> Version:
    """Finds the best candidate and registers it; what was trained on the same features of the same rows is kept.

    Raises:
        FeatureLeakError: A feature knows what is not known yet when it is served.
    """
    compared = _reference(context, model, data)
    fingerprint = provenance.fingerprint(
        config=config.model_dump(mode="json", exclude=set(config.OF_THE_JUDGEMENT)),
        as_of=context.date,
        tables=data.versions,
        features=[(feature.name, feature.kind, feature.meaning) for feature in model.features],
        window_days=model.inputs.window_days,
        code=provenance.code(model.inputs.function, model.function),
        values=compared.values(model.examples),
    )
    known = [each for each in registry.versions(context.warehouse, model.name) if each.fingerprint == fingerprint]
    if known:
        context.note(f"version {known[-1].number} was trained on the same features with the same configuration: kept")
        return known[-1]
    fitted, card = _fitted(context, model, config, data)
    artifact = registry.artifact_folder(context.warehouse, model.name, context.telemetry.identity.run_id)
    context.save(fitted, artifact)
    reference.write(context.warehouse, compared, artifact)
    version = register(context, Version(model.name, 0, fingerprint, artifact, card), features=data.train)
    context.write_card(version.card)
    return version


def _reference(context: Context, model: Model, data: Data) -> Reference:
    """The features of a few rows, and a look whether one of them knows the future, before any training."""
    with context.step("check features", kind="transform"):
        newest = data.train.agg(F.to_date(F.max(model.examples.at))).collect()[0][0] or data.periods.train_last
        versions = {name: data.versions.get(name) for name in model.inputs.reads}
        found = reference.sample(context.warehouse, versions, model.inputs, date=newest)
        reference.require_no_leak(context.warehouse, model.inputs, found)
    return found


def register(context: Context, version: Version, *, features: DataFrame) -> Version:
    """Gives a version the next number that no other training takes, and adds it to the registry."""
    numbers = [each.number for each in registry.versions(context.warehouse, version.model)]
    for number in itertools.count(max(numbers, default=0) + 1):
        numbered = replace(version, number=number, card=msgspec.structs.replace(version.card, version=number))
        row = registry.version_row(context.spark, numbered, run_id=context.telemetry.identity.run_id, features=features)
        if context.insert(row, registry.VERSIONS.name, keys=registry.VERSION_KEYS):
            return numbered
    raise AssertionError("unreachable")


def _fitted(
    context: "TrainingContext", model: Model, config: ModelConfig, data: Data
) -> tuple["PipelineModel", ModelCard]:
    """The best candidate, fitted on all training rows, and its card without a version."""
    # Spark ML takes a second to import, which most commands need not.
    from spark_app.models import estimators, statistics

    rows, positives = _counted(context, model, data)
    with context.step("statistics", kind="transform"):
        found = statistics.statistics(data.train, categories=model.categories, numbers=model.numbers)
    tried, fitted = _best(context, model, config, data, positive_weight=(rows - positives) / positives)
    with context.step("choose threshold", kind="transform"):
        scored = fitted.transform(data.train)
        probability = scored.select(F.col(estimators.PROBABILITY).alias(PREDICTION))
        shares = [1 - config.flagged_share, *statistics.DECILES]
        threshold, *deciles = probability.approxQuantile(PREDICTION, shares, statistics.QUANTILE_ERROR)
        found = statistics.with_prediction(found, probability, deciles)
    card = ModelCard(
        model=model.name,
        version=0,
        algorithm=tried[0].algorithm,
        parameters=tried[0].parameters,
        trained_at=datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        as_of=str(context.date),
        first_date=str(data.periods.first),
        last_date=str(data.periods.train_last),
        rows=rows,
        positives=positives,
        seed=config.seed,
        threshold=threshold,
        tried=tried,
        importances=_importances(context, model, config, fitted, data),
        statistics=found,
        features={feature.name: feature.meaning for feature in model.features},
        table_versions=data.versions,
        git_commit=provenance.git_commit(),
        trace_id=context.telemetry.trace_id,
    )
    return fitted, card


def _importances(
    context: "TrainingContext", model: Model, config: ModelConfig, fitted: "PipelineModel", data: Data
) -> dict[str, float]:
    from spark_app.models import judging

    with context.step("importances", kind="evaluate"):
        features = [feature.name for feature in model.features]
        return judging.importances(fitted, data.held_out, features, key=model.examples.key, seed=config.seed)


def _best(
    context: "TrainingContext", model: Model, config: ModelConfig, data: Data, *, positive_weight: float
) -> tuple[list[Candidate], "PipelineModel"]:
    """The candidates with their scores, best first, and the best one, fitted on all training rows."""
    from spark_app.models import estimators

    given: dict[str, Any] = {"positive_weight": positive_weight, "seed": config.seed}
    search = estimators.search(model.categories, model.numbers, config.candidates, **given)
    weighted = estimators.with_weight_and_fold(data.train, model.examples.key, folds=config.folds, **given)
    validator = estimators.cross_validator(search, folds=config.folds, parallelism=config.parallelism)
    validated = context.cross_validate(validator, weighted, search.trials)
    return estimators.ranked(search.trials, validated), cast("PipelineModel", validated.bestModel)


def _counted(context: "TrainingContext", model: Model, data: Data) -> tuple[int, int]:
    """The number of training rows, and how many of them are of the rare class.

    Raises:
        InputError: One of the classes has no rows, or no row is held out.
    """
    with context.step("features", kind="transform") as step:
        rows, positives = data.train.agg(F.count(F.lit(1)), F.count_if(F.col(LABEL) == 1)).collect()[0]
        step.count(rows_written=rows)
    if not 0 < positives < rows:
        periods = f"{data.periods.first} to {data.periods.train_last}"
        raise InputError(
            f"{rows:,} {model.examples.table} from {periods}, {positives:,} of them positive: nothing to learn"
        )
    _require_held_out(model, data)
    context.report_rows(read=rows)
    context.telemetry.measure(names.ML_ROWS, rows)
    return rows, positives


def _require_held_out(model: Model, data: Data) -> None:
    """Finds out before a training of an hour that nothing can judge it.

    Raises:
        InputError: No row is held out.
    """
    if data.held_out.isEmpty():
        first, last = data.periods.held_out_first, data.periods.held_out_last
        days = str(first) if first == last else f"{first} to {last}"
        raise InputError(
            f"no {model.examples.table} of {days} to judge a model on: publish them, or choose another day with --date"
        )


def evaluate(context: "TrainingContext", model: Model, config: ModelConfig, version: Version, data: Data) -> ModelCard:
    """Judges a version, and the one in production, on the held-out rows of the version.

    One that is in production keeps the comparison that led to its promotion. If the program no longer computes the
    features of the one in production, there is nothing to compare with: nothing can be scored with it either.

    Raises:
        InputError: No row is held out, or the program does not compute the features of the version.
    """
    _require_held_out(model, data)
    production = registry.production(context.warehouse, model.name)
    found, rows = _evaluation(context, model, config, version, data, role="candidate")
    card = msgspec.structs.replace(version.card, evaluation=found)
    if production is not None and production.number != version.number:
        if promotion.is_comparable(context, model, production):
            in_production, same_rows = _evaluation(context, model, config, production, data, role="production")
            comparison = _comparison(context, config, card, rows, production.card, same_rows)
            card = msgspec.structs.replace(card, production=in_production, comparison=comparison)
    else:
        before = registry.evaluation(context.warehouse, model.name, version.number)
        if before is not None:
            card = msgspec.structs.replace(card, production=before.production, comparison=before.comparison)
        if production is not None:
            model_metrics.measure_evaluation(context, model, config, found, "production")
    row = registry.evaluation_row(context.spark, card, run_id=context.telemetry.identity.run_id)
    context.replace(row, registry.EVALUATIONS.name, where=registry.where_version(model.name, version.number))
    context.write_card(card)
    return card


def evaluate_production(context: "TrainingContext", model: Model, config: ModelConfig) -> None:
    """Judges the version in production on the last days whose labels are known at the end of the day of the context.

    The registry keeps the scores that led to its promotion.

    Raises:
        InputError: No version is in production, no row is held out, the version was trained on some of them, or the
            program does not compute its features.
    """
    version = promotion.in_production(context, model)
    with labelled_data(context, model, config, context.date, has_train=False) as data:
        if str(data.periods.held_out_first) <= version.card.last_date:
            trained = f"version {version.number} was trained on {version.card.first_date} to {version.card.last_date}"
            raise InputError(f"{trained}, which say nothing of how good it is: choose a later day with --date")
        _require_held_out(model, data)
        found, _ = _evaluation(context, model, config, version, data, role="production")
    context.write_card(msgspec.structs.replace(version.card, evaluation=found))
    model_metrics.measure_production(context, model)


def _evaluation(
    context: "TrainingContext", model: Model, config: ModelConfig, version: Version, data: Data, *, role: str
) -> tuple[Evaluation, "pd.DataFrame"]:
    """The scores of a version, and the held-out rows with its probabilities in the order of their keys."""
    from spark_app.models import judging, scoring

    with context.step(f"evaluate {role}", kind="evaluate") as step:
        step.about(version.number)
        reference.require_same(context.warehouse, version, model.inputs)
        fitted = registry.load(version)
        rows = judging.probabilities(fitted, data.held_out, key=model.examples.key, keep=config.slices)
        found = judging.evaluation(version.card, rows, data.periods, slices=config.slices, samples=config.bootstrap)
        scored = scoring.scored(fitted, data.held_out, version, keep=[model.examples.key])
        drift = judging.drift(version.card, data.held_out, scored)
        latency = judging.latency_ms(fitted, data.held_out)
        step.about(version.number, **model_metrics.main_scores(found))
    found = msgspec.structs.replace(found, drift=drift, latency_ms=latency)
    model_metrics.measure_evaluation(context, model, config, found, role)
    return found, rows


def _comparison(
    context: Context,
    config: ModelConfig,
    card: ModelCard,
    rows: "pd.DataFrame",
    production: ModelCard,
    same_rows: "pd.DataFrame",
) -> VersionComparison:
    from spark_app.models import judging

    with context.step("compare with production", kind="evaluate"):
        return judging.comparison(card, rows, production, same_rows, samples=config.gate.resamples)
