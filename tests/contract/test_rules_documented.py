"""The pages about rules and thresholds, and config/diagnoses.yml, are what the code declares."""

import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import RULES

ROOT: Final = Path(__file__).resolve().parents[2]
WRITTEN: Final = {"docs/diagnoses.md", "docs/reference.md", "docs/runbook.md", "config/diagnoses.yml"}
LABELS: Final = ["Evidence", "Why", "Change", "Threshold", "Cost"]
EVERY_RULE: Final = (
    *diagnose.STAGE_RULES, *diagnose.QUERY_RULES, *diagnose.STREAM_RULES, *diagnose.APPLICATION_RULES,
)  # fmt: skip


def test_committed_pages_are_what_is_declared(tmp_path: Path) -> None:
    """`python scripts/document_rules.py` changes nothing, and knows each rule that an alert is about."""
    subprocess.run([sys.executable, "scripts/document_rules.py", str(tmp_path)], cwd=ROOT, check=True)
    written = {path.relative_to(tmp_path).as_posix(): path.read_text("utf-8") for path in tmp_path.rglob("*.*")}
    assert written.keys() == WRITTEN
    assert [name for name, text in written.items() if text != (ROOT / name).read_text(encoding="utf-8")] == []


def test_every_rule_is_declared_whole() -> None:
    """It has a decorator, and its docstring says what it sees, what it costs, and what to change, in one order."""
    texts = {rule.__name__: inspect.getdoc(rule) or "" for rule in EVERY_RULE}
    labels = {name: re.findall(r"^([A-Z]\w+): ", text, re.MULTILINE) for name, text in texts.items()}
    assert {name: found for name, found in labels.items() if found != LABELS} == {}
    assert texts.keys() == RULES.keys()


def test_every_threshold_is_of_a_rule() -> None:
    """The page names each."""
    page = (ROOT / "docs" / "diagnoses.md").read_text(encoding="utf-8")
    assert [key for key in Thresholds.model_fields if f"`{key}`" not in page] == []
