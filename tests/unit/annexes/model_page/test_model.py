"""The model of a run: what its card says, and nothing that it does not say."""

import datetime
import html
import re
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest
from sklearn import metrics
from sklearn.calibration import calibration_curve

from spark_app.annexes.model_page import curves
from spark_app.annexes.model_page import model as annex
from spark_app.annexes.model_page.curves import Point
from spark_app.annexes.model_page.model import Drift, Model, Rates, model
from spark_app.models import judging
from spark_app.models.periods import Periods
from spark_app.report import page, run_info
from spark_app.report.limits import MAX_BYTES, Limits
from spark_app.report.scope import scope
from spark_app.runs import model_card
from spark_app.runs.model_card import Candidate, Confusion, Estimate, ModelCard, Verdict
from tests.unit.eventlog import log
from tests.unit.report import cards, made
from tests.unit.report.conftest import Read, record_of

Section = Callable[..., Model]
Shown = Callable[[ModelCard], str]


@pytest.fixture
def section(reading: Read, run_folder: Path) -> Section:
    """The section of a run with a card."""

    def of(card: ModelCard, **limits: int) -> Model:
        model_card.write(run_folder, card)
        found = model(scope(reading([log.started(), log.ended()]).app, run_info.read(run_folder)), Limits(**limits))
        assert found
        return found

    return of


@pytest.fixture
def source(reading: Read, run_folder: Path, tmp_path: Path) -> Shown:
    """The HTML of the section of a run with a card."""

    def of(card: ModelCard) -> str:
        model_card.write(run_folder, card)
        record_of(run_folder, pipeline="ml.refunds")
        done = reading([log.started(), log.ended()])
        written = page.write(done, output=tmp_path / "r.html", run=run_info.read(run_folder)).path.read_text("utf-8")
        return written.partition('<section id="model">')[2].partition("</section>")[0]

    return of


def text(source: str) -> str:
    """What a person reads of it, cells of a table separated by bars."""
    cells = re.sub(r"</dt>", " ", re.sub(r"</t[dh]>", " | ", source))
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", cells)))


def test_a_run_without_a_card_has_no_section(reading: Read, run_folder: Path, tmp_path: Path) -> None:
    """Nor a tab for it."""
    done = reading([log.started(), log.ended()])
    content = page.write(done, output=tmp_path / "r.html", run=run_info.read(run_folder)).path.read_text("utf-8")
    assert "#model" not in content
    assert 'id="model"' not in content


def test_the_verdict_comes_first_with_its_reasons(source: Shown) -> None:
    """Somebody who is woken reads why, before anything else."""
    verdict = Verdict(is_promoted=False, text="version 3 is not promoted", reasons=["a thousand rows take 20000 ms"])
    shown = text(source(cards.card(verdict=verdict)))
    assert "not promoted version 3 is not promoted a thousand rows take 20000 ms Scores" in shown
    assert "promoted version 3 is in production in place of version 2 Scores" in text(source(cards.card()))


def test_scores_are_beside_those_of_production(source: Shown) -> None:
    """With intervals, the difference and its direction, and what a model scores that knows nothing."""
    shown = text(source(cards.card()))
    assert "higher | 0.310 | 0.290 to 0.335 | 0.270 | 0.250 to 0.295 | +0.040 better | 0.050 |" in shown
    assert "lower | 0.150 | 0.130 to 0.175 | 0.110 | 0.090 to 0.135 | +0.040 worse | 0.199 |" in shown
    assert "time to score 1,000 rows | lower | 812 ms | | 812 ms |" in shown


def test_the_threshold_is_shown_as_counts_and_rates(source: Shown) -> None:
    """Of 50 positive rows 30 are found; of 80 flagged ones 50 are false alarms."""
    shown = text(source(cards.card()))
    assert "positive 50 | 30found60 % of the row | 20missed40 % of the row |" in shown
    assert "negative 950 | 50false alarms5.3 % of the row | 900left alone95 % of the row |" in shown
    assert "how many are positive | 38 % | 38 % |" in shown


def test_what_it_was_trained_on_is_shown(source: Shown) -> None:
    """So that it can be trained again."""
    shown = text(source(cards.card()))
    for part in (
        "4,321 from 2024-01-01 to 2024-01-05, as known at the end of 2024-01-09",
        "216 (5.0 %)",
        "random forest maxDepth=8",
        "transactions 17 refund_events 4",
        "git commit 0123abc",
        f"trace {'f' * 32}",
        "seed 7",
        "quantity never varies: it tells a model nothing",
    ):
        assert part in shown


