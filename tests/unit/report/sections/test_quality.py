from pathlib import Path

from app.figures import FRESHNESS, Figure
from app.report import page, runs
from app.report.scope import scope
from app.report.sections.quality import quality
from tests.unit.eventlog import log
from tests.unit.report.conftest import Read, record_of

FIGURES = [
    Figure("a.range", 0.02, 0.05, 2, 100),
    Figure("b.type", 0.0, 0.0, 0, 100),
    Figure(FRESHNESS, 90_000.0, 86_400.0),
    Figure("c.known", 0.3, None, 30, 100),
]


def test_what_stopped_a_run_comes_first(reading: Read, run_folder: Path) -> None:
    """Then what some rows broke, most rows first; what every row kept is apart."""
    record_of(run_folder, figures=FIGURES)
    told = quality(scope(reading([log.started(), log.ended()]).app, runs.of(run_folder)))
    assert told is not None
    assert [figure.promise for figure in told.broken] == [FRESHNESS, "c.known", "a.range"]
    assert [figure.promise for figure in told.kept] == ["b.type"]


def test_each_figure_is_shown_in_its_own_unit(reading: Read, run_folder: Path, tmp_path: Path) -> None:
    """The age of the newest row is no percentage, and is counted in no rows."""
    record_of(run_folder, figures=FIGURES)
    output = tmp_path / "r.html"
    page.write(reading([log.started(), log.ended()]), output=output, run=runs.of(run_folder))
    rows = [line for line in output.read_text().splitlines() if 'data-l="measured"' in line]
    cells = [[cell.partition(">")[2].partition("<")[0] for cell in row.split("<td")[2:6]] for row in rows]
    assert cells == [
        ["–", "–", "90,000 s", "86,400 s"],
        ["30", "100", "30.0000%", "any"],
        ["2", "100", "2.0000%", "5.0000%"],
    ]
