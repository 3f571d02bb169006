"""What must be secret before Grafana and Jupyter are open beyond the loopback; secrets live in `.env.local`."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Callable
from pathlib import Path

from full_stack.errors import USAGE_OR_MACHINE, StartError

WELL_KNOWN = {"GRAFANA_ADMIN_PASSWORD": "admin", "JUPYTER_TOKEN": "spark-app"}
"""What is asked for where nothing else is set; good enough for the loopback only."""
FILE = ".env.local"
LOOPBACK = re.compile(r"127\.\d+\.\d+\.\d+|::1|\[::1\]|localhost")
_LINE = re.compile(r"\s*(?:export\s+)?(\w+)\s*=\s*(.*?)\s*")


def setting(name: str, root: Path, environment: dict[str, str]) -> str:
    """What Compose takes for a variable: that of the shell, else of `.env.local`, else of `.env`; empty without one."""
    if name in environment:
        return environment[name]
    return {**read(root / ".env"), **read(root / FILE)}.get(name, "")


def read(path: Path) -> dict[str, str]:
    """The variables of an env file; none where there is no such file."""
    if not path.is_file():
        return {}
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.lstrip().startswith("#")]
    found = [match for match in map(_LINE.fullmatch, lines) if match]
    return {match[1]: match[2].strip("'\"") for match in found}


def missing(root: Path, environment: dict[str, str]) -> list[str]:
    """The secrets that are not set, or are the well-known ones."""
    return [name for name, known in WELL_KNOWN.items() if setting(name, root, environment) in ("", known)]


def is_wide(address: str) -> bool:
    """Whether a BIND_ADDRESS opens anything beyond the loopback."""
    return bool(address) and LOOPBACK.fullmatch(address) is None


def require(root: Path, environment: dict[str, str], *, address: str, agrees: Callable[[str], bool]) -> list[str]:
    """Makes sure that what is open to others asks for a secret; the names of those that were made now.

    Raises:
        StartError: A secret is missing, and nobody agreed to have it made.
    """
    names = missing(root, environment)
    if not names:
        return []
    told = f"BIND_ADDRESS={address} opens Grafana and Jupyter to others, and {' and '.join(names)} "
    told += "is" if len(names) == 1 else "are"
    told += f" not set to a secret of your own in {FILE}"
    if not agrees(f"{told}. Make them now?"):
        raise StartError(f"{told}: set them there, or let --generate-passwords make them.", exit_code=USAGE_OR_MACHINE)
    in_the_way = [name for name in names if environment.get(name)]
    if in_the_way:
        raise StartError(
            f"{' and '.join(in_the_way)} of the shell would win over {FILE}: unset it.", exit_code=USAGE_OR_MACHINE
        )
    write(root / FILE, {name: secrets.token_urlsafe(24) for name in names})
    return names


def write(path: Path, values: dict[str, str]) -> None:
    """Sets variables in an env file that only its owner can read; what else it holds stays."""
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    kept = [line for line in lines if not ((found := _LINE.fullmatch(line)) and found[1] in values)]
    text = "".join(f"{line}\n" for line in [*kept, *(f"{name}={value}" for name, value in values.items())])
    new = path.with_name(f"{path.name}.new")
    new.unlink(missing_ok=True)
    with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
    new.replace(path)
