"""`spark-app incident`: plants a failure into the running stack, and shows where it is seen."""

import time
from typing import TYPE_CHECKING, Annotated, Any, Final
from urllib.parse import quote

import typer

from spark_app.commands import options
from spark_app.errors import MachineError, UsageError

if TYPE_CHECKING:
    from spark_app.annexes.incidents.docker import Docker
    from spark_app.annexes.incidents.incident import Incident
    from spark_app.annexes.incidents.planting import Clock, Planting
    from spark_app.annexes.incidents.running import Outcome
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import Settings

NOT_SEEN: Final = "not seen"

Name = Annotated[
    str | None, typer.Argument(metavar="[NAME]", help="The incident to plant; without a name all are listed.")
]
All = Annotated[bool, typer.Option("--all", metavar="", help="Plant all, one after the other.")]


def incident(
    name: Name = None, *, all_: All = False, json: options.Json = False, config: options.Config = None
) -> None:
    """Plant a failure into the running stack, see its alert, panel, finding and trace, and undo it."""
    from spark_app.annexes.incidents.catalogue import incidents, named
    from spark_app.annexes.incidents.docker import Docker
    from spark_app.annexes.incidents.planting import Clock
    from spark_app.commands.terminal import Terminal
    from spark_app.settings import load_settings

    if name is not None and all_:
        raise UsageError(f"give either --all or the name of one incident, not both: {name}")
    terminal = Terminal()
    if name is None and not all_:
        listing(terminal, json=json)
        return
    chosen = incidents() if name is None else {name: named(name)}
    outcomes = run_all(Session(terminal, load_settings(config), Docker(), Clock()), chosen)
    if not json:
        table(terminal, outcomes)
    require_complete(outcomes)
    if json:
        terminal.answer(incidents=documents(outcomes))


def listing(terminal: "Terminal", *, json: bool) -> None:
    """Prints a row per incident."""
    from spark_app.annexes.incidents.catalogue import incidents

    known = incidents()
    if json:
        terminal.answer(
            incidents=[{"name": name, "does": each.does, "alert": each.alert.name} for name, each in known.items()]
        )
        return
    rows = [(name, each.alert.name, each.does) for name, each in known.items()]
    terminal.table(("incident", "alert", "what it does"), rows, is_prose=True)


class Session:
    """The running stack, and the terminal that says what is planted into it."""

    def __init__(self, terminal: "Terminal", settings: "Settings", docker: "Docker", clock: "Clock") -> None:
        """Drives the stack of the settings by a command `docker`.

        Raises:
            MachineError: The settings leave out Prometheus or the master.
        """
        from spark_app.doctor.backends import Prometheus
        from spark_app.doctor.containers import PROJECT
        from spark_app.settings import compose_variables

        backends = settings.backends
        if backends.prometheus is None or backends.spark_master is None:
            raise MachineError("backends.prometheus or backends.spark_master is null in the configuration")
        self.terminal, self.backends, self.docker, self.clock = terminal, backends, docker, clock
        self.config = settings.config
        self.prometheus, self.master_url = Prometheus(str(backends.prometheus)), str(backends.spark_master)
        self.project = compose_variables(settings.config.parent).get("COMPOSE_PROJECT_NAME") or PROJECT

    def planting(self, incident: str, name: str | None = None) -> "Planting":
        """A planting of an incident, whose name has the time of day; or that of an earlier run."""
        from spark_app.annexes.incidents.planting import Planting

        planted = name or f"incident_{incident}_{time.strftime('%H%M%S')}"
        return Planting(incident, planted, self.docker, self.prometheus, self.master_url, self.clock)

    def show(self, planting: "Planting", incident: "Incident") -> None:
        """Says what will be seen, and where."""
        from spark_app.annexes.incidents.incident import BY_ALERT

        backends = self.backends
        self.terminal.note(f"{planting.incident}: {incident.does}")
        self.terminal.note(f"  alert {incident.alert.name}, {backends.prometheus}/alerts?search={incident.alert.name}")
        panel = incident.panel
        self.terminal.note(f"  panel {panel.title!r}, {backends.grafana}/d/{panel.dashboard}")
        named_by = f"finding {incident.cause.name}" if incident.cause and incident.cause.is_finding else ""
        self.terminal.note(f"  cause: {named_by or (incident.cause.name if incident.cause else BY_ALERT)}")
        if incident.service:
            service = quote(planting.filled(incident.service))
            self.terminal.note(f"  trace: {backends.jaeger}/search?service={service}")
        self.terminal.note(f"  all of it within {incident.seconds:.0f} s")

    def seen(self, sign: str, seconds: float) -> None:
        """Says that a sign was seen."""
        self.terminal.note(f"  {sign} seen after {seconds:.0f} s")

    def count_down(self, seconds: float) -> None:
        """Shows the seconds that are left, where lines can be drawn anew."""
        from rich.text import Text

        if self.terminal.redraws:
            self.terminal.redraw([Text(f"  {max(seconds, 0):.0f} s left")])


