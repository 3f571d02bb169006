"""docs/telemetry.md is what the vocabulary states."""

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


def test_the_committed_page_is_what_the_vocabulary_states(tmp_path: Path) -> None:
    """`python scripts/document_telemetry.py` changes nothing."""
    subprocess.run([sys.executable, "scripts/document_telemetry.py", str(tmp_path)], cwd=ROOT, check=True)
    written = (tmp_path / "telemetry.md").read_text(encoding="utf-8")
    assert written == (ROOT / "docs" / "telemetry.md").read_text(encoding="utf-8")
