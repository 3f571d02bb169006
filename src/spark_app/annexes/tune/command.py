"""`spark-app tune -- COMMAND...`: tries settings of Spark on a program, and says which help."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from spark_app import formatting
from spark_app.annexes.tune import proposing
from spark_app.commands import cells, options
from spark_app.errors import EXIT_INTERRUPTED, InputError, MachineError, UsageError

if TYPE_CHECKING:
    from spark_app.annexes.tune.judgement import Effect
    from spark_app.annexes.tune.runs import EndedRun
    from spark_app.annexes.tune.search import Search, Trial
    from spark_app.annexes.tune.tuning import Tuning
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import Settings

RIGHT: Final = ("predicted", "time", "CPU", "cost")
LAST_LINES: Final = 20
"""Lines of what a failed program printed that are shown."""

Command = Annotated[list[str] | None, typer.Argument(metavar="COMMAND", help="The program and its arguments.")]
Runs = Annotated[
    int, typer.Option("--runs", metavar="N", min=3, max=50, help="Pairs of runs, with and without, for each setting.")
]
Budget = Annotated[
    float, typer.Option("--budget", metavar="TIME", parser=options.span, help="Time for all runs: 30m, 2h.")
]
Rerunnable = Annotated[
    bool, typer.Option("--rerunnable", metavar="", help="The program may run again, whatever its log says it wrote.")
]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Write what helped, for spark-submit --properties-file.")
]
FromHistory = Annotated[
    str | None,
    typer.Option("--from-history", metavar="NAME", help="Run nothing: propose from the last runs of an application."),
]


def tune(
    *,
    command: Command = None,
    runs: Runs = 5,
    budget: Budget = "30m",  # type: ignore[assignment] # its parser makes a number of it
    rerunnable: Rerunnable = False,
    output: Output = None,
    from_history: FromHistory = None,
    json: options.Json = False,
    config: options.Config = None,
) -> None:
    """Run a program again and again with other settings of Spark, and keep those that help beyond the noise."""
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import load_settings

    settings, terminal = load_settings(config), Terminal()
    if bool(command) == bool(from_history):
        raise UsageError("name either a command to run, after --, or an application with --from-history")
    if from_history:
        proposing.propose(terminal, settings, from_history, output, json=json)
    else:
        tuning = _tuning(terminal, settings, command or [], config)
        _tune(terminal, settings, tuning, output, runs=runs, budget=budget, rerunnable=rerunnable, json=json)


def _tuning(terminal: "Terminal", settings: "Settings", command: list[str], config: Path | None) -> "Tuning":
    """A tuning of a command, whose runs leave what they print in a folder of this time."""
    from spark_app.annexes.tune.runs import Runner
    from spark_app.annexes.tune.tuning import Tuning
    from spark_app.eventlog.diagnoses.thresholds import load_thresholds
    from spark_app.observe.retention import TUNINGS

    folder = settings.reports_path / TUNINGS / time.strftime("%Y%m%d-%H%M%S")
    return Tuning(Runner(command, folder.absolute()), load_thresholds(config), settings.prices, terminal.note)


def _tune(
    terminal: "Terminal",
    settings: "Settings",
    tuning: "Tuning",
    output: Path | None,
    *,
    runs: int,
    budget: float,
    rerunnable: bool,
    json: bool,
) -> None:
    """Runs a program with other settings, and shows which help."""
    began = time.monotonic()
    with terminal:
        first = tuning.begin(is_rerunnable=rerunnable)
        _require_success(terminal, first)
        if tuning.steps:
            _end_with_memory(terminal, tuning, output, json=json)
        tuning.require_rerunnable(first, is_told=rerunnable)
        search = tuning.look(first, pairs=runs, budget=budget - (time.monotonic() - began))
        _search(search)
    document = _document(tuning, search, settings)
    document |= _written(terminal, tuning, search, output)
    if json:
        terminal.document(document)
    else:
        _show(terminal, tuning, search, document)
    raise typer.Exit(document["exit_code"])


def _search(search: "Search") -> None:
    """Searches; an interrupt ends the search, and what is known stays."""
    try:
        search.go()
    except KeyboardInterrupt:
        search.stopped = "interrupted"


def _require_success(terminal: "Terminal", run: "EndedRun") -> None:
    """Checks that the program succeeded as it is, in one application.

    Raises:
        typer.Exit: It failed or was interrupted: its exit code is that of this program.
        InputError: It has left no event log.
    """
    if run.code or run.is_interrupted:
        for line in run.printed.splitlines()[-LAST_LINES:]:
            terminal.note(line)
        what = "was interrupted" if run.is_interrupted else "failed"
        terminal.note(f"error: the program {what} with exit code {run.code}: {cells.shown_path(run.log)}")
        raise typer.Exit(run.code or EXIT_INTERRUPTED)
    if run.reading is None:
        raise InputError(
            f"no event log of a Spark application was found: {cells.shown_path(run.log)} has what the program printed"
        )


def _end_with_memory(terminal: "Terminal", tuning: "Tuning", output: Path | None, *, json: bool) -> None:
    """Says which memory the program needed to succeed, and ends: what is faster is another question.

    Raises:
        typer.Exit: Always.
        MachineError: The file cannot be written.
    """
    from spark_app.annexes.tune.properties_file import Property, write

    first, steps = tuning.first, tuning.steps
    assert first is not None
    properties = [Property(name, value, each.why) for each in steps for name, value in each.settings.items()]
    last = {each.name: each for each in properties}
    try:
        if output is not None:
            head = ["Written by `spark-app tune`: the program died with less memory."]
            write(output, head, list(last.values()), first.launch)
    except OSError as error:
        raise MachineError(f"cannot write {output}: {error.strerror}") from error
    found = [{"side": each.side, "settings": dict(each.settings), "why": each.why} for each in steps]
    if json:
        shown = {"command": "tune", "application": first.profile.application, "runs": tuning.runner.count}
        terminal.answer(**shown, memory=found, output=str(output) if output else None)
    else:
        terminal.line("the program died for lack of memory, and succeeds with:", style="bold")
        rows = [(each.side, f"{name}={value}", each.why) for each in steps for name, value in each.settings.items()]
        terminal.table(("side", "setting", "why"), rows)
        terminal.line("tune once more with these settings to make it faster")
    raise typer.Exit


def _document(tuning: "Tuning", search: "Search", settings: "Settings") -> dict[str, Any]:
    """What was found, for scripts."""
    first = tuning.first
    assert first is not None
    is_priced = settings.prices.has_any
    return {
        "command": "tune",
        "exit_code": EXIT_INTERRUPTED if search.stopped == "interrupted" else 0,
        "error": None,
        "application": first.profile.application,
        "runs": tuning.runner.count,
        "stopped": search.stopped or None,
        "cost_unit": settings.prices.currency if is_priced else "core-hours",
        "baseline": {"duration_ms": first.profile.duration_ms},
        "settings": [_trial(trial, first.profile.duration_ms) for trial in search.trials],
        "tuned": _trial(search.together, first.profile.duration_ms) if search.together else None,
        "folder": str(tuning.runner.folder),
    }


def _trial(trial: "Trial", duration_ms: float) -> dict[str, Any]:
    predicted = [each.predicted_ms for each in trial.candidates if each.predicted_ms is not None]
    changes = {"time": trial.time, "cpu": trial.cpu, "cost": trial.cost}
    return {
        "settings": trial.settings,
        "because": [{"sign": each.sign, "why": each.why, "before": each.now} for each in trial.candidates],
        "predicted": -max(predicted) / duration_ms if predicted and duration_ms else None,
        "verdict": trial.verdict,
        "problem": trial.problem,
        **{name: asdict(change) if change else None for name, change in changes.items()},
    }


def _written(terminal: "Terminal", tuning: "Tuning", search: "Search", output: Path | None) -> dict[str, Any]:
    """Writes the profiles to compare, and the file of what helped; what cannot be written is noted."""
    from spark_app.annexes.tune import properties_file

    kept = search.together if search.together and search.together.verdict == "helps" else None
    found: dict[str, Any] = {"profiles": [], "output": None}
    try:
        found["profiles"] = [str(file) for file in tuning.kept_profiles(search.together)]
        if output is not None and kept is not None:
            launch = tuning.first.launch if tuning.first else None
            properties_file.write(output, _head(tuning, kept), _properties(kept, search), launch)
            found["output"] = str(output)
    except OSError as error:
        terminal.note(f"error: cannot write {error.filename}: {error.strerror}")
        found["exit_code"] = 2
    return found


def _head(tuning: "Tuning", kept: "Trial") -> list[str]:
    command = " ".join(tuning.runner.command)
    return [
        "Written by `spark-app tune`, for spark-submit --properties-file.",
        f"Together: time {change_text(kept.time)}, CPU {change_text(kept.cpu)}, cost {change_text(kept.cost)}.",
        f"Measured with: {cells.literal(_masked(command))}",
    ]


def _masked(command: str) -> str:
    from spark_app.redaction import redacted

    return redacted(command)


def _properties(kept: "Trial", search: "Search") -> list[Any]:
    from spark_app.annexes.tune.properties_file import Property

    alone = {trial.name: trial for trial in search.trials}
    return [
        Property(
            each.setting,
            each.value,
            f"{each.sign}: {each.why}.\nAlone: time {change_text(alone[f'{each.setting}={each.value}'].time)}.",
        )
        for each in kept.candidates
    ]


def change_text(change: "Effect | None") -> str:
    """A change with its interval: `-23 % (-30 to -15 %)`; what one pair alone says has no interval."""
    if change is None:
        return formatting.UNKNOWN
    mean, low, high = (f"{100 * each:+.0f}" for each in (change.mean, change.low, min(change.high, 9.99)))
    return f"{mean} %" if change.pairs == 1 else f"{mean} % ({low} to {high} %)"


def _show(terminal: "Terminal", tuning: "Tuning", search: "Search", document: dict[str, Any]) -> None:
    """Prints the table, what helps, and what to do with it."""
    terminal.line()
    name, runs = cells.literal(document["application"]), formatting.quantity(tuning.runner.count, "run")
    terminal.line(f"{name}: {formatting.duration(document['baseline']['duration_ms'])}, {runs}", style="bold")
    if not search.trials:
        terminal.line("nothing to try: its findings and its tasks speak for no other setting")
        return
    rows = [_row(trial, document["baseline"]["duration_ms"]) for trial in search.trials]
    together = search.together
    if together is not None:
        rows.append(_row(together, document["baseline"]["duration_ms"], is_last=True))
    terminal.table(list(rows[0]), [list(row.values()) for row in rows], right=RIGHT)
    if search.stopped:
        terminal.line(f"ended early: {search.stopped}")
    for line in _next(tuning, search, document):
        terminal.line(line)


def _row(trial: "Trial", duration_ms: float, *, is_last: bool = False) -> dict[str, str]:
    predicted = _trial(trial, duration_ms)["predicted"]
    return {
        "setting": f"together: {trial.name}" if is_last else trial.name,
        "why": "what helped, in new runs" if is_last else "; ".join(each.why for each in trial.candidates),
        "predicted": formatting.UNKNOWN if predicted is None else f"up to {100 * predicted:.0f} %",
        "time": change_text(trial.time),
        "CPU": change_text(trial.cpu),
        "cost": change_text(trial.cost),
        "verdict": trial.problem or trial.verdict,
    }


def _next(tuning: "Tuning", search: "Search", document: dict[str, Any]) -> list[str]:
    """What a person may do now."""
    from spark_app.annexes.tune.properties_file import overridden

    together = search.together
    if together is None or together.verdict != "helps":
        is_known = any(trial.verdict not in ("too few runs", "not measured") for trial in search.trials)
        return ["nothing helped beyond the noise: leave the settings as they are"] if is_known else []
    lines = [f"helps: {name} {value}" for name, value in together.settings.items()]
    if document["output"]:
        lines.append(f"spark-submit --properties-file {cells.shown_path(document['output'])} ...")
    launch = tuning.first.launch if tuning.first else None
    more = overridden(list(together.settings), launch)
    lines += [f"remove --conf {name} from the command: it counts more than the file" for name in more]
    if len(document["profiles"]) > 1:
        lines.append("spark-app compare " + " ".join(map(cells.shown_path, document["profiles"])))
    return lines
