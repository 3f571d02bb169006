"""The pairs of runs, as `runs.toml` declares them, and the causes of `vocabulary.toml`."""

import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final, Literal

HERE: Final = Path(__file__).parent
LOGS: Final = HERE / "logs"
Kind = Literal["planted", "quiet"]
KINDS: Final[tuple[Kind, Kind]] = ("planted", "quiet")
SEALED_SHARE: Final = 0.4
"""Of the pairs that no rule was developed on: with the others, about a third of all."""


@dataclass(frozen=True)
class Pair:
    """A run with a planted cause and its quiet twin.

    Attributes:
        name: Its name, which also decides whether it is sealed.
        causes: The planted causes, that which costs most first.
        form: `sql`, `dataframe`, `rdd`, `pandas`, `streaming` or `ml`.
        program: The file in `programs` and its function; empty if the pair was recorded before.
        recorded: A recorded pair elsewhere in the repository: the path of its planted log, and that of the quiet one.
        strength: How strong the cause is: `weak`, `medium` or `strong`, with what makes it so in `parameters`.
        parameters: What the program gets beside `planted` and `form`.
        properties: Properties of Spark for both twins.
        spark: The version of Spark.
        remaining: The causes that the twin has as well.
        needs_form: Whether the program gets the form.
        saves_time: Whether the twin does the same work, so that the difference of times is what the cause costs.
        developed_on: Whether it was made to develop a rule with; so are all that were recorded before.
    """

    name: str
    causes: tuple[str, ...]
    form: str
    program: str = ""
    recorded: tuple[str, ...] = ()
    strength: str = "medium"
    parameters: dict[str, Any] = field(default_factory=dict)
    properties: dict[str, str] = field(default_factory=dict)
    spark: str = "4.2.0"
    remaining: tuple[str, ...] = ()
    needs_form: bool = True
    saves_time: bool = True
    developed_on: bool = False

    @property
    def is_developed_on(self) -> bool:
        """Whether rules were developed with its logs: it was made for that, or a test before it was a measure."""
        return self.developed_on or bool(self.recorded)

    @property
    def is_sealed(self) -> bool:
        """Whether only totals say how it was judged; a hash of its name decides."""
        return not self.is_developed_on and _hash("sealed", self.name)[0] < SEALED_SHARE * 256

    def run(self, kind: Kind) -> str:
        """The id of one of its runs, which does not tell the kind or the cause."""
        return _hash(self.name, kind).hex()[:10]

    def log(self, kind: Kind) -> Path:
        """The log of one of its runs."""
        return LOGS / f"{self.run(kind)}.zst"


def _hash(*words: str) -> bytes:
    return sha256(" ".join(words).encode()).digest()


@cache
def pairs() -> dict[str, Pair]:
    """All declared pairs by their names."""
    declared = tomllib.loads((HERE / "runs.toml").read_text(encoding="utf-8"))
    return {name: _pair(name, **entry) for name, entry in declared.items()}


def _pair(name: str, *, causes: list[str], remaining: Sequence[str] = (), **entry: Any) -> Pair:
    unknown = {*causes, *remaining} - vocabulary().keys()
    if unknown:
        raise ValueError(f"runs.toml: {name} has causes that vocabulary.toml lacks: {', '.join(sorted(unknown))}")
    recorded = tuple(entry.pop("recorded", ()))
    return Pair(name, tuple(causes), remaining=tuple(remaining), recorded=recorded, **entry)


@cache
def vocabulary() -> dict[str, dict[str, str]]:
    """The causes, each with what it is about and, if any, the more general one."""
    return tomllib.loads((HERE / "vocabulary.toml").read_text(encoding="utf-8"))
