"""Trains, judges, promotes and applies the versions of a model: the same for every model of `app/ml/`."""

import datetime
import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import msgspec
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from spark_app.errors import InputError, PromotionError
from spark_app.models import provenance, reference, registry
from spark_app.models.gate import merit, refusals
from spark_app.models.reference import Reference
from spark_app.models.registry import Promotion, Version
from spark_app.pipeline.context import Context, DailyContext
from spark_app.pipeline.model import Data, Model, ModelConfig, labelled_data
from spark_app.runs.model_card import (
    AVERAGE_PRECISION,
    LABEL,
    PREDICTION,
    Candidate,
    Comparison,
    Evaluation,
    ModelCard,
    Verdict,
)
from spark_app.telemetry import names

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.ml import PipelineModel

    from spark_app.pipeline.training import TrainingContext

MOST_SLICES: Final = 50
"""So many are measured, those with the most positives: each is a series, and values of columns come from data. The
card has all."""


def run(context: "TrainingContext", model: Model, config: ModelConfig) -> None:
    """Trains as of the end of the day of the context, judges the new version, and promotes it if it passes the gate.

    Raises:
        PromotionError: The gate refuses it; what is in production stays.
    """
    with labelled_data(context, model, config, context.date) as data:
        version = train(context, model, config, data)
        evaluate(context, model, config, version, data)
    promote(context, model, config, version)


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
    artifact = registry.artifact_folder(context.warehouse, model.name, context.run.identity.run_id)
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
        row = registry.version_row(context.spark, numbered, run_id=context.run.identity.run_id, features=features)
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
        trace_id=context.run.trace_id,
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
    validated = context.cross_validate(validator, weighted, search.choices)
    return estimators.ranked(search.choices, validated), cast("PipelineModel", validated.bestModel)


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
    context.run.measure(names.ML_ROWS, rows)
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
        if _is_comparable(context, model, production):
            theirs, same_rows = _evaluation(context, model, config, production, data, role="production")
            comparison = _comparison(context, config, card, rows, production.card, same_rows)
            card = msgspec.structs.replace(card, production=theirs, comparison=comparison)
    else:
        before = registry.evaluation(context.warehouse, model.name, version.number)
        if before is not None:
            card = msgspec.structs.replace(card, production=before.production, comparison=before.comparison)
        if production is not None:
            _measure(context, model, config, found, "production")
    row = registry.evaluation_row(context.spark, card, run_id=context.run.identity.run_id)
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
    version = _in_production(context, model)
    with labelled_data(context, model, config, context.date, has_train=False) as data:
        if str(data.periods.held_out_first) <= version.card.last_date:
            trained = f"version {version.number} was trained on {version.card.first_date} to {version.card.last_date}"
            raise InputError(f"{trained}, which say nothing of how good it is: choose a later day with --date")
        _require_held_out(model, data)
        found, _ = _evaluation(context, model, config, version, data, role="production")
    context.write_card(msgspec.structs.replace(version.card, evaluation=found))
    _measure_production(context, model)


def _is_comparable(context: Context, model: Model, production: Version) -> bool:
    """Whether the program computes the features of the version in production; says so if it does not."""
    found = reference.difference(context.warehouse, production, model.inputs)
    if found is not None:
        context.note(f"version {production.number} in production is not compared, since features have changed: {found}")
    return found is None


def _in_production(context: Context, model: Model) -> Version:
    version = registry.production(context.warehouse, model.name)
    if version is None:
        raise InputError(f"no version of {model.name} is in production: run `spark-app ml` first")
    return version


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
        step.about(version.number, **_main_scores(found))
    found = msgspec.structs.replace(found, drift=drift, latency_ms=latency)
    _measure(context, model, config, found, role)
    return found, rows


def _comparison(
    context: Context,
    config: ModelConfig,
    card: ModelCard,
    rows: "pd.DataFrame",
    production: ModelCard,
    same_rows: "pd.DataFrame",
) -> Comparison:
    from spark_app.models import judging

    with context.step("compare with production", kind="evaluate"):
        return judging.comparison(card, rows, production, same_rows, samples=config.gate.resamples)


def _main_scores(found: Evaluation) -> dict[str, float | None]:
    return {name: found.scores[name].value for name in (AVERAGE_PRECISION, "roc_auc") if name in found.scores}


