import os
from pathlib import Path

from spark_app.report import index
from spark_app.report.page import Report


def report(folder: Path, name: str, title: str, outcome: str) -> None:
    """A report file and its entry in the list."""
    (folder / name).write_text("<!doctype html>", encoding="utf-8")
    index.add(Report(folder / name, title, outcome, "good" if outcome == "succeeded" else "bad"))


def test_reports_are_listed_newest_first(tmp_path: Path) -> None:
    """With the title and outcome that each was written with; the list itself is not listed."""
    report(tmp_path, "b.html", "etl.x 2024-01-01", "succeeded")
    report(tmp_path, "a.html", "etl.x 2024-01-02", "killed")
    assert index.write(tmp_path) == index.write(tmp_path)
    listed = [(entry.file, entry.title, entry.outcome, entry.mood) for entry in index.entries(tmp_path)]
    assert listed == [
        ("a.html", "etl.x 2024-01-02", "killed", "bad"),
        ("b.html", "etl.x 2024-01-01", "succeeded", "good"),
    ]


def test_a_report_without_a_readable_entry_is_listed_by_its_file_name(tmp_path: Path) -> None:
    """One that somebody copied here, or whose entry is damaged; a deleted report is not listed."""
    for name in ("copied", "damaged", "deleted"):
        report(tmp_path, f"{name}.html", "a title", "succeeded")
    (tmp_path / index.ENTRIES / "copied.json").unlink()
    (tmp_path / index.ENTRIES / "damaged.json").write_text("{")
    (tmp_path / "deleted.html").unlink()
    os.utime(tmp_path / "copied.html", (1e9, 1e9))
    assert [(entry.title, entry.outcome) for entry in index.entries(tmp_path)] == [("damaged", ""), ("copied", "")]


def test_names_and_titles_are_escaped(tmp_path: Path) -> None:
    """A title is the name of somebody's application."""
    report(tmp_path, "a b&c.html", "<script>", "succeeded")
    listed = index.write(tmp_path).read_text(encoding="utf-8")
    assert "<script>" not in listed
    assert 'href="a%20b%26c.html"' in listed
    assert "&lt;script&gt;" in listed
