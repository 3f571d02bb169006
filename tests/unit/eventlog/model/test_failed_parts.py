"""A section that raises costs a remark with its name; the page and the document have all others as they are."""

import re
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.eventlog.reader import Reading, read
from spark_app.report import page
from spark_app.report.results import build

LOG: Final = Path(__file__).parents[3] / "eventlogs" / "streaming" / "growing_state-planted.zst"
MAKERS: Final = (
    "headline", "findings_of", "connect", "streams", "timeline", "stages",
    "queries", "executors", "memory", "quality", "columns", "configuration", "logs", "capacity", "replays",
)  # fmt: skip
"""What makes the content of each section, as the page calls it."""
NAMES: Final = {"findings_of": "findings"}
WITHIN: Final = {"memory": "executors", "capacity": "executors", "headline": "timeline", "replays": "what-if"}
"""Other sections of the page that show it, too."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The sections of the page without a fault."""
    return sections(read(LOG), tmp_path_factory.mktemp("whole"))


def sections(reading: Reading, folder: Path) -> dict[str, str]:
    """The sections of a report by their ids, and what stands before them."""
    content = page.write(reading, output=folder / "r.html").path.read_text(encoding="utf-8")
    top, *parts = re.split(r'<section id="', content.partition("</main>")[0])
    return {"top": top} | {part.partition('"')[0]: part.partition("</section>")[0] for part in parts}


def raises(*_: Any, **__: Any) -> Any:
    """Stands for a section with a fault."""
    raise LookupError("of its own")


def broken(*_: Any, **__: Any) -> object:
    """Stands for a section whose content its template cannot show."""
    return object()


@pytest.mark.parametrize(
    ("maker", "fault"), [*((maker, raises) for maker in MAKERS), *((maker, broken) for maker in MAKERS[1:])]
)
def test_a_section_that_raises_hurts_no_other(
    whole: dict[str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, maker: str, fault: Any
) -> None:
    """Whether its content or its template raises."""
    monkeypatch.setattr(page, maker, fault)
    found, name = sections(reading := read(LOG), tmp_path), NAMES.get(maker, maker)
    own = {"top", name, WITHIN.get(name, name)}
    assert {key: text for key, text in found.items() if key not in own} == {
        key: text for key, text in whole.items() if key not in own
    }
    remarks = list(reading.app.failed_parts.remarks)
    assert [f"the section {name} raised" in remark for remark in remarks] == [True]
    assert f"the section {name} raised" in found["top"]


@pytest.mark.parametrize("section", ["stages", "queries", "streams", "connect"])
def test_a_document_has_what_does_not_raise(monkeypatch: pytest.MonkeyPatch, section: str) -> None:
    """Its remarks name the section that is missing."""
    monkeypatch.setattr(getattr(build, section), section, raises)
    about = build.application(read(LOG), None, [], None, report="r.html")
    assert [remark for remark in about.remarks if f"the section {section} raised LookupError" in remark]
    assert len([part for part in (about.stages, about.queries, about.streaming_queries) if part]) >= 2