def test_features_slices_and_candidates_are_ranked(section: Section) -> None:
    """The greatest importance, the best candidate, the worst slice of each column and the furthest drift first."""
    found = section(cards.card())
    assert [(each.name, each.width) for each in found.importances.shown[:2]] == [("amount_log", 100), ("channel", 60)]
    assert [row.candidate.value for row in found.slices.shown] == ["FR", "DE", "AT"]
    assert [each.candidate.algorithm for each in found.tried.shown] == ["random_forest", "logistic_regression"]
    assert [(each.name, each.word) for each in found.drift.shown] == [
        ("country", "shifted"),
        ("channel", "shifting"),
        ("amount_log", "stable"),
    ]


def test_drift_is_judged_by_the_greater_of_both() -> None:
    """Production may have been trained long before."""
    words = [
        Drift("f", candidate, production).word
        for candidate, production in ((0.0999, None), (0.1, 0.0), (0.0, 0.25), (None, None))
    ]
    assert words == ["stable", "shifting", "shifted", "not known"]


def test_what_is_not_known_is_not_0(source: Shown) -> None:
    """Scores of rows of one class, the first version without a production, a program without git."""
    judged = cards.evaluation(
        positives=0,
        scores={"roc_auc": Estimate(value=None), "brier": Estimate(value=0.0)},
        confusion=Confusion(true_negative=1000, false_positive=0, false_negative=0, true_positive=0),
        latency_ms=None,
        drift={},
        calibration=[],
    )
    card = cards.card(evaluation=judged, production=None, git_commit=None, trace_id=None, table_versions={}, rows=0)
    shown = text(source(card))
    assert "higher | not known | not known | – |" in shown
    assert "lower | 0.000 | not known | – |" in shown
    assert "time to score 1,000 rows | lower | not known |" in shown
    assert "how many are positive | not known | recall: of the positive, how many are flagged | not known |" in shown
    assert "git commit not known trace not known" in shown
    assert "table versions not known" in shown
    assert "216 (not known)" in shown
    assert "quantity | 1 | 0 | 1 | 1 | not known |" in shown
    assert "country AT | 7 | 0 | not known | not known |" in shown


def test_a_dot_is_drawn_only_where_a_rate_is_defined(section: Section) -> None:
    """A threshold that flags nothing has no precision."""
    nothing = Confusion(true_negative=950, false_positive=0, false_negative=50, true_positive=0)
    roc, precision_recall, _ = section(
        cards.card(evaluation=cards.evaluation(confusion=nothing), production=None)
    ).plots
    assert [(mark.x, mark.y) for mark in roc.marks] == [(0, 1000)]
    assert precision_recall.marks == []
    assert Rates(0.5, nothing).precision is None


def test_a_version_that_was_not_judged_has_no_scores(source: Shown) -> None:
    """`spark-app ml train` stops there."""
    shown = text(source(cards.card(evaluation=None, production=None, verdict=None)))
    assert "not decided The run trained version 3 and decided nothing." in shown
    assert "ROC" not in shown
    assert "Drift population stability index (PSI) Not known." in shown


def test_names_and_texts_are_escaped(source: Shown) -> None:
    """Names of features and values of slices come from data."""
    content = source(cards.hostile(made.HOSTILE))
    assert content.count("&lt;script&gt;document") > 20
    assert "<script" not in content
    assert "<img" not in content
    assert "\"'" not in content


def test_a_card_of_any_size_gives_a_page_of_bounded_size(section: Section, source: Shown) -> None:
    """Curves of 200 points, and so many rows of each table; what is left out is said."""
    names = [f"feature_{number}" for number in range(500)]
    judged = cards.evaluation(
        roc=cards.curve(float, 10_000),
        drift=dict.fromkeys(names, 0.1),
        slices=[cards.slice_score("shop", name, 9, 0.5) for name in names],
    )
    candidate = Candidate(algorithm="a", parameters={"x": "1"}, score=0.5, deviation=0.0)
    card = cards.card(
        evaluation=judged, production=judged, importances=dict.fromkeys(names, 0.1), tried=[candidate] * 500
    )
    assert section(card).plots[0].curves[0].path.count("L") == 199
    content = source(card)
    assert len(content) < MAX_BYTES / 10
    for what in ("features", "slices", "candidates"):
        assert f"100 of 500 {what} are listed." in text(content)


def test_a_card_that_cannot_be_read_is_said(reading: Read, run_folder: Path, tmp_path: Path) -> None:
    """The rest of the report is as usual."""
    (run_folder / model_card.CARD).write_bytes(msgspec.json.encode({"model": "ml.refunds"}))
    done = reading([log.started(), log.ended()])
    content = page.write(done, output=tmp_path / "r.html", run=run_info.read(run_folder)).path.read_text("utf-8")
    assert "The report has no page of the model: " in content
    assert "model.json is not a model card" in content


