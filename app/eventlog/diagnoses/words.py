"""How findings name times, sizes and shares."""

from typing import Final

from app.redaction import redacted

PYTHON: Final = "Traceback (most recent call last):"
"""What the text of an error of a Python worker has in it."""
_CAUSE: Final = "Caused by: "
_SIZES: Final = ("KiB", "MiB", "GiB", "TiB")


def duration(ms: float) -> str:
    """A time for a person: `850 ms`, `12.3 s`, `4 min 5 s`, `2 h 3 min`."""
    if ms < 1000:
        return f"{ms:.0f} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    minutes, seconds = divmod(round(ms / 1000), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {seconds} s"


def size(count: float) -> str:
    """A number of bytes for a person: `512 B`, `1.5 GiB`."""
    unit = "B"
    for larger in _SIZES:
        if count < 1024:
            break
        count, unit = count / 1024, larger
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def share(ratio: float) -> str:
    """A share for a person: `12 %`."""
    return f"{ratio:.0%}".replace("%", " %")


def error(text: str) -> str:
    """What an error says, without where it was: of Python the last line, of Java the first one and the last cause."""
    _, _, trace = text.partition(PYTHON)
    raised = next((line for line in trace.splitlines() if line.strip() and not line.startswith(" ")), "")
    said, _, stack = text.partition("\n\tat ")
    causes = [line for line in stack.splitlines() if line.startswith(_CAUSE)]
    return cut(raised or "; ".join([said, *(line.removeprefix(_CAUSE) for line in causes[-1:])]))


def cut(text: str, most: int = 200) -> str:
    """A text on one line, without secrets, with its end cut off where it is long."""
    line = redacted(" ".join(text.split())[: most * 4])
    return line if len(line) <= most else line[: most - 1] + "…"
