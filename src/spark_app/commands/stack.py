"""The compose stack and the chart of a project, which `spark-app init --stack` writes from files of the wheel."""

import json
import re
from collections.abc import Iterator, Mapping
from importlib.metadata import distribution, version
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

CARRIED: Final = Path(__file__).parents[1] / "stack"
"""The files of the stack in an installed wheel (`setup.py`), without those of `config/`; a clone has none."""
FOLDER: Final = "stack"
WHEELS: Final = "wheels"
CHART_VALUES: Final = "charts/spark-app/values.yaml"
OWN_LINES: Final = """
# The project, which the containers see as /project: what you change is there at the next run. To build it into an image
# instead, set PROJECT_BUILD=../.. in .env.local (paths are relative to compose/).
PROJECT_FOLDER=../..
# What pip installs into the image: a wheel of wheels/, or a requirement that its index has.
LIBRARY={library}
"""


def contents(name: str, library: str, *, carried: Path = CARRIED, config: Path) -> dict[str, str]:
    """The text of each file of the stack of a project, by its path in the project.

    Args:
        name: The name of the project.
        library: What pip installs into the image.
        carried: The folder of the files that are not configuration.
        config: The folder of the configuration.
    """
    files = dict(_files(carried, "")) | dict(_files(config, "config/"))
    variables = {
        r"COMPOSE_PROJECT_NAME=.*": f"COMPOSE_PROJECT_NAME={compose_name(name)}",
        r"SPARK_APP_IMAGE=.*": f"SPARK_APP_IMAGE={image(name)}",
    }
    values = {
        r"  repository: \S+": f"  repository: {compose_name(name)}",
        r'  image: ""': f"  image: {image(name)}-project",
        r'  folder: ""': "  folder: /project",
    }
    files[".env"] = _changed(files[".env"], variables) + OWN_LINES.format(library=library)
    files[CHART_VALUES] = _changed(files[CHART_VALUES], values)
    files[".gitignore"] = ".env.local\n"
    return {f"{FOLDER}/{path}": text for path, text in sorted(files.items())}


def compose_name(name: str) -> str:
    """The name of a project as Compose and the names of images allow it."""
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "project"


def image(name: str) -> str:
    """The image of the stack of a project."""
    return f"{compose_name(name)}:{version('spark-app')}"


def library() -> tuple[str, Path | None]:
    """What pip installs into the image, and the wheel to copy for that, which this program was installed from.

    The wheel is None where an index or an address has it, and where its file is gone.
    """
    url = json.loads(distribution("spark-app").read_text("direct_url.json") or "{}").get("url", "")
    if not url:
        return f"spark-app=={version('spark-app')}", None
    address = urlsplit(url)
    if address.scheme != "file":
        return url, None
    file = Path(unquote(address.path))
    if file.suffix == ".whl" and file.is_file():
        return f"{WHEELS}/{file.name}", file
    return f"{WHEELS}/spark_app-{version('spark-app')}-py3-none-any.whl", None


def link_variables(project: Path) -> None:
    """Links the variables of the user to where Compose reads them: beside the files that are included."""
    link = project / FOLDER / "compose" / ".env"
    if not link.is_symlink():
        link.symlink_to("../.env.local")


def _files(folder: Path, prefix: str) -> Iterator[tuple[str, str]]:
    for file in folder.rglob("*"):
        if file.is_file() and "__pycache__" not in file.parts:
            yield prefix + file.relative_to(folder).as_posix(), file.read_text(encoding="utf-8")


def _changed(text: str, lines: Mapping[str, str]) -> str:
    """A text with other beginnings of lines.

    Args:
        text: The text.
        lines: The new beginnings by a pattern of the old ones.

    Raises:
        ValueError: A pattern is not that of exactly one line.
    """
    for pattern, line in lines.items():
        text, found = re.subn(f"^{pattern}", line, text, flags=re.MULTILINE)
        if found != 1:
            raise ValueError(f"{found} lines begin with {pattern!r}")
    return text
