"""What is true of each recorded pair: in `open.json`, and of a sealed pair in `sealed.zst`.

Both hold one `Answer` for each pair by its name. Only `truth.score` opens the sealed ones.
"""

import json
from pathlib import Path
from statistics import median
from typing import Any, Final

import msgspec
import zstandard

from truth.declared import HERE, Pair

OPEN: Final = HERE / "open.json"
SEALED: Final = HERE / "sealed.zst"
BUSY_CORES: Final = 0.3
"""From so many busy cores of others on, a run may wait for a processor though nobody planted that."""
SLOWER: Final = 1.25
"""A round whose quiet twin took so many times as long as in the fastest one ran on a slower machine: a virtual one that
shares its host can be, without any load of its own."""


class Where(msgspec.Struct, frozen=True):
    """The place of a cause: queries and stages by their numbers in the log, and the line of the program.

    All are empty where a cause is of the whole application, or nobody has noted its place.
    """

    queries: list[int] = []
    stages: list[int] = []
    lines: list[str] = []


class Round(msgspec.Struct, frozen=True):
    """One run of each twin, one after the other: their durations, and how busy others kept the machine, in cores.

    `observed` says whether both ran below `spark-app observe`, which adds to the log what it measures.
    """

    planted_ms: int
    quiet_ms: int
    planted_load: float | None
    quiet_load: float | None
    recorded: str
    observed: bool = False

    @property
    def is_left_alone(self) -> bool:
        """Whether other programs of the machine are known to have left it alone."""
        return all(load is not None and load < BUSY_CORES for load in (self.planted_load, self.quiet_load))


class Answer(msgspec.Struct):
    """The truth about a pair; `kept` is the round whose logs are kept."""

    planted: str
    quiet: str
    causes: list[str]
    remaining: list[str]
    form: str
    strength: str
    spark: str
    saves_time: bool
    developed_on: bool
    place: Where
    rounds: list[Round]
    kept: int = 0

    @property
    def calm(self) -> list[Round]:
        """The rounds whose times can be compared: the machine was left alone, and as fast as in the others."""
        alone = [each for each in self.rounds if each.is_left_alone]
        fastest = min((each.quiet_ms for each in alone), default=0)
        return [each for each in alone if each.quiet_ms <= SLOWER * fastest]

    @property
    def best(self) -> int:
        """The round whose logs tell most: a calm one, below `observe`, with the least load."""
        calm = self.calm

        def worth(round_: Round) -> tuple[bool, bool, float]:
            return round_ in calm, round_.observed, -(round_.planted_load or 0) - (round_.quiet_load or 0)

        return max(range(len(self.rounds)), key=lambda number: worth(self.rounds[number]))

    @property
    def saved_ms(self) -> float | None:
        """What the fix saved in calm rounds: the difference of the medians.

        None if there are no such rounds, if that is within the spread, or if the twin does other work.
        """
        if not self.saves_time or not self.calm:
            return None
        planted, quiet = [each.planted_ms for each in self.calm], [each.quiet_ms for each in self.calm]
        return median(planted) - median(quiet) if min(planted) > max(quiet) else None

    @property
    def spread_ms(self) -> tuple[int, int]:
        """The least and the most that the fix saved in a calm round."""
        saved = [each.planted_ms - each.quiet_ms for each in self.calm]
        return min(saved), max(saved)


def opened() -> dict[str, Answer]:
    """The answers of the open pairs."""
    return _read(OPEN)


def unsealed() -> dict[str, Answer]:
    """The answers of the sealed pairs, for the score alone."""
    return _read(SEALED)


def merged(pair: Pair, found: Answer) -> Answer:
    """What a new round has found, with the rounds before it; the place is that of the round whose logs are kept."""
    before = _read(_file(pair)).get(pair.name)
    if before is None:
        return found
    number = len(before.rounds)
    both = msgspec.structs.replace(found, rounds=[*before.rounds, *found.rounds], kept=number)
    return both if both.best == number else msgspec.structs.replace(both, place=before.place, kept=before.kept)


def write(pair: Pair, answer: Answer) -> None:
    """Writes what is true of a pair, in place of what was known before. Says nothing of a sealed one."""
    file = _file(pair)
    _write(file, _read(file) | {pair.name: answer})


def forget(pair: Pair) -> None:
    """Removes what is known of a pair, which is recorded anew."""
    file = _file(pair)
    answers = _read(file)
    answers.pop(pair.name, None)
    _write(file, answers)


def rounds(pair: Pair, *, calm: bool = False) -> int:
    """How many rounds of a pair are recorded, or how many on a calm machine."""
    answer = _read(_file(pair)).get(pair.name)
    if answer is None:
        return 0
    return len(answer.calm if calm else answer.rounds)


def _file(pair: Pair) -> Path:
    return SEALED if pair.is_sealed else OPEN


def _read(file: Path) -> dict[str, Answer]:
    if not file.exists():
        return {}
    content = file.read_bytes()
    if file == SEALED:
        content = zstandard.ZstdDecompressor().decompress(content)
    return msgspec.json.decode(content, type=dict[str, Answer])


def _write(file: Path, answers: dict[str, Answer]) -> None:
    builtins: Any = msgspec.to_builtins(dict(sorted(answers.items())))
    content = (json.dumps(builtins, indent=1) + "\n").encode()
    new = file.with_suffix(".new")
    new.write_bytes(zstandard.ZstdCompressor(level=19).compress(content) if file == SEALED else content)
    new.replace(file)