def test_a_section_of_an_annex_that_raises_hurts_no_other(
    monkeypatch: pytest.MonkeyPatch, reading: Read, run_folder: Path, tmp_path: Path
) -> None:
    """It costs a remark; the rest of the report is as usual."""

    def raises(*_: object) -> None:
        raise LookupError("of its own")

    model_card.write(run_folder, cards.card())
    monkeypatch.setattr(annex, "model", raises)
    done = reading([log.started(), log.ended()])
    content = page.write(done, output=tmp_path / "r.html", run=run_info.read(run_folder)).path.read_text("utf-8")
    assert "the section model raised LookupError" in content
    assert 'id="model"' not in content
    assert 'id="timeline"' in content


DRAWS = np.random.default_rng(3)
ROWS = pd.DataFrame({"probability": DRAWS.beta(1, 12, 3_000), "country": DRAWS.choice(["DE", "FR"], 3_000)})
ROWS["label"] = (DRAWS.random(3_000) < ROWS["probability"]).astype(float)
PERIODS = Periods.of(datetime.date(2024, 1, 9), history_days=8, window_days=2, held_out_days=2, label_days=1)
CARD = cards.card(production=None)
JUDGED = cards.card(production=None, evaluation=judging.evaluation(CARD, ROWS, PERIODS, slices=["country"], samples=10))
LABEL, PROBABILITY, FLAGGED = ROWS["label"], ROWS["probability"], ROWS["probability"] >= CARD.threshold


def test_scores_are_those_of_scikit_learn(source: Shown) -> None:
    """Each beside its name."""
    shown = text(source(JUDGED))
    for name, score in (
        ("curve | higher", metrics.average_precision_score(LABEL, PROBABILITY)),
        ("above a negative one | higher", metrics.roc_auc_score(LABEL, PROBABILITY)),
        ("wrong | lower", metrics.log_loss(LABEL, PROBABILITY)),
        ("of the probabilities | lower", metrics.brier_score_loss(LABEL, PROBABILITY)),
    ):
        assert f"{name} | {score:.3f} | " in shown


def test_a_model_that_knows_nothing_scores_what_scikit_learn_says(section: Section) -> None:
    """It gives each row the share of positives as its probability."""
    share = np.full(len(LABEL), LABEL.mean())
    blind = {row.name: row.blind for row in section(JUDGED).scores}
    assert blind["average_precision"] == pytest.approx(metrics.average_precision_score(LABEL, share))
    assert blind["roc_auc"] == pytest.approx(metrics.roc_auc_score(LABEL, share))
    assert blind["log_loss"] == pytest.approx(metrics.log_loss(LABEL, share))
    assert blind["brier"] == pytest.approx(metrics.brier_score_loss(LABEL, share))


def test_rates_are_those_of_scikit_learn(section: Section) -> None:
    """At the threshold of the card."""
    rates = section(JUDGED).rates
    assert rates
    assert rates.precision == pytest.approx(metrics.precision_score(LABEL, FLAGGED))
    assert rates.recall == pytest.approx(metrics.recall_score(LABEL, FLAGGED))
    assert rates.false_positive_rate == pytest.approx(1 - metrics.recall_score(LABEL, FLAGGED, pos_label=0))
    assert rates.flagged == pytest.approx(FLAGGED.mean())


def test_curves_are_those_of_scikit_learn(section: Section) -> None:
    """Every point that is drawn is one of theirs, the threshold is on the curve, and the bins are theirs."""
    roc, precision_recall, calibration = section(JUDGED).plots
    false_positive, true_positive, _ = metrics.roc_curve(LABEL, PROBABILITY)
    precision, recall, _ = metrics.precision_recall_curve(LABEL, PROBABILITY)
    observed, predicted = calibration_curve(LABEL, PROBABILITY, n_bins=10, strategy="quantile")
    for plot, x, y in ((roc, false_positive, true_positive), (precision_recall, recall, precision)):
        points = {curves.place(Point(*point)) for point in zip(x, y, strict=True)}
        drawn = {tuple(map(float, pair.split())) for pair in plot.curves[0].path[1:].split("L")}
        assert len(drawn) > 100
        assert drawn <= points
    recalled = metrics.recall_score(LABEL, FLAGGED)
    across, up = precision_recall.marks[0].x, roc.marks[0].y
    assert (across, up) == (round(1000 * recalled, 1), round(1000 * (1 - recalled), 1))
    bins = [curves.place(Point(*pair), calibration.top) for pair in zip(predicted, observed, strict=True)]
    assert [(mark.x, mark.y) for mark in calibration.marks] == bins


def test_slices_are_those_of_scikit_learn(source: Shown) -> None:
    """Each over its own rows."""
    shown = text(source(JUDGED))
    for country, part in ROWS.groupby("country"):
        precision = metrics.average_precision_score(part["label"], part["probability"])
        area = metrics.roc_auc_score(part["label"], part["probability"])
        counts = f"{len(part):,} | {part['label'].sum():.0f}"
        assert f"country {country} | {counts} | {precision:.3f} | {area:.3f} |" in shown
