"""Which version of a model is in production, and what it says of a day: the same for every model of `app/ml/`."""

from typing import TYPE_CHECKING

import msgspec
from pyspark.sql import functions as F

from spark_app.engine import model_metrics
from spark_app.engine.context import Context, DailyContext
from spark_app.engine.model import Model, ModelConfig
from spark_app.errors import InputError, PromotionError
from spark_app.models import reference, registry
from spark_app.models.gate import merit, refusals
from spark_app.models.registry import Promotion, Version
from spark_app.runs.model_card import ModelCard, Verdict
from spark_app.spark.persisted import persisted
from spark_app.vocabulary import names

if TYPE_CHECKING:
    from spark_app.engine.training import TrainingContext


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
        step.about(version.number, **model_metrics.main_scores(card.evaluation))
        verdict = _verdict(context, model, config, card, is_named=is_named)
    context.write_card(msgspec.structs.replace(card, verdict=verdict))
    if verdict.reasons:
        context.telemetry.measure(names.ML_PROMOTIONS, 1, {names.PROMOTION_ACTION: "refused"})
        raise PromotionError(f"{verdict.text}: {'; '.join(verdict.reasons)}")
    context.note(verdict.text)
    if verdict.production is None:  # no version in production was judged beside it
        model_metrics.measure_evaluation(context, model, config, card.evaluation, "production")
    model_metrics.measure_production(context, model)


def _verdict(context: Context, model: Model, config: ModelConfig, card: ModelCard, *, is_named: bool) -> Verdict:
    """What the gate decides, and the promotion; decided anew if another run promotes first."""
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
    if is_comparable(context, model, registry.version(context.warehouse, model.name, current)):
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
    model_metrics.measure_production(context, model)


def _rolled_back(context: Context, model: Model) -> tuple[int, bool]:
    """The version of before the last promotion, and whether it was in production already; put there if it was not."""
    changes = registry.promotions(context.warehouse, model.name)
    number = registry.previous(changes)
    if number is None:
        raise InputError(f"{model.name} has no version to roll back to: fewer than two were promoted")
    registry.version(context.warehouse, model.name, number)
    is_there = changes[-1].version == number
    if not is_there and not _change(context, model, Promotion(len(changes) + 1, number, "rolled_back")):
        return _rolled_back(context, model)  # another run was faster
    return number, is_there


def _change(context: Context, model: Model, change: Promotion) -> bool:
    """Changes what is in production, unless another run has made the change of that number; returns whether it did."""
    row = registry.promotion_row(context.spark, model.name, change, run_id=context.telemetry.identity.run_id)
    is_made = context.insert(row, registry.PROMOTIONS.name, keys=registry.PROMOTION_KEYS, kind="publish")
    if is_made:
        context.telemetry.measure(names.ML_PROMOTIONS, 1, {names.PROMOTION_ACTION: change.action})
    return is_made


def score(context: DailyContext, model: Model) -> None:
    """Publishes the probability of each example of one date, by the version in production.

    Raises:
        InputError: No version is in production, the program does not compute its features, or there are no
            examples of the date.
    """
    from spark_app.models import judging, scoring

    version = in_production(context, model)
    with context.step("check features", kind="transform"):
        reference.require_same(context.warehouse, version, model.inputs)
    frames = {name: context.table(name) for name in model.inputs.reads}
    known = model.inputs.of_days(frames, context.warehouse.tables, context.date, context.date)
    with persisted(scoring.scored(registry.load(version), known, version, keep=model.examples.keys)) as scores:
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
        model_metrics.measure_scores(context, scores, flagged=flagged, rows=read)
        with context.step("measure drift", kind="evaluate"):
            model_metrics.measure_drift(context, model, judging.drift(version.card, known, scores), "production")
        model_metrics.measure_production(context, model)


def is_comparable(context: Context, model: Model, production: Version) -> bool:
    """Whether the program computes the features of the version in production; says so if it does not."""
    found = reference.difference(context.warehouse, production, model.inputs)
    if found is not None:
        context.note(f"version {production.number} in production is not compared, since features have changed: {found}")
    return found is None


def in_production(context: Context, model: Model) -> Version:
    """The version in production.

    Raises:
        InputError: None is.
    """
    version = registry.production(context.warehouse, model.name)
    if version is None:
        raise InputError(f"no version of {model.name} is in production: run `spark-app ml` first")
    return version
