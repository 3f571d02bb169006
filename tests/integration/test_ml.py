"""The whole line on a shop whose truth is known: train, judge, promote, refuse, roll back, score, and a kill."""

import datetime
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pytest
from delta.tables import DeltaTable
from pyspark.sql import functions as F
from sklearn import metrics

from app import features
from app.ml.refunds import refunded
from app.streaming import predictions
from spark_app.engine.model import labelled_data
from spark_app.errors import InputError, PromotionError
from spark_app.execution.run import load_jobs
from spark_app.execution.training import model_of
from spark_app.models import judging, registry
from spark_app.models.estimators import PROBABILITY
from spark_app.runs import model_card
from spark_app.runs.model_card import PREDICTION, SHIFTED, ModelCard
from spark_app.vocabulary.names import TRACEPARENT
from tests import shop_rows
from tests.integration.home import Home
from tests.integration.processes import kill_when, make_quick
from tests.integration.refunds_shop import DAYS, HELD_OUT, MODEL, OPEN, ROWS, do, production, train
from tests.shop_rows import DAY
from tests.unit.streaming.drained import Drained

INSTANT: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX"
ROW: Final = "models/_delta_log/*1.json"
FIT: Final = re.compile(r"fit (?P<algorithm>\w+) .*on (?:fold (?P<fold>\d)/2|all rows)")
SOURCES: Final = {"logistic_regression": "RDDLossFunction.scala", "random_forest": "RandomForest.scala"}
"""The file of MLlib that only this algorithm's stages are named after."""
LONGEST_PLAN: Final = 4_000
"""`spark.sql.maxPlanStringLength` in config/spark/spark-defaults.conf."""
STUMP: Final = {"numTrees": [1], "maxDepth": [1]}
NEARLY: Final = 0.06
"""By how much the ROC AUC of a model may be below that of the true probabilities; a wrong label costs more."""


@pytest.fixture(scope="module", autouse=True)
def few_rows_for_importances() -> Iterator[None]:
    """Importances are of fewer rows: forty passes over a day take most of the time of a training without codegen."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(judging, "IMPORTANCE_ROWS", 300)
        yield


@pytest.fixture(scope="module")
def trained(new_home: Callable[[str], Home]) -> Home:
    """A shop with six days of sales, and a model that was trained and promoted."""
    return train(new_home("trained"))


@pytest.fixture
def shop(trained: Home, tmp_path: Path) -> Home:
    """A copy of it, with the artifact where the copy has it."""
    return trained.copied(tmp_path / "shop")


def judged(home: Home) -> ModelCard:
    """The first version with its evaluation."""
    card = registry.evaluation(home.warehouse, MODEL, 1)
    assert card is not None
    assert card.evaluation is not None
    return card


def test_a_model_comes_near_what_can_be_known(trained: Home) -> None:
    """The generator's own probabilities are the best there is; the model is far above chance and not far below them."""
    found = judged(trained).evaluation
    assert found is not None
    truths = [shop_rows.of_day(date, rows=ROWS).truth() for date in DAYS[4:5]]
    label = np.concatenate([truth.is_refunded for truth in truths])
    probability = np.concatenate([truth.probability for truth in truths])
    assert (found.rows, found.positives) == (len(label), int(label.sum()))
    best = metrics.roc_auc_score(label, probability)
    assert best - NEARLY < found.score("roc_auc") < best + 0.01
    assert found.score("average_precision") > 2.5 * label.mean()
    assert found.score("calibration_error") < 0.02


def test_nothing_drifts_in_a_shop_that_does_not_change(trained: Home) -> None:
    """Also not what is known of customers, which does not grow with the age of the tables, and not the probability."""
    found = judged(trained).evaluation
    assert found is not None
    assert found.drift.keys() == {feature.name for feature in features.FEATURES} | {PREDICTION}
    assert max(found.drift.values()) < SHIFTED


def test_a_version_says_what_it_was_made_of(trained: Home) -> None:
    """Tables with versions, days, features, candidates, parameters, trace; the scores of both tables are the same."""
    card, version = judged(trained), registry.version(trained.warehouse, MODEL)
    assert version.card.table_versions == {"transactions": 0, "refund_events": 0}
    assert (card.first_date, card.last_date) == ("2024-01-03", "2024-01-03")
    assert (card.algorithm, card.parameters) == ("logistic_regression", {"regParam": "0.003", "maxIter": "30"})
    assert set(card.importances) == set(card.features) == {feature.name for feature in features.FEATURES}
    assert card.trace_id
    [row] = trained.table("model_evaluations").collect()
    assert row.metrics["average_precision"] == card.evaluation.score("average_precision")  # type: ignore[union-attr]


