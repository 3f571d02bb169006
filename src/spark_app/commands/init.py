"""`spark-app init`: writes a project of one's own."""

import datetime
import json as json_lines
import keyword
from pathlib import Path
from typing import Annotated, Final

import typer

from spark_app import formatting
from spark_app.commands import cells, options
from spark_app.errors import UsageError

TEMPLATES: Final = Path(__file__).with_name("project_files")
TAKEN: Final = ("spark_app", "tests", "config", "raw")
"""Names that a package of a project cannot have."""
DAY: Final = datetime.date(2024, 1, 1)
SAMPLE: Final = 200
PAGES: Final = ("/", "/cart", "/products")
COUNTRIES: Final = ("DE", "FR", "IT", "PL")


def init(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The name of the project, and of its package.")],
    *,
    json: options.Json = False,
) -> None:
    """Write a project into the current folder: a daily table and a query, their tests, configuration, a CI recipe."""
    from spark_app.commands.terminal import Terminal

    package = package_of(name)
    folder, terminal = Path.cwd(), Terminal()
    files = contents(name, package)
    taken = sorted(file for file in files if (folder / file).exists())
    if taken:
        raise UsageError(f"{', '.join(taken)} is here already: choose an empty folder")
    with terminal:
        for file, text in files.items():
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            (folder / file).write_text(text, encoding="utf-8")
        terminal.note(f"wrote {formatting.quantity(len(files), 'file')} of the project {name} into {folder}")
    if json:
        terminal.answer(project=name, folder=folder, files=sorted(files))
        return
    terminal.facts(
        [
            ("run it", f"spark-app etl --date {DAY}"),
            ("run its query", "spark-app streaming --available-now"),
            ("look at it", "spark-app show daily_orders"),
            ("test it", "python -m pytest"),
            ("read on", cells.place(folder / "README.md")),
        ]
    )


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
    values = {"name": name, "package": package, "version": version("spark-app")}
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
