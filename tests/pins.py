"""What `.env` pins: the names of images, and all else that the compose stack and the chart agree on."""

from pathlib import Path
from typing import Final

FILE: Final = Path(__file__).resolve().parents[1] / ".env"


def variables() -> dict[str, str]:
    """The variables of `.env`."""
    lines = FILE.read_text(encoding="utf-8").splitlines()
    return dict(line.split("=", maxsplit=1) for line in lines if line and not line.startswith("#"))
