"""Samples of stacks as collapsed stacks, which flamegraph.pl reads: of the application, each stage and the driver."""

from collections.abc import Iterable, Iterator
from pathlib import Path

from spark_app.annexes.flames import collapsed
from spark_app.local_files import write_atomic
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.stack_profile import Part, StackProfile


def write(stacks: StackProfile, folder: Path, places: Iterable[Place] | None = None) -> int:
    """Writes `stage-3-0.collapsed`, and the same of the others; returns how many files.

    Args:
        stacks: The samples.
        folder: Where to; it is created if it is missing.
        places: Only these; None for all.

    Raises:
        OSError: A file cannot be written.
    """
    chosen = [*stacks.parts] if places is None else [place for place in places if place in stacks.parts]
    parts = [*_parts(stacks, chosen)]
    for name, part in parts:
        text = "".join(f"{line}\n" for line in collapsed.lines(stacks, part))
        write_atomic(folder / f"{name}.collapsed", text.encode("utf-8", "replace"))
    return len(parts)


def _parts(stacks: StackProfile, places: Iterable[Place]) -> Iterator[tuple[str, Part]]:
    """The parts that have a stack, with the names of their files."""
    chosen = list(places)
    every = [("application", stacks.of(chosen)), *((_name(place), stacks.parts[place]) for place in chosen)]
    return ((name, part) for name, part in every if part.shown.samples)


def _name(place: Place) -> str:
    return place if isinstance(place, str) else f"stage-{place[0]}-{place[1]}"