def _measure(context: Context, model: Model, config: ModelConfig, found: Evaluation, role: str) -> None:
    _measure_drift(context, model, found.drift, role)
    for name, estimate in found.scores.items():
        if estimate.value is not None:
            labels = {names.MODEL_ROLE: role, names.SCORE_NAME: name, names.DATA_SLICE: "all"}
            context.run.measure(names.ML_SCORE, estimate.value, labels)
    large = [each for each in found.slices if each.positives >= config.gate.slice_positives]
    for each in sorted(large, key=lambda each: -each.positives)[:MOST_SLICES]:
        if each.roc_auc is not None:
            labels = {names.MODEL_ROLE: role, names.SCORE_NAME: "roc_auc", names.DATA_SLICE: each.title}
            context.run.measure(names.ML_SCORE, each.roc_auc, labels)


def _measure_drift(context: Context, model: Model, drift: Mapping[str, float], role: str) -> None:
    groups = {feature.name: feature.group for feature in model.features} | {PREDICTION: "prediction"}
    for feature in drift.keys() & groups.keys():  # an old version may have had others
        labels = {names.MODEL_ROLE: role, names.FEATURE_GROUP: groups[feature], names.FEATURE: feature}
        context.run.measure(names.ML_DRIFT, drift[feature], labels)


def promote(
    context: "TrainingContext", model: Model, config: ModelConfig, version: Version, *, is_named: bool = False
) -> None:
    """Puts a version into production if its evaluation passes the gate; does nothing if it is there already.

    Args:
        context: The run.
        model: The model.
        config: The gate.
        version: The version, which was evaluated.
        is_named: Whether a person named it; a version that was rolled back returns only then.

    Raises:
        InputError: It was not evaluated, or not compared with what is in production.
        PromotionError: The gate refuses it; what is in production stays.
    """
    card = registry.evaluation(context.warehouse, model.name, version.number)
    if card is None or card.evaluation is None:
        raise InputError(f"version {version.number} was not evaluated: run `spark-app ml evaluate` first")
    with context.step("promote", kind="evaluate") as step:
        step.about(version.number, **_main_scores(card.evaluation))
        verdict = _verdict(context, model, config, card, is_named=is_named)
    context.write_card(msgspec.structs.replace(card, verdict=verdict))
    if verdict.reasons:
        context.run.measure(names.ML_PROMOTIONS, 1, {names.PROMOTION_ACTION: "refused"})
        raise PromotionError(f"{verdict.text}: {'; '.join(verdict.reasons)}")
    context.note(verdict.text)
    if verdict.production is None:  # no version in production was judged beside it
        _measure(context, model, config, card.evaluation, "production")
    _measure_production(context, model)


def _verdict(context: Context, model: Model, config: ModelConfig, card: ModelCard, *, is_named: bool) -> Verdict:
    """What the gate decides, and the promotion; decided anew if another run promotes meanwhile."""
    changes = registry.promotions(context.warehouse, model.name)
    current = changes[-1].version if changes else None
    if current == card.version:
        return Verdict(is_promoted=True, text=f"version {current} is in production already", production=current)
    _require_comparison(context, model, card, current)
    assert card.evaluation is not None
    reasons = refusals(config.gate, card.evaluation, card.production, card.comparison)
    if card.version in registry.withdrawn(changes) and not is_named:
        reasons.append(f"it was rolled back: `spark-app ml promote {card.version}` puts it back")
    where = "nothing is in production" if current is None else f"version {current} stays in production"
    if reasons:
        text = f"version {card.version} is not promoted, {where}"
        return Verdict(is_promoted=False, text=text, reasons=reasons, production=current)
    if not _change(context, model, Promotion(len(changes) + 1, card.version, "promoted")):
        return _verdict(context, model, config, card, is_named=is_named)
    replaced = "" if current is None else f" in place of version {current}"
    if card.comparison is not None:
        replaced += f": {merit(config.gate, card.comparison)}"
    return Verdict(is_promoted=True, text=f"version {card.version} is in production{replaced}", production=current)


