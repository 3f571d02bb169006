import os
from pathlib import Path

from app.report import index


def page(folder: Path, name: str, title: str, time: float) -> None:
    """A report with a title, written at a time."""
    (folder / name).write_text(f"<!doctype html><title>{title}</title>", encoding="utf-8")
    os.utime(folder / name, (time, time))


def test_the_newest_report_comes_first(tmp_path: Path) -> None:
    """Whatever it is called; the list is none of the reports, and made anew it replaces the old one."""
    page(tmp_path, "b.html", "etl.x 2024-01-01 · succeeded", 1e9)
    page(tmp_path, "a.html", "etl.x 2024-01-02 · killed", 2e9)
    assert index.write(tmp_path) == index.write(tmp_path)
    found = index.entries(tmp_path)
    assert [(entry.file, entry.title, entry.outcome, entry.mood) for entry in found] == [
        ("a.html", "etl.x 2024-01-02", "killed", "bad"),
        ("b.html", "etl.x 2024-01-01", "succeeded", "good"),
    ]


def test_names_and_titles_stay_text(tmp_path: Path) -> None:
    """Of a file that somebody has put there, too."""
    page(tmp_path, "a b&c.html", "&lt;script&gt; · done", 1e9)
    listed = index.write(tmp_path).read_text(encoding="utf-8")
    assert "<script>" not in listed
    assert 'href="a%20b%26c.html"' in listed
    assert "&lt;script&gt;" in listed
