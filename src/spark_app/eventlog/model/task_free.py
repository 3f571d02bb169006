"""The time of an application in which no task ran, by what the driver did meanwhile, summed while events are read."""

from typing import Final, Literal, NamedTuple

Kind = Literal["startup", "planning", "waiting", "between", "ending"]
KINDS: Final[tuple[Kind, ...]] = ("startup", "planning", "waiting", "between", "ending")


class Stretch(NamedTuple):
    """A time without a running task; milliseconds since the epoch."""

    kind: Kind
    started: int
    ended: int

    @property
    def length_ms(self) -> int:
        """How long it took, in milliseconds."""
        return self.ended - self.started


class TaskFreeTime:
    """The time in which no task ran.

    The kinds: `startup` is before the first query or job; `planning` and `waiting` are within queries and jobs, with
    and without a registered executor; `between` is between queries and jobs; `ending` is after the last one. Spark logs
    the start of a query after its analysis, so that analysis before the first query counts as `startup`.

    Attributes:
        sums: Milliseconds by kind.
        longest: The longest stretch of each kind.
    """

    def __init__(self) -> None:
        """Starts before the first query."""
        self.sums: dict[Kind, int] = dict.fromkeys(KINDS, 0)
        self.longest: dict[Kind, Stretch] = {}
        self._open: Stretch | None = None
        self._has_worked = False

    @property
    def total_ms(self) -> int:
        """The time without a task, of all kinds."""
        return sum(self.sums.values())

    def spend(self, started: int, ended: int, *, tasks: int, cores: int, is_at_work: bool) -> None:
        """Adds a stretch of time in which nothing changed.

        Args:
            started: Its start; milliseconds since the epoch.
            ended: Its end.
            tasks: The running tasks.
            cores: The cores of the registered executors.
            is_at_work: Whether a query or a job ran.
        """
        if tasks or is_at_work:
            self._resume()
        if tasks:
            self._open = None
            return
        within: Kind = "planning" if cores else "waiting"
        outside: Kind = "ending" if self._has_worked else "startup"
        self._extend(within if is_at_work else outside, started, ended)

    def _resume(self) -> None:
        """The driver works again: what seemed to be the end was between two queries or jobs."""
        self._has_worked = True
        if self.sums["ending"]:
            self.sums["between"] += self.sums["ending"]
            self.sums["ending"] = 0
            self._keep(self.longest.pop("ending")._replace(kind="between"))
            self._open = None

    def _extend(self, kind: Kind, started: int, ended: int) -> None:
        """Adds to the stretch that still lasts, or begins another."""
        self.sums[kind] += ended - started
        is_same = self._open is not None and self._open.kind == kind
        self._open = Stretch(kind, self._open.started if self._open and is_same else started, ended)
        self._keep(self._open)

    def _keep(self, stretch: Stretch) -> None:
        known = self.longest.get(stretch.kind)
        if known is None or stretch.length_ms > known.length_ms:
            self.longest[stretch.kind] = stretch
