"""`spark-app init`: writes a project of one's own."""

import datetime
import json as json_lines
import keyword
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final

import typer

from spark_app import formatting, project
from spark_app.commands import options, stack
from spark_app.errors import UsageError

TEMPLATES: Final = Path(__file__).with_name("project_files")
TAKEN: Final = ("spark_app", "tests", "config", "raw", "landing", "stack")
"""Names that a package of a project cannot have."""
DAY: Final = datetime.date(2024, 1, 1)
SAMPLE: Final = 200
PAGES: Final = ("/", "/cart", "/products")
COUNTRIES: Final = ("DE", "FR", "IT", "PL")
README: Final = "README.md"
OF_PROJECT: Final = (
    ("run it", f"spark-app etl --date {DAY}"),
    ("run its query", "spark-app streaming --available-now"),
    ("look at it", "spark-app show daily_orders"),
    ("test it", "python -m pytest"),
)
OF_STACK: Final = (
    ("start its stack", f"{stack.FOLDER}/scripts/start-full-stack.sh"),
    ("run it there", f"docker exec spark-master run_etl.sh {DAY}"),
)
"""What to do next."""


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the project, and of its package.")],
    *,
    with_stack: Annotated[
        bool,
        typer.Option("--stack", help="Also write the compose stack and the chart, or only these where the project is."),
    ] = False,
    json: options.Json = False,
) -> None:
    """Write a project into the current folder: a daily table and a query, their tests, configuration, a CI recipe."""
    from spark_app.commands.terminal import Terminal

    package = package_of(name)
    folder, terminal = Path.cwd(), Terminal()
    files = {} if with_stack and is_here(folder, package) else contents(name, package)
    taken = sorted(file for file in files if (folder / file).exists())
    if taken:
        raise UsageError(f"{', '.join(taken)} is here already: choose an empty folder")
    added = stack_contents(name, folder) if with_stack else {}
    with terminal:
        write(files | added, folder)
        missing = add_stack(folder) if with_stack else None
        written = formatting.quantity(len(files) + len(added), "file")
        terminal.note(f"wrote {written} of the project {name} into {folder}")
        if missing:
            terminal.note(f"copy the wheel of spark-app to {missing}: the image is built with it")
    if json:
        terminal.answer(project=name, folder=folder, files=sorted(files | added))
        return
    terminal.facts([*(OF_PROJECT if files else ()), *(OF_STACK if with_stack else ()), ("read on", README)])


def is_here(folder: Path, package: str) -> bool:
    """Whether a folder is that of the project.

    Raises:
        UsageError: It is that of another one.
    """
    found = project.find(folder)
    if found is None or found.folder != folder:
        return False
    if found.package != package:
        raise UsageError(f"this is the project of the package {found.package}: spark-app init {found.package} --stack")
    return True


def stack_contents(name: str, folder: Path) -> dict[str, str]:
    """The text of each file of the stack of a project that it does not have yet, by its path.

    Raises:
        UsageError: This is no installed wheel, or the project has such a file with another text.
    """
    if not stack.CARRIED.is_dir():
        raise UsageError(
            "--stack needs an installed wheel, which `make wheel` builds; the stack of a clone runs a project that "
            "PROJECT_FOLDER in .env.local names (docs/stack.md)"
        )
    from spark_app.settings import config_folder

    files = stack.contents(name, stack.library()[0], config=config_folder())
    there = {file for file in files if (folder / file).exists()}
    changed = sorted(file for file in there if (folder / file).read_text(encoding="utf-8") != files[file])
    if changed:
        raise UsageError(
            f"{', '.join(changed)} is here with another content: rename it, and merge it by hand afterwards"
        )
    return {file: text for file, text in files.items() if file not in there}


def write(files: Mapping[str, str], folder: Path) -> None:
    """Writes files; scripts can be executed."""
    for file, text in files.items():
        path = folder / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        if path.suffix == ".sh":
            path.chmod(path.stat().st_mode | 0o111)


def add_stack(folder: Path) -> Path | None:
    """Adds to the files of a stack what is no text: the link to the user's variables, and the wheel for the image.

    Returns:
        Where to copy the wheel to, if its file is not to be found; None where it is there, or none is needed.
    """
    stack.link_variables(folder)
    requirement, wheel = stack.library()
    file = folder / stack.FOLDER / requirement
    if wheel:
        file.parent.mkdir(exist_ok=True)
        shutil.copy(wheel, file)
    return file if requirement.startswith(f"{stack.WHEELS}/") and not file.exists() else None


def package_of(name: str) -> str:
    """The name of the package of a project.

    Raises:
        UsageError: Python cannot import a package of this name, or it is taken.
    """
    package = name.replace("-", "_")
    if not package.isidentifier() or keyword.iskeyword(package) or package in TAKEN:
        raise UsageError(f"{name!r} cannot be the name of a Python package: choose another, such as shop")
    return package


def contents(name: str, package: str) -> dict[str, str]:
    """The text of each file of a project, by its path."""
    from importlib.metadata import version

    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    templates = Environment(
        loader=FileSystemLoader(TEMPLATES), undefined=StrictUndefined, keep_trailing_newline=True, autoescape=False
    )
    values = {"name": name, "package": package, "release": stack.compose_name(name), "version": version("spark-app")}
    files = sorted(path.relative_to(TEMPLATES) for path in TEMPLATES.rglob("*.j2"))
    found = {
        file.as_posix().removesuffix(".j2").replace("package/", f"{package}/"): templates.get_template(
            file.as_posix()
        ).render(values)
        for file in files
    }
    return found | {
        f"raw/orders/date={DAY}/part-0.json": lines(orders()),
        "landing/page_views/part-0.jsonl": lines(page_views()),
    }


def lines(rows: list[dict[str, str]]) -> str:
    """Rows as JSON lines."""
    return "".join(json_lines.dumps(row) + "\n" for row in rows)


def orders() -> list[dict[str, str]]:
    """Raw orders of a day."""
    return [
        {
            "order_id": f"o-{number:04}",
            "country": COUNTRIES[number % len(COUNTRIES)],
            "amount": f"{5 + number * 37 % 200}.{number * 7 % 100:02}",
            "ordered_at": f"{DAY}T{number % 24:02}:{number * 13 % 60:02}:00Z",
            "changed_at": f"{DAY}T23:{number % 60:02}:00Z",
        }
        for number in range(SAMPLE)
    ]


def page_views() -> list[dict[str, str]]:
    """Views of pages within some hours."""
    return [
        {
            "view_id": f"v-{number:04}",
            "page": PAGES[number % len(PAGES)],
            "timestamp": f"{DAY}T{10 + number // 60:02}:{number % 60:02}:00Z",
        }
        for number in range(SAMPLE)
    ]