def test_repeating_changes_nothing(shop: Home) -> None:
    """The same rows with the same configuration keep the version; what is in production stays there."""
    before = shop.content("models", "model_promotions")
    do(shop, "run")
    assert shop.content("models", "model_promotions") == before
    assert "version 1 is in production already" in shop.notes


def test_the_version_in_production_is_judged_as_of_a_day(shop: Home) -> None:
    """On the labels that are known at its end, and not on what it was trained on; the registry stays as it is."""
    before = shop.content("models", "model_evaluations", "model_promotions")
    card = do(shop, "evaluate", date=DAYS[-1])
    assert card is not None
    assert card.evaluation is not None
    assert card.evaluation.scores == judged(shop).evaluation.scores  # type: ignore[union-attr]
    with pytest.raises(InputError, match="version 1 was trained on 2024-01-03 to 2024-01-03"):
        do(shop, "evaluate", date=DAYS[3])
    assert shop.content("models", "model_evaluations", "model_promotions") == before


@pytest.mark.before_release
def test_a_worse_version_is_refused(shop: Home) -> None:
    """Exit code 4 with the reason; both were judged on the same rows."""
    shop.configure(MODEL, candidates={"logistic_regression": None, "random_forest": STUMP})
    with pytest.raises(PromotionError, match=r"version 2 is not promoted, version 1 stays .*: .*not better than"):
        do(shop, "run")
    assert (production(shop), PromotionError.exit_code) == (1, 4)
    shop.configure(MODEL, gate=OPEN)
    with pytest.raises(PromotionError, match="not better than that of version 1 in production beyond chance"):
        do(shop, "promote")
    row = shop.table("model_evaluations").where("version = 2").collect()[0]
    card = model_card.decode(row.evaluation, ModelCard)
    assert card.production.score("roc_auc") == judged(shop).evaluation.score("roc_auc")  # type: ignore[union-attr]


def requests(shop: Home) -> list[dict[str, Any]]:
    """A request for each transaction of the held-out day."""
    sold = shop.table("transactions").where(F.col("processed_date") == F.lit(HELD_OUT))
    values = F.to_json(F.struct(*refunded.examples.known), {"timestampFormat": INSTANT})
    asked = [json.loads(row[0]) for row in sold.select(values).collect()]
    return [{"request_id": f"r-{each['transaction_id']}"} | each for each in asked]


def replies_to(asked: Sequence[dict[str, Any]], shop: Home, folder: Path) -> dict[str, dict[str, Any]]:
    """The replies to requests, by transaction."""
    stream = Drained(folder, shop.spark, predictions, home=shop)
    stream.deliver("prediction_requests", *asked)
    stream.drain()
    replies = [json.loads(line) for line in stream.lines("predictions")]
    assert {reply["request_id"] for reply in replies} == {each["request_id"] for each in asked}
    return {reply["transaction_id"]: reply for reply in replies}


def cut(shop: Home, date: datetime.date) -> None:
    """Removes a day and all later ones from the tables."""
    for table, day in (("transactions", "processed_date"), ("refund_events", "refunded_date")):
        DeltaTable.forPath(shop.spark, shop.warehouse.path(table)).delete(f"{day} >= '{date}'")


def average_precision(labels: dict[str, float], probabilities: dict[str, float]) -> float:
    """That of probabilities of transactions, by scikit-learn."""
    keys = sorted(labels)
    return float(metrics.average_precision_score([labels[key] for key in keys], [probabilities[key] for key in keys]))


class Judged(NamedTuple):
    """The held-out rows of the first version, by transaction: their labels, and the probabilities that judged it."""

    labels: dict[str, float]
    probabilities: dict[str, float]


def held_out(shop: Home) -> Judged:
    """What the first version was judged on."""
    [job] = load_jobs(shop.settings, "ml", [MODEL])
    context = Drained(shop.folder / "reader", shop.spark, predictions, home=shop).context
    with labelled_data(context, model_of(job), job.config, DAYS[-1]) as data:
        fitted = registry.load(registry.version(shop.warehouse, MODEL, 1))
        rows = fitted.transform(data.held_out).select("transaction_id", "label", PROBABILITY).collect()
    return Judged({row[0]: row[1] for row in rows}, {row[0]: row[2] for row in rows})


