"""The commands that the README, and the pages that go on where it ends, tell a reader to type."""

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
PAGES: Final = {
    name: (ROOT / name).read_text(encoding="utf-8")
    for name in ("README.md", "docs/shop.md", "docs/observe.md", "docs/stack.md")
}
README: Final = "\n".join(PAGES.values())
STARTS: Final = r"(?:(?:OTEL_\w+=\S+ )?(?:make|spark-app|spark-submit|uv|source) \S|\./scripts/\S+$)"


def commands() -> list[str]:
    """All of them, in blocks and within sentences, in the order in which a reader meets them; each once."""
    inline = re.findall(r"```.*?\n(.*?)```|`([^`\n]+)`", README, re.DOTALL)
    lines = [line.strip() for block, code in inline for line in (block or code).splitlines()]
    return list(dict.fromkeys(line for line in lines if re.match(STARTS, line) and line != "spark-app etl"))
