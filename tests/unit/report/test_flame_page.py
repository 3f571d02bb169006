import json
import re
from datetime import UTC, datetime
from pathlib import Path

from spark_app.report import flame_page
from spark_app.report.limits import MAX_BYTES
from spark_app.stack_samples.difference import changes
from tests.unit.report import made
from tests.unit.stack_samples.test_difference import profiled


def test_a_page_has_the_stacks_of_both_runs_and_what_grew(tmp_path: Path) -> None:
    """Each run can be drawn, compared with the other; it needs no network, and names end no element."""
    now, before = profiled(slow=100), profiled(slow=40)
    names = (made.HOSTILE, "app-1")
    file = tmp_path / "deep" / "grew.html"
    flame_page.write(
        file, made.HOSTILE, now, before, changes(now, before), names=names, at=datetime(2024, 1, 1, tzinfo=UTC)
    )
    content = file.read_text()
    found = re.search(r'<script type="application/json" id="stack-data">(.*?)</script>', content)
    assert found is not None
    assert [view[1:] for view in json.loads(found[1])["views"]][:2] == [[[0, 1], [2, 3], False], [[2, 3], [0, 1], True]]
    assert "+600 ms" in content
    assert content.count("<script") == content.count("</script>") == 3
    assert re.findall(r'(?:src|href)="(?!#|data:)[^"]*"|url\(|@import', content) == []
    assert len(content) < MAX_BYTES
