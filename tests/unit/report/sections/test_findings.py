"""Findings as Markdown, which people paste into tickets."""

from spark_app.eventlog.findings import Finding
from spark_app.report.sections.findings import Findings


def markdown(finding: Finding) -> str:
    """A finding of an application as Markdown."""
    return Findings([finding], 1, "daily, application app-1").markdown(finding)


def test_a_finding_as_markdown_has_evidence_advice_and_its_place() -> None:
    """Whoever reads it needs no report."""
    finding = Finding(
        "partition_skew",
        "warning",
        "A task takes 8 of 9 s.",
        "Salt the key.",
        {"longest_task_ms": 8000},
        cost_ms=7000,
        stage=(3, 1),
        operator="SortMergeJoin [key]",
    )
    assert markdown(finding).splitlines() == [
        "**warning: partition skew.** A task takes 8 of 9 s.",
        "",
        "**Change:** Salt the key.",
        "",
        "- costs about 7.0 s",
        "- longest task time: 8.0 s",
        r"- operator: SortMergeJoin \[key\]",
        "- found in stage 3 attempt 1 of daily, application app-1",
    ]


def test_a_finding_as_markdown_has_no_markup_and_no_secret_of_the_log() -> None:
    """Names from programs are shown as they are, and passwords are not shown."""
    finding = Finding("failed_tasks", "warning", "<img src=x> [a](http://x) password=hunter2", "`x`")
    shown = markdown(finding)
    assert "<img" not in shown
    assert r"\[a\](http:" in shown
    assert "http://" not in shown
    assert "hunter2" not in shown
    assert r"\`x\`" in shown
