"""Proposals from the last runs of an application, and what later runs say of their forecasts."""

import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from spark_app import formatting
from spark_app.commands import cells
from spark_app.errors import InputError, MachineError

if TYPE_CHECKING:
    from spark_app.annexes.tune.forecasts import SettingForecast
    from spark_app.annexes.tune.history import Proposal
    from spark_app.commands.terminal import Terminal
    from spark_app.eventlog.comparison.profile import RunProfile
    from spark_app.settings import Settings


def propose(terminal: "Terminal", settings: "Settings", name: str, output: Path | None, *, json: bool) -> None:
    """Shows what the last runs of an application propose, and keeps the forecasts.

    Raises:
        InputError: Fewer than three successful runs are stored.
        MachineError: A file cannot be written.
    """
    from spark_app.annexes.tune import forecasts, history
    from spark_app.annexes.tune.properties_file import Property, write
    from spark_app.eventlog.comparison import baselines

    profiles = baselines.newest_good(settings.profiles_path, name)
    if len(profiles) < history.MIN_RUNS:
        raise InputError(
            f"a forecast for {name!r} needs {history.MIN_RUNS} successful runs, and there are {len(profiles)}: "
            "`spark-app observe` stores them"
        )
    found = history.proposals(profiles)
    try:
        forecasts.add(_forecasts(settings), name, found, made_at=round(1000 * time.time()))
        if output is not None and found:
            comments = [f"{each.why}; forecast: {_forecast(each)}." for each in found]
            properties = [Property(p.setting, p.value, text) for p, text in zip(found, comments, strict=True)]
            write(
                output, [f"Proposed by `spark-app tune` from the last runs of {cells.literal(name)}."], properties, None
            )
    except OSError as error:
        raise MachineError(f"cannot write {error.filename}: {error.strerror}") from error
    if json:
        terminal.answer(
            command="tune", application=name, runs=len(profiles), proposals=[asdict(each) for each in found]
        )
        return
    terminal.line(f"{cells.literal(name)}: {formatting.quantity(len(profiles), 'run')}", style="bold")
    if not found:
        terminal.line("its last runs propose nothing")
        return
    rows = [
        (f"{each.setting}={each.value}", each.now or formatting.UNKNOWN, each.why, _forecast(each)) for each in found
    ]
    terminal.table(("setting", "now", "why", "forecast of the next run"), rows)
    terminal.line("`spark-app compare` of a run with a setting says whether its forecast came true")


def _forecasts(settings: "Settings") -> Path:
    from spark_app.observe.retention import TUNINGS

    return settings.reports_path / TUNINGS / "forecasts"


def _forecast(proposal: "Proposal") -> str:
    return f"{proposal.figure} {bounds_text(proposal.figure, proposal.forecast.low, proposal.forecast.high)}"


def bounds_text(figure: str, low: float, high: float) -> str:
    """An interval in the unit of its figure: `10.0 MiB to 12.5 MiB`."""
    text = formatting.duration if figure.startswith("time") else formatting.size
    return f"{text(low)} to {text(high)}"


def decided(
    terminal: "Terminal", settings: "Settings", profile: "RunProfile"
) -> "tuple[list[SettingForecast], list[str]]":
    """The forecasts that a run decides, and lines about them."""
    own, known = judge(terminal, settings, profile)
    return own, forecast_lines(own, known)


def judge(
    terminal: "Terminal", settings: "Settings", profile: "RunProfile"
) -> "tuple[list[SettingForecast], list[SettingForecast]]":
    """The forecasts that a run decides, and all that any run has decided; it is noted if they cannot be kept."""
    from spark_app.annexes.tune import forecasts

    try:
        return forecasts.judge(_forecasts(settings), profile)
    except OSError as error:
        terminal.note(f"forecasts cannot be kept: {error}")
        return [], []


def forecast_lines(own: "Sequence[SettingForecast]", decided: "Sequence[SettingForecast]") -> list[str]:
    """What a run says of the forecasts that were made for its settings, and the share that came true."""
    lines = []
    for each in own:
        text = formatting.duration if each.figure.startswith("time") else formatting.size
        verdict = "came true" if each.came_true else "did not come true"
        bounds = bounds_text(each.figure, each.low, each.high)
        lines.append(
            f"forecast for {each.setting}={each.value}: {each.figure} {bounds}, was {text(each.measured)}: {verdict}"
        )
    came_true = sum(each.came_true is True for each in decided)
    return [*lines, f"{came_true} of {formatting.quantity(len(decided), 'forecast')} came true"] if own else []
