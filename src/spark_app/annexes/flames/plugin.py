"""What this annex adds: the section of a report about samples of stacks, and what options write of them."""

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from spark_app.commands.plugins import FlameGraphs
from spark_app.report.section import Section, Subject

if TYPE_CHECKING:
    from spark_app.annexes.flames.drawing import Drawn
    from spark_app.report.sections.stack_samples import StackSection

FOLDER: Final = Path(__file__).parent


def _drawn(about: Subject) -> "Drawn | None":
    from spark_app.annexes.flames import drawing

    return drawing.drawn(about)


def _collapsed(section: "StackSection", folder: Path) -> int:
    from spark_app.annexes.flames import files

    return files.write(section.profile, folder, [row.place for row in section.rows])


def _difference(*arguments: Any, **named: Any) -> None:
    from spark_app.annexes.flames import difference_page

    difference_page.write(*arguments, **named)


STACKS: Final = Section(
    "stacks",
    _drawn,
    "Stacks",
    id="stack-samples",
    template="stack_samples.html.j2",
    script=FOLDER / "flame.js",
    style=FOLDER / "flame.css",
)
ADDS: Final = (STACKS, FlameGraphs(_collapsed, _difference))