@pytest.fixture(scope="module")
def scored(trained: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A copy of the shop in which the held-out day is scored."""
    shop = trained.copied(tmp_path_factory.mktemp("scored") / "shop")
    do(shop, "score", date=HELD_OUT)
    return shop


def test_what_is_served_is_what_was_judged(scored: Home, tmp_path: Path) -> None:
    """On the held-out day: training, the scores of a day, and replies from tables that end at the midnight before.

    They are equal to the last digit, and so the average precision is that of the gate. Where the tables end a day
    earlier, replies are marked as stale, and the average precision is another one.
    """
    shop = scored.copied(tmp_path / "shop")
    seen = held_out(shop)
    written = {row.transaction_id: row for row in shop.table("refund_scores").collect()}
    assert {row.model_version for row in written.values()} == {1}
    bought = shop.table("transactions").where(F.col("processed_date") == F.lit(HELD_OUT)).collect()
    assert {key: row.customer_id for key, row in written.items()} == {
        row.transaction_id: row.customer_id for row in bought
    }
    assert {key: row.probability for key, row in written.items()} == seen.probabilities
    asked = requests(shop)
    cut(shop, HELD_OUT)
    older = shop.copied(tmp_path / "older")
    replies = replies_to(asked, shop, tmp_path / "stream")
    assert {key: reply["probability"] for key, reply in replies.items()} == seen.probabilities
    assert all(reply["is_flagged"] == written[key].is_flagged for key, reply in replies.items())
    midnight = f"{HELD_OUT}T00:00:00.000Z"
    assert {(reply["history_until"], reply["is_stale"]) for reply in replies.values()} == {(midnight, False)}
    served = average_precision(seen.labels, {key: reply["probability"] for key, reply in replies.items()})
    assert served == pytest.approx(judged(shop).evaluation.score("average_precision"), abs=1e-9)  # type: ignore[union-attr]
    cut(older, HELD_OUT - DAY)
    stale = replies_to(asked, older, tmp_path / "older-stream")
    assert {reply["is_stale"] for reply in stale.values()} == {True}
    without = average_precision(seen.labels, {key: reply["probability"] for key, reply in stale.items()})
    assert without != served


@pytest.mark.before_release
def test_a_repeated_score_changes_nothing(scored: Home, tmp_path: Path) -> None:
    """The rows of the day are replaced by the same."""
    shop = scored.copied(tmp_path / "shop")
    do(shop, "score", date=HELD_OUT)
    assert shop.content("refund_scores") == scored.content("refund_scores")


def test_changed_features_are_never_scored_with_the_old_version(shop: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """Scores and evaluations of version 1 are refused."""
    monkeypatch.setattr(features, "PRIOR_RATIO", 0.2)
    for phase in ("score", "evaluate"):
        with pytest.raises(
            InputError, match=r"version 1 of ml\.refunds was trained on other features .*customer_refund_"
        ):
            do(shop, phase, date=HELD_OUT if phase == "score" else DAYS[-1])
    assert not shop.warehouse.exists("refund_scores")


@pytest.mark.before_release
def test_a_model_of_changed_features_is_trained_anew(shop: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next training makes version 2, and promotes it."""
    monkeypatch.setattr(features, "PRIOR_RATIO", 0.2)
    do(shop, "run")
    assert ([each.number for each in registry.versions(shop.warehouse, MODEL)], production(shop)) == ([1, 2], 2)
    assert any(note.startswith("version 1 in production is not compared") for note in shop.notes)
    do(shop, "score", date=HELD_OUT)
    assert {row.model_version for row in shop.table("refund_scores").collect()} == {2}


@pytest.fixture(scope="module")
def killed(trained: Home, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """The program, killed between the row of a second version and its promotion; its event log is on."""
    folder = tmp_path_factory.mktemp("killed")
    shop = trained.copied(folder / "shop")
    make_quick(shop, spark_eventLog_enabled="true")
    shop.configure(MODEL, seed=8, candidates={"random_forest": {"numTrees": [2], "maxDepth": [2]}}, gate=OPEN)
    kill_when(shop, ROW, stderr=folder / "stderr", command=("ml",))
    return shop


def test_a_training_that_is_killed_before_the_promotion_leaves_a_candidate(killed: Home) -> None:
    """It has a number and an artifact that loads; the old version stays in production."""
    assert ([each.number for each in registry.versions(killed.warehouse, MODEL)], production(killed)) == ([1, 2], 1)
    registry.load(registry.version(killed.warehouse, MODEL, 2))


def test_a_candidate_is_promoted_and_rolled_back(killed: Home, tmp_path: Path) -> None:
    """As often as somebody asks for it; a version that was rolled back is not promoted again."""
    shop = killed.copied(tmp_path / "shop")
    do(shop, "evaluate", version=2)
    do(shop, "promote", version=2)
    assert production(shop) == 2
    for _ in range(2):
        do(shop, "rollback")
        assert production(shop) == 1
    with pytest.raises(PromotionError, match="it was rolled back"):
        do(shop, "promote")


def test_jobs_of_fits_in_parallel_threads_hang_on_their_own_fit(killed: Home) -> None:
    """In the event log of a training: what only one algorithm does is below its fits, also while the other one works.

    Each fit of each fold has a trace context of its own, which all of its jobs have.
    """
    contexts = defaultdict[tuple[str, str], set[str]](set)
    order = defaultdict[str, list[str]](list)
    for job in started_jobs(killed):
        stages = " ".join(stage["Stage Name"] for stage in job["Stage Infos"])
        fit = FIT.search(job["Properties"].get("spark.job.description", ""))
        if fit is not None and fit["fold"]:
            contexts[fit["fold"], fit["algorithm"]].add(job["Properties"][TRACEPARENT])
            order[fit["fold"]].append(fit["algorithm"])
        for algorithm, source in SOURCES.items():
            if source in stages:
                assert fit is not None, stages
                assert fit["algorithm"] == algorithm
    assert contexts.keys() == {(fold, algorithm) for fold in "12" for algorithm in SOURCES}
    assert {len(found) for found in contexts.values()} == {1}
    assert len(set.union(*contexts.values())) == len(contexts)
    assert all(changes(order[fold]) > 1 for fold in "12"), "no two fits at the same time: the test shows nothing"


def test_the_event_log_of_a_training_has_no_plan_twice(killed: Home) -> None:
    """It was 136 MB, most of it texts of one plan and metrics that tasks have twice; the tree of each plan is there."""
    logged = events(killed)
    texts = [event["physicalPlanDescription"] for event in logged if "physicalPlanDescription" in event]
    assert max(map(len, texts)) <= LONGEST_PLAN
    assert all(event["sparkPlanInfo"]["nodeName"] for event in logged if "sparkPlanInfo" in event)
    tasks = [event["Task Info"]["Accumulables"] for event in logged if event["Event"] == "SparkListenerTaskEnd"]
    assert not [each for task in tasks for each in task if each.get("Name") == "internal.metrics.executorRunTime"]


def started_jobs(home: Home) -> list[dict[str, Any]]:
    """The jobs in the one event log of a home, in their order."""
    return [event for event in events(home) if event["Event"] == "SparkListenerJobStart"]


def events(home: Home) -> list[dict[str, Any]]:
    """All of the one event log of a home."""
    [log] = home.settings.events_path.glob("**/events_*")
    return list(map(json.loads, log.read_text(encoding="utf-8").splitlines()))


def changes(values: Sequence[str]) -> int:
    """How often a value differs from the one before."""
    return sum(one != other for one, other in pairwise(values))


def test_a_day_that_nobody_published_is_named(shop: Home) -> None:
    """Where the raw folder is the user's own, days are not generated."""
    with pytest.raises(InputError, match="no transactions of 2024-01-08"):
        do(shop, "score", date=datetime.date(2024, 1, 8))


@pytest.mark.before_release
def test_a_day_on_which_a_shop_was_closed_is_told_and_left_out(shop: Home) -> None:
    """A model is trained and a day is scored without it; not so without the first day, or without what judges."""
    for table, day in (("transactions", "processed_date"), ("refund_events", "refunded_date")):
        DeltaTable.forPath(shop.spark, shop.warehouse.path(table)).delete(f"{day} = '{DAYS[3]}'")
    do(shop, "train")
    do(shop, "score", date=DAYS[4])
    told = [f"{table} has no rows of {DAYS[3]}: what happened" for table in ("transactions", "refund_events")]
    assert [sum(note.startswith(each) for note in shop.notes) for each in told] == [2, 1]
    for date in (DAYS[4], DAYS[0]):
        DeltaTable.forPath(shop.spark, shop.warehouse.path("transactions")).delete(f"processed_date = '{date}'")
        with pytest.raises(InputError, match=f"no transactions of {date}: "):
            do(shop, "train", date=DAYS[5])
