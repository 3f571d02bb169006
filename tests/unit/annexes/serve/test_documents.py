"""Pages of the documentation in a browser: anchors, links, and that text stays text."""

import re
from pathlib import Path

import pytest

from spark_app.annexes.serve import documents

ROOT = Path(__file__).resolve().parents[4]
TEXT = """# Runbook

## SparkWorkerDown

See [spill](diagnoses.md#spill), [TLS](stack.md#tls), [who](#who-gets-an-alert) and <https://example.org>.

### `count_distinct` & <script>alert(1)</script>

| a | b |
|---|---|
| 1 | 2 |
"""


def test_headings_have_anchors_and_links_lead_to_pages_that_are_served(tmp_path: Path) -> None:
    """A link to a file that is not served is text; markup of the file is text, too."""
    (tmp_path / "runbook.md").write_text(TEXT, encoding="utf-8")
    page = documents.page("runbook", tmp_path)
    assert page is not None
    title, content = page
    assert title == "Runbook"
    assert '<h2 id="sparkworkerdown">SparkWorkerDown</h2>' in content
    assert 'href="/docs/diagnoses#spill"' in content
    assert 'href="#who-gets-an-alert"' in content
    assert 'href="https://example.org"' in content
    assert "stack.md" not in content
    assert "<script>" not in content
    assert "<td>1</td>" in content


@pytest.mark.parametrize("name", ["stack", "../README", "", "runbook.md"])
def test_no_other_file_is_a_page(name: str) -> None:
    """A name that is not listed leads nowhere."""
    assert documents.page(name) is None


def test_a_file_that_is_missing_is_no_page(tmp_path: Path) -> None:
    """As where an installation left it out."""
    assert documents.page("runbook", tmp_path) is None


@pytest.mark.parametrize("name", documents.NAMES)
def test_every_anchor_that_a_page_links_to_is_there(name: str) -> None:
    """Within the pages that are served, as they are in this tree."""
    shown = {each: page[1] for each in documents.NAMES if (page := documents.page(each)) is not None}
    assert set(shown) == set(documents.NAMES)
    for target, anchor in re.findall(r'href="(?:/docs/(\w+))?#([^"]+)"', shown[name]):
        assert f'id="{anchor}"' in shown[target or name], f"{name} links to {target or name}#{anchor}"
