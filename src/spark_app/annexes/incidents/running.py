"""Plants an incident, notes when each of its signs was first seen, and undoes it, whatever happens before that."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from spark_app.annexes.incidents.docker import Docker
from spark_app.annexes.incidents.incident import Incident
from spark_app.annexes.incidents.planting import FOLDER, MASTER, Planting
from spark_app.doctor.backends import get
from spark_app.errors import MachineError
from spark_app.vocabulary.spark_names import RULE

TRACE_SECONDS: Final = 20
LATE: Final = 2
"""In multiples of the time within which all is to be seen: until then what comes late is noted."""
QUIET_SECONDS: Final = 180
"""How long a sign of an earlier incident may take to go, such as an alert that has been resolved."""
HEALTHY_SECONDS: Final = 90
"""How long services and scrapes may take after the end of an incident that took one away."""
START: Final = "start it with scripts/start-full-stack.sh"
BAD_STATES: Final = ("unhealthy", "starting", "restarting", "paused", "dead", "created", "exited (1")


@dataclass(frozen=True)
class Outcome:
    """What was seen of an incident.

    Attributes:
        incident: Its name.
        planting: The name of the planting.
        seen: The seconds after which each sign was seen, be it late; None of one that was not.
        within: The seconds within which all were to be seen.
        touched: The containers that it changed.
        first: The first finding about its application, if one was expected; None if its trace has none.
        error: Why it could not be planted or undone; of one of which a sign is missing, what its programs said last.
    """

    incident: str
    planting: str
    seen: Mapping[str, float | None]
    within: float
    touched: tuple[str, ...]
    first: str | None = None
    error: str = ""

    @property
    def missing(self) -> tuple[str, ...]:
        """The signs that were not seen in time."""
        return tuple(sign for sign, seconds in self.seen.items() if seconds is None or seconds > self.within)

    @property
    def is_complete(self) -> bool:
        """Whether all was seen in time, and undone."""
        return not self.missing and not self.error


def signs(incident: Incident) -> dict[str, str]:
    """The query of each sign of an incident."""
    queries = {"alert": incident.alert.query, "panel": incident.panel.query}
    return queries | ({"cause": incident.cause.query} if incident.cause else {})


@dataclass
class Watch:
    """Looks for the signs of an incident.

    Attributes:
        incident: The incident.
        planting: Its programs.
        sighted: Is called with each sign that is seen, and the seconds after the planting.
        waiting: Is called between two looks, with the seconds that are left.
        jaeger_url: Where the trace of its application is; None if there is no Jaeger.
        seen: The seconds of each sign; None as long as it was not seen.
    """

    incident: Incident
    planting: Planting
    sighted: Callable[[str, float], None]
    waiting: Callable[[float], None]
    jaeger_url: str | None = None
    seen: dict[str, float | None] = field(init=False)

    def __post_init__(self) -> None:
        self.seen = dict.fromkeys(signs(self.incident))

    def look(self, began: float) -> None:
        """Looks until all signs are seen; for twice the time that is promised, since a busy machine is only late."""
        clock, within = self.planting.clock, self.incident.seconds
        with suppress(MachineError):  # what was not seen stays None
            left = LATE * within - (clock.now() - began)
            clock.wait_until(lambda: self._are_all_seen(clock.now() - began), "sign", seconds=left)

    def _are_all_seen(self, seconds: float) -> bool:
        queries = signs(self.incident)
        for sign in [sign for sign, at in self.seen.items() if at is None]:
            if self.planting.has_value(queries[sign]):
                self.seen[sign] = seconds
                self.sighted(sign, seconds)
        self.waiting(self.incident.seconds - seconds)
        return None not in self.seen.values()


def run(watch: Watch, project: str) -> Outcome:
    """Plants an incident into a healthy stack and watches it; undoes it in any case."""
    incident, planting, error = watch.incident, watch.planting, ""
    try:
        require_healthy(planting, project)
        require_quiet(incident, planting)
        planting.begin()
        incident.prepare(planting)
        began = planting.clock.now()
        incident.plant(planting)
        watch.look(began)
        error = planting.last_line() if None in watch.seen.values() else ""
    except MachineError as failure:
        error = str(failure)
    finally:
        undone = undo(incident, planting)
    first = first_finding(watch) if incident.cause and incident.cause.is_finding else None
    return Outcome(
        planting.incident, planting.name, watch.seen, incident.seconds, incident.touches, first, error or undone
    )


def first_finding(watch: Watch) -> str | None:
    """The rule of the first finding on the span of the application, which Jaeger has soon after its end."""
    found: list[str] = []

    def is_there() -> bool:
        found.extend(findings(watch.jaeger_url or "", watch.planting.name))
        return bool(found)

    if watch.jaeger_url is not None:
        with suppress(MachineError):
            watch.planting.clock.wait_until(is_there, "trace", seconds=TRACE_SECONDS)
    return found[0] if found else None


def findings(jaeger_url: str, service: str) -> list[str]:
    """The rules of the findings about an application, the most important first; none before its end.

    Raises:
        MachineError: Jaeger does not answer.
    """
    parameters = {"service": service, "lookback": "1h", "limit": "20"}
    traces = get(f"{jaeger_url}/api/traces", "data", parameters=parameters) or []
    spans = [span for trace in traces for span in trace["spans"] if span["operationName"].startswith("application ")]
    fields = [field for span in spans for log in span["logs"] or [] for field in log["fields"]]
    return [field["value"] for field in fields if field["key"] == RULE.name]


def require_quiet(incident: Incident, planting: Planting) -> None:
    """Waits until no sign of the incident is there any more, of an earlier one or of a real failure.

    Raises:
        MachineError: One stays.
    """
    for sign, query in signs(incident).items():

        def is_quiet(query: str = query) -> bool:
            return not planting.has_value(query)

        planting.clock.wait_until(is_quiet, f"end of the {sign} of before the planting", seconds=QUIET_SECONDS)


def undo(incident: Incident, planting: Planting) -> str:
    """Ends the programs of an incident and takes away what it made; each step is tried, whatever failed before.

    Returns:
        What failed; empty if nothing did.
    """
    failures = []
    for step in (incident.undo, Planting.end_programs):
        try:
            step(planting)
        except MachineError as error:
            failures.append(str(error))
    if not failures:  # else the next run tries again
        planting.forget()
    return "; ".join(failures)


def left_behind(docker: Docker) -> dict[str, str]:
    """The incidents that killed runs have left, and the names of their plantings."""
    script = 'cd "$1" 2>/dev/null && for each in *; do echo "$each $(cat "$each/name")"; done || true'
    lines = [line.split() for line in docker.shell(MASTER, script, FOLDER).splitlines()]
    return {words[0]: words[1] for words in lines if len(words) == 2}


def require_stack(docker: Docker, project: str) -> None:
    """Requires that the container of the master runs, in which programs are planted.

    Raises:
        MachineError: It does not.
    """
    if not docker.statuses(project).get(MASTER, "").startswith("running"):
        raise MachineError(f"the stack does not run on this machine (no container {MASTER} of {project}): {START}")


def require_healthy(planting: Planting, project: str) -> None:
    """Waits until each service of the stack is healthy, and Prometheus reaches all its targets.

    Raises:
        MachineError: One is not, or not reached; names it.
    """
    with suppress(MachineError):
        planting.clock.wait_until(lambda: not unhealthy(planting, project), "health", seconds=HEALTHY_SECONDS)
    if names := unhealthy(planting, project):
        raise MachineError(
            f"the stack is unhealthy, and nothing was planted: {', '.join(names)}; see `spark-app doctor`, or {START}"
        )


def unhealthy(planting: Planting, project: str) -> list[str]:
    """The containers of the stack that are not healthy, and what Prometheus does not reach."""
    states = planting.docker.statuses(project)
    bad = sorted(name for name, state in states.items() if any(word in state.lower() for word in BAD_STATES))
    try:
        return bad + sorted({dict(labels)["instance"] for labels in planting.prometheus.values("up == 0")})
    except MachineError as error:
        return [*bad, str(error)]
