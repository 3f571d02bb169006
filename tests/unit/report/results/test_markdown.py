import re
from pathlib import Path

import pytest
from markdown_it import MarkdownIt

from spark_app.report import formatting
from spark_app.report.results import markdown
from spark_app.report.results.schema import Error, Failed, Results
from tests.unit.report.results.test_fail_on import application, comparison, finding, observed

TAGS = {"h3", "p", "strong", "code", "table", "thead", "tbody", "tr", "th", "td"}
HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "a | b | c",
    "`code` *bold* _under_ ~~gone~~ $x^2$",
    "[click](http://evil.example) ![x](y) [ref]: z",
    "line\n\n# heading\n- item\n| a |",
    "\\<b>\\`x\\|",
    "&lt;script&gt; &copy;",
    "</td></tr></table><script>",
    "bell \x07 \x1b[31m \u202e end",
]


def shown(text: str) -> tuple[str, set[str]]:
    """The text that a reader of the page sees, and the tags of the page."""
    html = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(text)
    tags = set(re.findall(r"<(\w+)", html))
    plain = re.sub(r"<[^>]*>", "", html)
    for entity, character in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&"), ("\u200b", "")):
        plain = plain.replace(entity, character)
    return plain, tags


@pytest.mark.parametrize("text", HOSTILE)
def test_text_of_programs_is_shown_as_it_is(text: str) -> None:
    """It makes no tag, no cell and no link, wherever it stands."""
    about = application(finding("spill"), slower=0.5)
    about.name = about.summary = about.error = about.findings[0].text = about.findings[0].advice = text
    page, tags = shown(markdown.summary(observed(about, failed_on=[Failed("warning", text, None)])))
    assert tags == TAGS
    visible = " ".join("".join(part if part.isprintable() else " " for part in text).split())
    assert page.count(visible) == 6


@pytest.mark.parametrize("text", ["@team look", "see #12", "at http://evil.example", "at www.evil.example"])
def test_a_comment_made_of_it_tells_nobody_and_links_nowhere(text: str) -> None:
    """People, issues and addresses have a space without width within."""
    assert formatting.escaped(text) not in (text, "")
    assert re.search(r"@\w|#\d|://|www\.", formatting.escaped(text).replace("&#8203;", "\0")) is None


def test_a_summary_is_appended(tmp_path: Path) -> None:
    """Steps of a CI share one file."""
    file = tmp_path / "summary.md"
    file.write_text("# before\n", encoding="utf-8")
    for name in ("one", "two"):
        about = application()
        about.name = name
        markdown.append(file, observed(about))
    lines = file.read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("#")] == ["# before", "### one: succeeded", "### two: succeeded"]


def test_a_summary_says_what_fails_and_why() -> None:
    """Each condition on a line."""
    held = [Failed("warning", "2 warnings", None), Failed("slower:20%", "30 % slower", None)]
    text = markdown.summary(observed(application(), failed_on=held, error=Error("FailOnError", "both")))
    assert text.count("**Failed:**") == 2
    assert "**Failed:** `--fail-on slower:20%` 30 % slower" in text


def test_a_summary_of_nothing_says_so() -> None:
    """With the error, if there was one."""
    text = markdown.summary(observed(error=Error("X", "boom")))
    assert "No Spark application was observed." in text
    assert "**Failed:** boom" in text


def test_findings_beyond_the_first_ten_are_counted() -> None:
    """The report has all."""
    text = markdown.summary(observed(application(*[finding("spill")] * 12)))
    assert text.count("| warning |") == 10
    assert "| 2 more in the report |" in text


def test_a_comparison_has_both_durations() -> None:
    """Of `compare`, and of an application with earlier runs."""
    line = "**Compared with an earlier run:** 15.0 s, before 10.0 s: +5.0 s"
    assert line in markdown.summary(Results(command="compare", comparison=comparison(0.5)))
    assert line in markdown.summary(observed(application(slower=0.5)))
