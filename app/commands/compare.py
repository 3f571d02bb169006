"""`spark-app compare RUN [OTHER]`: why it took longer than before, in ranked causes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from app import amounts
from app.commands import cells, options
from app.errors import InputError

if TYPE_CHECKING:
    from app.commands.terminal import Terminal
    from app.eventlog.comparison.compare import Comparison
    from app.eventlog.comparison.record import Summary
    from app.settings import Settings

FORMS = "an event log, a run of ours (its id or folder), or a record in reports/records/"


def compare(
    *,
    run: Annotated[str, typer.Argument(metavar="RUN", help=f"The run to explain: {FORMS}.")],
    other: Annotated[
        str | None,
        typer.Argument(
            metavar="OTHER", help="The run to compare with. By default the last good runs of the same application."
        ),
    ] = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Tell why a run took longer or shorter than another, or than the last good ones: where the time went."""
    from app.commands.terminal import Terminal
    from app.eventlog.comparison import compare as comparing
    from app.settings import load_settings

    settings = load_settings(config)
    terminal = Terminal()
    terminal.wait("reading event logs")
    with terminal:
        now, log = _found(run, settings)
        earlier = [_found(other, settings)[0]] if other else _earlier(now, log, settings)
        compared = comparing.compare(earlier, now)
    if json:
        terminal.answer(difference_ms=compared.difference_ms, comparison=compared)
    else:
        tell(terminal, compared)


def tell(terminal: "Terminal", compared: "Comparison") -> None:
    """Prints how long both took, and each cause with its numbers; what to do, where it made the run slower."""
    from app.eventlog.comparison.compare import MAX_ID, UNEXPLAINED
    from app.eventlog.comparison.evidence import seconds
    from app.eventlog.diagnoses.words import cut

    names = (compared.application, compared.now, compared.before)
    name, now_id, before_id = (cells.literal(cut(name, MAX_ID)) for name in names)
    now, before, noise = (amounts.duration(ms) for ms in (compared.now_ms, compared.before_ms, compared.noise_ms))
    terminal.line(f"{name}: now {now}, before {before}: {seconds(compared.difference_ms)}", style="bold")
    terminal.line(", ".join(filter(None, (f"{now_id} compared with {before_id}", compared.choice))))
    for remark in compared.remarks:
        terminal.line(cells.literal(remark))
    if compared.is_noise:
        terminal.line(f"no difference to speak of: less than {noise} is noise")
        return
    rows: list[tuple[str, str]] = []
    for cause in compared.causes:
        rows.append((seconds(cause.ms), cells.literal(cause.text)))
        rows += [("", f"-> {cause.advice}")] if cause.advice else []
    rows.append((seconds(compared.unexplained_ms), UNEXPLAINED))
    terminal.line()
    terminal.table(("time", "went to"), rows, right=("time",), is_prose=True)


def _found(text: str, settings: "Settings") -> tuple["Summary", Path | None]:
    """The record of what is named, and its event log where that was read."""
    from app.eventlog import reading
    from app.eventlog.comparison import history, summary
    from app.report import sources

    if Path(text).suffix == ".json" and Path(text).is_file():
        return history.load(Path(text)), None
    read = reading.read(sources.source(text, settings).log)
    return summary.of(read), read.log


def _earlier(now: "Summary", log: Path | None, settings: "Settings") -> list["Summary"]:
    """The last good runs of the same name: those on record, else those whose logs lie beside this one.

    Raises:
        InputError: There are none.
    """
    from app.eventlog.comparison import history

    found = history.last_good(settings.records_path, now)
    if not found and log is not None:
        found = history.good_beside(log, now)
    if not found:
        name = now.application
        raise InputError(f"no earlier good run of {name!r} is known: name one, as in `spark-app compare RUN OTHER`")
    return found
