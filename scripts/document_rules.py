"""Writes what rules and thresholds declare into docs/diagnoses.md, runbook.md and reference.md, and diagnoses.yml.

Run it as `.venv/bin/python scripts/document_rules.py`; a folder as argument gets the files instead. What stands above
the first rule of a section, outside of the table, and beside the lists of changes in the runbook is written by hand.
"""

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import yaml

from spark_app.eventlog.diagnoses import diagnose, thresholds
from spark_app.eventlog.diagnoses.thresholds import Thresholds

ROOT: Final = Path(__file__).resolve().parents[1]
WIDTH: Final = 140
RULES: Final = {
    "Stages": diagnose.STAGE_RULES,
    "Queries": diagnose.QUERY_RULES,
    "Streams": diagnose.STREAM_RULES,
    "Applications": diagnose.APPLICATION_RULES,
}
DEFAULTS: Final = Thresholds().model_dump(mode="json")
SIZES: Final = (("GiB", 1024**3), ("MiB", 1024**2), ("bytes", 1))
TIMES: Final = (("h", 3_600_000), ("min", 60_000), ("s", 1000), ("ms", 1))
_LABEL: Final = re.compile(r"^([A-Z]\w+): ", re.MULTILINE)
_STATED: Final = re.compile(r"`(\w+)` \d[\d.,]*\b(?: (?:%|ms|s|min|h|MiB|GiB)(?!\w))?")


def threshold(key: str) -> str:
    """A threshold with its default, in its unit: `skew_longest_ms` 2 s."""
    value = DEFAULTS[key]
    if key.endswith("_ms"):
        text = _in_units(value, TIMES)
    elif "bytes" in key:
        text = _in_units(value, SIZES) + ("/s" if key.endswith("_per_second") else "")
    elif key.endswith("_ratio") and value < 1:
        text = f"{100 * value:g} %"
    else:
        text = f"{value:,.0f}" if value >= 10_000 else f"{value:g}"
    return f"`{key}` {text}"


def _in_units(value: float, units: tuple[tuple[str, int], ...]) -> str:
    unit, size = next((unit, size) for unit, size in units if not value % size)
    return f"{value / size:,.0f} {unit}"


def filled(text: str) -> str:
    """A text on one line, with the thresholds that it names."""
    return re.sub(r"\{(\w+)\}", lambda match: threshold(match[1]), " ".join(text.split()))


def wrapped(text: str, indent: str = "") -> str:
    """Lines of a page, all but the first indented; code is not broken at a hyphen."""
    return textwrap.fill(text, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def part(rule: Any) -> str:
    """The part of a rule in docs/diagnoses.md, made of its docstring."""
    summary, *_ = text = (inspect.getdoc(rule) or "").splitlines()
    labelled = _LABEL.sub(r"**\1**: ", "\n".join(text[1:]))
    paragraph = f"**Seen**: {summary[0].lower()}{summary[1:]} {labelled}"
    return f"### {rule.__name__}\n\n{wrapped(filled(paragraph))}\n"


def diagnoses(page: str) -> str:
    """The page of the diagnoses: each section with its introduction and its rules, and the defaults of thresholds."""
    introduction, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    texts = {section.split("\n")[0]: section.split("### ")[0].rstrip() for section in sections}
    parts = [introduction.rstrip() + "\n"]
    for heading, rules in RULES.items():
        parts += [f"## {texts[heading]}\n", *map(part, rules)]
    return _STATED.sub(lambda match: threshold(match[1]) if match[1] in DEFAULTS else match[0], "\n".join(parts))


def change(rule: str) -> str:
    """What to change, as an item of a list."""
    function = next(each for rules in RULES.values() for each in rules if each.__name__ == rule)
    (text,) = re.findall(r"^Change: (.*?)(?=^[A-Z]\w+: )", inspect.getdoc(function) or "", re.MULTILINE | re.DOTALL)
    return wrapped(f"- `{rule}`: {filled(text)}", indent="  ") + "\n"


def runbook(page: str) -> str:
    """The runbook: the section of an alert about findings lists what to change for each of its rules."""
    rules = (ROOT / "prometheus" / "rules" / "diagnoses.yml").read_text(encoding="utf-8")
    for alert in (each for group in yaml.safe_load(rules)["groups"] for each in group["rules"] if "alert" in each):
        (names,) = re.findall(r'spark_finding_rule=~?"([\w|]+)"', alert["expr"])
        section = re.compile(rf"(^## {alert['alert']}\n(?:(?!^## ).*\n)*?)(?:^- `.*\n(?:  .*\n)*)+", re.MULTILINE)
        items = "".join(map(change, names.split("|")))
        page, times = section.subn(r"\g<1>" + items.replace("\\", r"\\"), page)
        if times != 1:
            raise SystemExit(f"docs/runbook.md has no list of changes below {alert['alert']}: add a line '- `'")
    return page


def meanings() -> Iterator[tuple[str, str]]:
    """Each threshold with the text below it."""
    (model,) = (node for node in ast.parse(inspect.getsource(thresholds)).body if isinstance(node, ast.ClassDef))
    for field, text in zip(model.body, model.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
            yield ast.unparse(field.target), " ".join(str(text.value.value).split())


def reference(page: str) -> str:
    """The page of the reference, with the table of thresholds."""
    before, table, after = re.split(r"(^## config/diagnoses\.yml\n.*?)(?=^## )", page, flags=re.MULTILINE | re.DOTALL)
    rows = "".join(f"| `{key}` | {meaning} |\n" for key, meaning in meanings())
    return f"{before}{table.split('| key |')[0]}| key | meaning |\n|---|---|\n{rows}\n{after}"


def configuration() -> str:
    """The shipped file of thresholds: each with its default and its meaning."""
    lines = [
        "# Thresholds of the diagnoses: docs/diagnoses.md describes each rule and the source of its threshold.",
        "# Times in milliseconds, sizes in bytes, shares from 0 to 1. A missing key has the default that it has here.",
        "# `python scripts/document_rules.py` writes this file.",
    ]
    for key, meaning in meanings():
        value = DEFAULTS[key]
        is_list = isinstance(value, list)
        lines += [f"# {meaning}", f"{key}:" if is_list else f"{key}: {value:.12g}"]
        lines += [f"  - {pair}" for pair in value] if is_list else []
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the files into the tree, or into the folder that is named."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name, write in (("diagnoses.md", diagnoses), ("reference.md", reference), ("runbook.md", runbook)):
        _write(target / "docs" / name, write((ROOT / "docs" / name).read_text(encoding="utf-8")))
    _write(target / "config" / "diagnoses.yml", configuration())


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
