"""The pages about rules and thresholds, and config/diagnoses.yml, are what the code declares."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from spark_app.eventlog.diagnoses.rule import rules
from spark_app.eventlog.diagnoses.thresholds import all_limits

ROOT: Final = Path(__file__).resolve().parents[2]
WRITTEN: Final = {
    "docs/diagnoses.md",
    "docs/reference.md",
    "docs/runbook.md",
    "config/diagnoses.yml",
    "prometheus/rules/diagnoses.yml",
    "prometheus/tests/diagnoses.yml",
}
LABELS: Final = ["Evidence", "Why", "Change", "Threshold", "Cost"]


def test_committed_pages_are_what_is_declared(tmp_path: Path) -> None:
    """`python scripts/document_rules.py` changes nothing, and knows each rule that an alert is about."""
    subprocess.run([sys.executable, "scripts/document_rules.py", str(tmp_path)], cwd=ROOT, check=True)
    written = {path.relative_to(tmp_path).as_posix(): path.read_text("utf-8") for path in tmp_path.rglob("*.*")}
    assert written.keys() == WRITTEN
    assert [name for name, text in written.items() if text != (ROOT / name).read_text(encoding="utf-8")] == []


def test_every_rule_is_declared_whole() -> None:
    """It has a decorator, and its docstring says what it sees, what it costs, and what to change, in one order."""
    texts = {name: inspect.getdoc(rule.check) or "" for name, rule in rules().items()}
    labels = {name: re.findall(r"^([A-Z]\w+): ", text, re.MULTILINE) for name, text in texts.items()}
    assert {name: found for name, found in labels.items() if found != LABELS} == {}


def test_a_rule_is_alone_in_the_file_of_its_name() -> None:
    """So that it is found, and goes with its file; a helper of several rules stands beside the package."""
    folder = ROOT / "src" / "spark_app" / "eventlog" / "diagnoses" / "rules"
    assert [name for name, rule in rules().items() if not rule.check.__module__.endswith(f".rules.{name}")] == []
    imports = [file.name for file in folder.glob("*.py") if "diagnoses.rules." in file.read_text(encoding="utf-8")]
    assert imports == []


def test_every_threshold_is_of_a_rule() -> None:
    """The page names each."""
    page = (ROOT / "docs" / "diagnoses.md").read_text(encoding="utf-8")
    assert [key for key in all_limits() if f"`{key}`" not in page] == []