def _require_comparison(context: Context, model: Model, card: ModelCard, current: int | None) -> None:
    """Another run may have promoted a version since this one was judged."""
    compared = card.production.version if card.production and card.comparison else None
    if current is None or current == compared:
        return
    if _is_comparable(context, model, registry.version(context.warehouse, model.name, current)):
        raise InputError(
            f"version {card.version} was not compared with version {current}, which is in production now: "
            f"run `spark-app ml evaluate {card.version}` first"
        )


def rollback(context: "TrainingContext", model: Model) -> None:
    """Puts the version of before the last promotion back into production; does nothing if it is there already.

    Raises:
        InputError: There was none before.
    """
    with context.step("roll back", kind="evaluate") as step:
        number, is_there = _rolled_back(context, model)
        step.about(number)
    context.note(f"version {number} is in production{' already' if is_there else ' again'}")
    _measure_production(context, model)


def _rolled_back(context: Context, model: Model) -> tuple[int, bool]:
    """The version of before the last promotion, and whether it was in production already; put there if it was not."""
    changes = registry.promotions(context.warehouse, model.name)
    number = registry.previous(changes)
    if number is None:
        raise InputError(f"{model.name} has no version to roll back to: fewer than two were promoted")
    registry.version(context.warehouse, model.name, number)
    is_there = changes[-1].version == number
    if not is_there and not _change(context, model, Promotion(len(changes) + 1, number, "rolled_back")):
        return _rolled_back(context, model)  # another run has changed it meanwhile
    return number, is_there


def _change(context: Context, model: Model, change: Promotion) -> bool:
    """Changes what is in production, unless another run has made the change of that number; returns whether it did."""
    row = registry.promotion_row(context.spark, model.name, change, run_id=context.run.identity.run_id)
    is_made = context.insert(row, registry.PROMOTIONS.name, keys=registry.PROMOTION_KEYS, kind="publish")
    if is_made:
        context.run.measure(names.ML_PROMOTIONS, 1, {names.PROMOTION_ACTION: change.action})
    return is_made


def _measure_production(context: Context, model: Model) -> None:
    production = registry.production(context.warehouse, model.name)
    if production is not None:
        context.run.measure(names.ML_VERSION, production.number)
        trained_at = datetime.datetime.fromisoformat(production.card.trained_at)
        context.run.measure(names.ML_TRAINED, trained_at.timestamp())


def score(context: DailyContext, model: Model) -> None:
    """Publishes the probability of each example of one date, by the version in production.

    Raises:
        InputError: No version is in production, the program does not compute its features, or there are no
            examples of the date.
    """
    from spark_app.models import judging, scoring

    version = _in_production(context, model)
    with context.step("check features", kind="transform"):
        reference.require_same(context.warehouse, version, model.inputs)
    frames = {name: context.table(name) for name in model.inputs.reads}
    known = model.inputs.of_days(frames, context.warehouse.tables, context.date, context.date)
    scores = scoring.scored(registry.load(version), known, version, keep=model.examples.keys).persist()
    try:
        with context.step("score", kind="transform") as step:
            step.about(version.number)
            read, flagged = scores.agg(F.count(F.lit(1)), F.count_if("is_flagged")).collect()[0]
            step.count(rows_written=read)
        if not read:
            raise InputError(f"no {model.examples.table} of {context.date} to score: run `spark-app etl` for it first")
        context.report_rows(read=read, flagged=flagged)
        of_the_day = scores.withColumn(model.scores.partitions[0], F.lit(context.date))
        written = context.replace_partition(of_the_day, model.scores.name, kind="publish", count=read)
        context.report_rows(published=written.rows)
        _measure_scores(context, scores, flagged=flagged, rows=read)
        with context.step("measure drift", kind="evaluate"):
            _measure_drift(context, model, judging.drift(version.card, known, scores), "production")
        _measure_production(context, model)
    finally:
        scores.unpersist()


def _measure_scores(context: Context, scores: DataFrame, *, flagged: int, rows: int) -> None:
    from spark_app.models.statistics import QUANTILE_ERROR

    for text, count in (("true", flagged), ("false", rows - flagged)):
        context.run.measure(names.ML_PREDICTIONS, count, {names.IS_FLAGGED: text})
    found = scores.approxQuantile(PREDICTION, list(names.QUANTILES), QUANTILE_ERROR)
    for quantile, value in zip(names.QUANTILES, found, strict=True):
        context.run.measure(names.ML_PROBABILITY, value, {names.QUANTILE: str(quantile)})
