import json
import re
from datetime import UTC, datetime
from pathlib import Path

from spark_app.annexes.flames import difference_page
from spark_app.annexes.flames.difference_page import merged
from spark_app.report.limits import MAX_BYTES
from spark_app.stack_samples.difference import changes
from spark_app.stack_samples.stack_profile import NO_NODE
from tests.unit.report import made
from tests.unit.stack_samples.test_difference import profiled


def test_a_page_has_the_stacks_of_both_runs_and_what_grew(tmp_path: Path) -> None:
    """Each run can be drawn, compared with the other; it needs no network, and names end no element."""
    now, before = profiled(slow=100), profiled(slow=40)
    names = (made.HOSTILE, "app-1")
    file = tmp_path / "deep" / "grew.html"
    difference_page.write(
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


def test_stacks_of_both_runs_have_the_same_nodes() -> None:
    """Whatever lines their functions have; callers come first."""
    both = merged(profiled(slow=100, line=9), profiled(slow=40, removed=3))
    (slow,) = [number for number, node in enumerate(both.nodes) if both.labels[node.label].function == "dumps"]
    assert [part[0].own[slow].samples for part in (both.now, both.before)] == [100, 40]
    assert [part[1].total.samples for part in (both.now, both.before)] == [0, 0]
    assert [sum(tally.samples for tally in part[1].own.values()) for part in (both.now, both.before)] == [9, 12]
    assert all(node.parent == NO_NODE or node.parent < number for number, node in enumerate(both.nodes))
