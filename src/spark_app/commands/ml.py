"""`spark-app ml`: trains, judges, promotes and applies models."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final, Literal

import typer

from spark_app import formatting
from spark_app.commands import options
from spark_app.commands.etl import perform, summarize
from spark_app.errors import UsageError

if TYPE_CHECKING:
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.training import ListedVersion
    from spark_app.runs.model_card import Estimate, Evaluation, ModelCard
    from spark_app.runs.run_record import RunRecord

Verb = Literal["train", "evaluate", "promote", "rollback", "score", "list"]
OF_A_VERSION: Final = ("evaluate", "promote")
OF_A_DAY: Final = (None, "train", "evaluate", "score")


def ml(
    verb: Annotated[
        Verb | None,
        typer.Argument(
            metavar="[train|evaluate|promote|rollback|score|list]",
            help="One phase; train, evaluate and promote in one go if none is named.",
        ),
    ] = None,
    version: Annotated[
        int | None, typer.Argument(metavar="[VERSION]", min=1, help="To evaluate or promote; the newest by default.")
    ] = None,
    *,
    model: Annotated[
        str | None, typer.Option("--model", metavar="NAME", help="Module of app/ml; the only model by default.")
    ] = None,
    date: options.Date = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Train, judge and promote a model, as of the end of a day or the newest one; score a day with it."""
    if version is not None and verb not in OF_A_VERSION:
        raise UsageError(f"only {' and '.join(OF_A_VERSION)} take a version")
    if date is not None and verb not in OF_A_DAY:
        raise UsageError(f"{verb} takes no --date")
    if version is not None and date is not None:
        raise UsageError("evaluate takes a version, or the --date at whose end it judges the one in production")
    if verb == "score" and date is None:
        raise UsageError(f"score needs --date {options.DAY}")
    # Spark is imported only now, so that --help and usage errors answer at once.
    from spark_app.commands.terminal import Terminal
    from spark_app.execution.training import chosen_model, listed_versions, run_ml
    from spark_app.settings import load_settings

    settings, terminal, name = load_settings(config), Terminal(), chosen_model(model)
    if verb == "list":
        show_versions(
            partial(listed_versions, settings, listener=terminal, model=name), terminal=terminal, is_json=json
        )
    else:
        job = partial(run_ml, settings, verb or "run", listener=terminal, model=name, date=date, version=version)
        perform(job, terminal=terminal, is_json=json, show=show_run, also=cards)


def show_run(terminal: "Terminal", results: Sequence["RunRecord"], *, seconds: float) -> None:
    """Prints the card of each run that has one, and its counts and places."""
    for result in results:
        card = card_of(result)
        if card is not None:
            show_card(terminal, card)
    summarize(terminal, results, seconds=seconds)


def cards(results: Sequence["RunRecord"]) -> dict[str, list["ModelCard"]]:
    """The cards of the runs that have one, as the JSON document has them."""
    return {"models": [card for result in results if (card := card_of(result)) is not None]}


def card_of(result: "RunRecord") -> "ModelCard | None":
    """The card that a run left in its folder."""
    from spark_app.runs import model_card

    return model_card.read(result.folder) if (result.folder / model_card.CARD).exists() else None


def show_card(terminal: "Terminal", card: "ModelCard") -> None:
    """Prints what was tried, how good the version is beside the one in production, and the verdict."""
    terminal.line()
    terminal.line(
        f"{card.model} version {card.version}: {card.algorithm} on {formatting.quantity(card.rows, 'row')} "
        f"of {card.first_date} to {card.last_date}, {formatting.count(card.positives)} positive",
        style="bold",
    )
    rows = [[each.title, f"{each.score:.3f}", f"{each.deviation:.3f}"] for each in card.tried]
    terminal.table(("tried", "average precision", "deviation"), rows, right=("average precision", "deviation"))
    if card.evaluation is not None:
        show_scores(terminal, card.evaluation, card.production)
    for finding in card.statistics.findings:
        terminal.line(f"finding: {finding.text}")
    if card.verdict is not None:
        terminal.line()
        terminal.line("; ".join([card.verdict.text, *card.verdict.reasons]), style="bold")


def show_scores(terminal: "Terminal", found: "Evaluation", production: "Evaluation | None") -> None:
    """Prints the scores on the held-out rows with their intervals."""
    terminal.line()
    terminal.line(
        f"judged on {formatting.quantity(found.rows, 'row')} of {found.first_date} to {found.last_date}, "
        f"{formatting.count(found.positives)} positive"
    )
    headers = ["score", f"version {found.version}", *([f"version {production.version}"] if production else [])]
    others = production.scores if production else {}
    rows = [
        [name, _estimate(estimate), *([_estimate(others[name])] if name in others else [])]
        for name, estimate in found.scores.items()
    ]
    terminal.table(headers, rows)
    counts = found.confusion
    flagged, hit = counts.true_positive + counts.false_positive, counts.true_positive
    terminal.line(
        f"at the threshold {found.threshold:.3f}: {formatting.count(flagged)} flagged, {formatting.count(hit)} of them "
        f"positive; {formatting.count(counts.false_negative)} positive not flagged"
    )


def _estimate(found: "Estimate") -> str:
    if found.value is None:
        return formatting.UNKNOWN
    return f"{found.value:.4f}" + ("" if found.low is None else f" ({found.low:.4f} to {found.high:.4f})")


def show_versions(find: Callable[[], Sequence["ListedVersion"]], *, terminal: "Terminal", is_json: bool) -> None:
    """Prints every version with its score and which one is in production."""
    terminal.wait("starting Spark")
    with terminal:
        versions = find()
    if is_json:
        terminal.answer(models=versions)
        return
    if not versions:
        terminal.line("no version yet: train one with `spark-app ml`")
        return
    headers = ("version", "algorithm", "as of", "rows", "average precision", "ROC AUC", "state")
    terminal.table(headers, [_version_row(each) for each in versions], right=("version", "rows"))


def _version_row(each: "ListedVersion") -> list[str]:
    card, scores = each.card, each.card.evaluation.scores if each.card.evaluation else {}
    shown = [_estimate(scores[name]) if name in scores else formatting.UNKNOWN for name in _LISTED_SCORES]
    state = "in production" if each.is_in_production else ""
    return [str(each.version.number), card.algorithm, card.as_of, formatting.count(card.rows), *shown, state]


_LISTED_SCORES: Final = ("average_precision", "roc_auc")
