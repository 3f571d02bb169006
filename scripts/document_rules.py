"""Writes what rules declare: docs/diagnoses.md, runbook.md, reference.md, config/diagnoses.yml, alerts and their tests.

Run it as `.venv/bin/python scripts/document_rules.py`; a folder as argument gets the files instead. What stands above
the first rule of a section, outside of the table, and beside the lists of changes in the runbook is written by hand.
"""

import inspect
import re
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

import jinja2

from spark_app.eventlog.diagnoses.diagnose import rules_of
from spark_app.eventlog.diagnoses.query import QueryView
from spark_app.eventlog.diagnoses.rule import Alert, Rule, rules
from spark_app.eventlog.diagnoses.stage import StageView
from spark_app.eventlog.diagnoses.stream import StreamView
from spark_app.eventlog.diagnoses.thresholds import all_limits
from spark_app.eventlog.model.application import Application

ROOT: Final = Path(__file__).resolve().parents[1]
WIDTH: Final = 140
RULES: Final = {
    "Stages": rules_of(StageView),
    "Queries": rules_of(QueryView),
    "Streams": rules_of(StreamView),
    "Applications": rules_of(Application),
}
DEFAULTS: Final[dict[str, Any]] = {key: limit.default for key, limit in all_limits().items()}
APPLICATION: Final = (
    "{{ $labels.spark_app_name }} in {{ $labels.deployment_environment_name }}"
    "{{ with $labels.k8s_namespace_name }}, namespace {{ . }},{{ end }}"
)
"""What alerts say of an application, as a template of Prometheus."""
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


def part(rule: Rule) -> str:
    """The part of a rule in docs/diagnoses.md, made of its docstring."""
    summary, *_ = text = (inspect.getdoc(rule.check) or "").splitlines()
    labelled = _LABEL.sub(r"**\1**: ", "\n".join(text[1:]))
    paragraph = f"**Seen**: {summary[0].lower()}{summary[1:]} {labelled}"
    return f"### {rule.name}\n\n{wrapped(filled(paragraph))}\n"


def diagnoses(page: str) -> str:
    """The page of the diagnoses: each section with its introduction and its rules, and the defaults of thresholds."""
    introduction, *sections = re.split(r"^## ", page, flags=re.MULTILINE)
    texts = {section.split("\n")[0]: section.split("### ")[0].rstrip() for section in sections}
    parts = [introduction.rstrip() + "\n"]
    for heading, of_section in RULES.items():
        parts += [f"## {texts[heading]}\n", *map(part, of_section)]
    return _STATED.sub(lambda match: threshold(match[1]) if match[1] in DEFAULTS else match[0], "\n".join(parts))


def change(rule: Rule) -> str:
    """What to change, as an item of a list."""
    (text,) = re.findall(r"^Change: (.*?)(?=^[A-Z]\w+: )", inspect.getdoc(rule.check) or "", re.MULTILINE | re.DOTALL)
    return wrapped(f"- `{rule.name}`: {filled(text)}", indent="  ") + "\n"


def alerts() -> dict[str, list[Rule]]:
    """The alerts by their names, each with its rules: first the one that describes it."""
    found: dict[str, list[Rule]] = {}
    for rule in rules().values():
        if rule.alert is not None:
            found.setdefault(rule.alert.name, []).append(rule)
    return {name: sorted(found[name], key=lambda rule: not _alert(rule).text) for name in sorted(found)}


def _alert(rule: Rule) -> Alert:
    if rule.alert is None:
        raise ValueError(f"{rule.name} declares no alert")
    return rule.alert


def runbook(page: str) -> str:
    """The runbook: the section of an alert about findings lists what to change for each of its rules."""
    for alert, of_alert in alerts().items():
        section = re.compile(rf"(^## {alert}\n(?:(?!^## ).*\n)*?)(?:^- `.*\n(?:  .*\n)*)+", re.MULTILINE)
        items = "".join(map(change, sorted(of_alert, key=lambda rule: rule.name)))
        page, times = section.subn(r"\g<1>" + items.replace("\\", r"\\"), page)
        if times != 1:
            raise SystemExit(f"docs/runbook.md has no list of changes below {alert}: add a line '- `'")
    return page


def prometheus(template: str) -> str:
    """The alerts of the rules for Prometheus, or their tests for promtool."""
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(ROOT / "scripts" / "templates"), autoescape=False, trim_blocks=True,
        variable_start_string="[[", variable_end_string="]]", block_start_string="[%", block_end_string="%]",
        keep_trailing_newline=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    shown = [
        {
            **{key: getattr(_alert(first), key) for key in ("name", "text", "severity")},
            "rules": sorted(each.name for each in (first, *others)),
            "described_by": first.name,
        }
        for first, *others in alerts().values()
    ]
    return environment.get_template(template).render(alerts=shown, application=APPLICATION)


def reference(page: str) -> str:
    """The page of the reference, with the table of thresholds."""
    before, table, after = re.split(r"(^## config/diagnoses\.yml\n.*?)(?=^## )", page, flags=re.MULTILINE | re.DOTALL)
    rows = "".join(f"| `{key}` | {limit.meaning} |\n" for key, limit in all_limits().items())
    return f"{before}{table.split('| key |')[0]}| key | meaning |\n|---|---|\n{rows}\n{after}"


def configuration() -> str:
    """The shipped file of thresholds: each with its default and its meaning."""
    lines = [
        "# Thresholds of the diagnoses: docs/diagnoses.md describes each rule and the source of its threshold.",
        "# Times in milliseconds, sizes in bytes, shares from 0 to 1. A missing key has the default that it has here.",
        "# `python scripts/document_rules.py` writes this file.",
    ]
    for key, limit in all_limits().items():
        value = DEFAULTS[key]
        is_list = isinstance(value, tuple)
        lines += [f"# {limit.meaning}", f"{key}:" if is_list else f"{key}: {value:.12g}"]
        lines += [f"  - {list(pair)}" for pair in value] if is_list else []
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the files into the tree, or into the folder that is named."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT
    for name, write in (("diagnoses.md", diagnoses), ("reference.md", reference), ("runbook.md", runbook)):
        _write(target / "docs" / name, write((ROOT / "docs" / name).read_text(encoding="utf-8")))
    _write(target / "config" / "diagnoses.yml", configuration())
    for folder in ("rules", "tests"):
        _write(target / "prometheus" / folder / "diagnoses.yml", prometheus(f"diagnoses_{folder}.yml.j2"))


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
