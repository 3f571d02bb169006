"""What every pipeline of a project is: a node of the graph of what its pipelines read and write."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from typing import Any, ClassVar

from pydantic import BaseModel
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_app.declarations.trials import EmptyInputs, Trial
from spark_app.engine.code_location import CodeLocation, nearest
from spark_app.engine.model import Model
from spark_app.warehouse.origin import DeclaredOrigin
from spark_app.warehouse.tables import Table


@dataclass(eq=False, kw_only=True)
class Pipeline:
    """A pipeline; each kind overrides `run`, or `query` if it is one of `streaming`.

    Attributes:
        name: What its work is called: `etl.daily_orders`.
        location: Where it is declared.
        config: What an operator tunes.
        sources: The sources whose raw rows it reads.
        origins: Where the rows of those come from that say so.
        topics: The topics that it reads.
        reads: The tables that it reads and does not write.
        models: The models that it uses.
        writes: The tables that it writes.
        sends: The topics that it writes.
        trains: The model that it trains.
        starts_first: Whether its query starts before the others, each of which would delay its first rows.
        functions: The functions whose parameters are tables: their names, where they are declared, and the tables.
    """

    kind: ClassVar[str] = "own"
    unknown: ClassVar[str] = "no pipeline writes"

    name: str
    location: CodeLocation
    config: type[BaseModel]
    sources: Sequence[str] = ()
    origins: Mapping[str, DeclaredOrigin] = field(default_factory=dict)
    topics: Sequence[str] = ()
    reads: Sequence[str] = ()
    models: Sequence[str] = ()
    writes: Sequence[Table] = ()
    sends: Sequence[str] = ()
    trains: Model | None = None
    starts_first: bool = False
    functions: Sequence[tuple[str, CodeLocation, Sequence[str]]] = ()

    def require_known(self, tables: Sequence[str]) -> None:
        """Checks the names of the tables that its functions read.

        Raises:
            DeclarationError: There is no such table.
        """
        for function, location, names in self.functions:
            for name in names:
                if name not in tables:
                    known = nearest(name, [*self.topics, *tables])
                    raise location.error(f"{function} reads {name}, which {self.unknown}: {known}")

    def trials(self, empty: EmptyInputs) -> Iterable[Trial]:
        """Its functions, to be called with frames without rows."""
        return ()

    def run(self, context: Any, config: Any) -> None:
        """Writes its tables for the slice of the context, or raises and leaves what was published as it was."""
        raise NotImplementedError

    def query(self, context: Any, config: Any) -> DataStreamWriter:
        """The query, built and not started."""
        raise NotImplementedError


def ordered(
    reads: Mapping[str, Iterable[str]], writers: Mapping[str, str], circle: Callable[[Sequence[str]], Exception]
) -> list[str]:
    """Names, each after the writers of the tables that it reads; else in the order in which they are given.

    Args:
        reads: By name, the tables that it reads; those that none writes do not matter.
        writers: By table, who writes it.
        circle: Makes the error of names that read each other in a circle, of which the last is the first again.
    """
    before = {name: [writers[table] for table in tables if table in writers] for name, tables in reads.items()}
    try:
        return list(TopologicalSorter(before).static_order())
    except CycleError as error:
        raise circle(error.args[1]) from error
