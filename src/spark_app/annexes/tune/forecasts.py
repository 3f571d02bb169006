"""Keeps the forecasts of proposals, and says after a run with the setting whether each came true."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from spark_app.annexes.tune.history import FIGURES, Proposal
from spark_app.eventlog.comparison.baselines import folder_name
from spark_app.eventlog.comparison.profile import RunProfile
from spark_app.local_files import write_atomic

MAX_FORECASTS: Final = 200
"""Forecasts of an application that are kept: the newest."""


class SettingForecast(Struct):
    """A forecast of a figure of the next run with a setting.

    Attributes:
        made_at: Milliseconds since the epoch.
        setting, value: What the run must have.
        figure, low, high: What it is about, and its bounds.
        run, measured: The run that decided, and its figure; None while none has.
    """

    made_at: int
    setting: str
    value: str
    figure: str
    low: float
    high: float
    run: str | None = None
    measured: float | None = None

    @property
    def came_true(self) -> bool | None:
        """Whether the figure was within the bounds; None while no run has decided."""
        return None if self.measured is None else self.low <= self.measured <= self.high


def add(folder: Path, application: str, proposals: Sequence[Proposal], *, made_at: int) -> None:
    """Keeps the forecasts of some proposals; one that is open for the same setting is replaced.

    Raises:
        OSError: They cannot be written.
    """
    new = [
        SettingForecast(made_at, each.setting, each.value, each.figure, each.forecast.low, each.forecast.high)
        for each in proposals
    ]
    names = {each.setting for each in new}
    old = [each for each in load(folder, application) if each.run is not None or each.setting not in names]
    _save(folder, application, [*old, *new])


def load(folder: Path, application: str) -> list[SettingForecast]:
    """The forecasts of an application, oldest first; none where the file is missing or damaged."""
    with suppress(OSError, ValueError):
        return msgspec.json.decode(_file(folder, application).read_bytes(), type=list[SettingForecast])
    return []


def judge(folder: Path, profile: RunProfile) -> tuple[list[SettingForecast], list[SettingForecast]]:
    """Judges open forecasts by a run that has their settings and started later.

    Returns:
        Those that this run decides, now or before, and all that any run has decided.

    Raises:
        OSError: They cannot be written.
    """
    known, has_changed = load(folder, profile.application), False
    for each in known:
        is_in_force = profile.settings.get(each.setting) == each.value and profile.started > each.made_at
        measured = FIGURES[each.figure](profile) if each.figure in FIGURES else None
        if each.run is None and is_in_force and measured is not None:
            each.run, each.measured, has_changed = profile.id, measured, True
    if has_changed:
        _save(folder, profile.application, known)
    decided = [each for each in known if each.run is not None]
    return [each for each in decided if each.run == profile.id], decided


def _save(folder: Path, application: str, forecasts: Sequence[SettingForecast]) -> None:
    write_atomic(_file(folder, application), msgspec.json.encode(list(forecasts)[-MAX_FORECASTS:]) + b"\n")


def _file(folder: Path, application: str) -> Path:
    return folder / f"{folder_name(application)}.json"