def run_all(session: Session, chosen: "dict[str, Incident]") -> "list[Outcome]":
    """Plants incidents one after the other; before, undoes what killed runs have left.

    Raises:
        MachineError: The stack does not run, or is unhealthy.
    """
    from spark_app.annexes.incidents import running
    from spark_app.local_files import try_lock_folder

    with session.terminal, try_lock_folder(session.config) as is_free:
        if not is_free:
            raise MachineError("another spark-app incident runs on this stack: wait for its end")
        running.require_stack(session.docker, session.project)
        undo_leftovers(session)
        running.require_healthy(session.planting(next(iter(chosen))), session.project)
        return [plant(session, name, incident) for name, incident in chosen.items()]


def undo_leftovers(session: Session) -> None:
    """Undoes what killed runs have left, and says so."""
    from spark_app.annexes.incidents import running
    from spark_app.annexes.incidents.catalogue import named

    for name, planted in running.left_behind(session.docker).items():
        error = running.undo(named(name), session.planting(name, planted))
        session.terminal.note(f"{planted}, which an earlier run had left: {error or 'undone'}")


def plant(session: Session, name: str, incident: "Incident") -> "Outcome":
    """Plants one incident, and says when each sign was seen."""
    from spark_app.annexes.incidents import running

    planting, jaeger = session.planting(name), session.backends.jaeger
    session.show(planting, incident)
    signals = (session.seen, session.count_down, None if jaeger is None else str(jaeger))
    try:
        return running.run(running.Watch(incident, planting, *signals), session.project)
    finally:  # also after Ctrl-C
        session.terminal.note(f"  over, {incident.ends}; touched: {', '.join(incident.touches)}")


def table(terminal: "Terminal", outcomes: "list[Outcome]") -> None:
    """Prints a row per incident: after how many seconds each sign was seen."""
    from spark_app.annexes.incidents.catalogue import named
    from spark_app.annexes.incidents.incident import BY_ALERT

    rows = []
    for outcome in outcomes:
        incident = named(outcome.incident)
        cells = {sign: elapsed(seconds, outcome.within) for sign, seconds in outcome.seen.items()}
        cause = f"{incident.cause.name} {cells['cause']}" if incident.cause else BY_ALERT
        panel = f"{incident.panel.title} {cells['panel']}"
        rows.append((outcome.incident, f"{incident.alert.name} {cells['alert']}", panel, cause, outcome.first or "-"))
    terminal.table(("incident", "alert", "panel", "cause", "first finding"), rows)


def elapsed(seconds: float | None, within: float) -> str:
    """After how long a sign was seen."""
    if seconds is None:
        return NOT_SEEN
    return f"{seconds:.0f} s" + ("" if seconds <= within else ", late")


def documents(outcomes: "list[Outcome]") -> list[dict[str, Any]]:
    """What the JSON document says of each incident; seconds are null for what was not seen."""
    from spark_app.annexes.incidents.catalogue import named

    return [
        {
            "name": outcome.incident,
            "planting": outcome.planting,
            "alert": named(outcome.incident).alert.name,
            "cause": cause.name if (cause := named(outcome.incident).cause) else None,
            "first_finding": outcome.first,
            "seconds": outcome.seen,
            "within": outcome.within,
            "touched": outcome.touched,
            "error": outcome.error or None,
        }
        for outcome in outcomes
    ]


def require_complete(outcomes: "list[Outcome]") -> None:
    """Requires that all of each incident was seen.

    Raises:
        MachineError: Something was not; its document has all incidents.
    """
    texts = [
        f"{outcome.incident}: "
        + "; ".join(
            [f"{', '.join(outcome.missing)} not seen within {outcome.within:.0f} s"] * bool(outcome.missing)
            + [outcome.error] * bool(outcome.error)
        )
        for outcome in outcomes
        if not outcome.is_complete
    ]
    if texts:
        error = MachineError("; ".join(texts))
        error.document = {"incidents": documents(outcomes)}
        raise error
