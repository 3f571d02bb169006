"""The recipes of docs/recipes.md, followed literally in a copy of the tree."""

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.runs import run_record
from tests.contract.dashboards import calls, queries
from tests.contract.metrics import parsed
from tests.readme import ROOT
from tests.receivers import Receiver, attributes, receiver

PAGE: Final = (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8")
DAY: Final = "2024-01-01"
ONLY_SOME: Final = {
    "pipeline_data_freshness_seconds",
    "pipeline_data_stale_timestamp_seconds",
    "pipeline_quality_nulls_total",
    "pipeline_run_last_failure_timestamp_seconds",
}
"""Series that a pipeline has only if it judges the age or the nulls of rows, or after a failure."""


ADDED: Final = {
    "A daily table": ["app/etl/refunds.py", "config/etl/refunds.yml", "tests/unit/etl/test_refunds.py"],
    "A query": ["app/streaming/removals.py", "config/streaming/removals.yml", "tests/unit/streaming/test_removals.py"],
    "A model": ["app/ml/quick_refunds.py", "tests/unit/ml/test_quick_refunds.py"],
}
"""The files of each recipe that only adds files."""


def recipe(heading: str) -> str:
    """The text below a heading."""
    return re.split(r"^## ", PAGE.split(f"## {heading}\n", 1)[1], maxsplit=1, flags=re.MULTILINE)[0]


def write_files(heading: str, tree: Path) -> list[str]:
    """Writes the files of a recipe into a copy, in which they are new; returns their names."""
    files = re.findall(r"^`([\w./]+)`\n\n```\w+\n(.*?)^```$", recipe(heading), re.DOTALL | re.MULTILINE)
    for name, content in files:
        assert not (tree / name).exists()
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        (tree / name).write_text(content, encoding="utf-8")
    return [name for name, _ in files]


def copy_tree(folder: Path) -> Path:
    """A copy of all files that git tracks or would track."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if (ROOT / name).is_file():
            shutil.copy2(ROOT / name, target)
    return folder


def of_tree(tree: Path) -> dict[str, str]:
    """The variable with which Python imports library and project of a copy, and not those of this clone."""
    return {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'src'}"}


def run(tree: Path, home: Path, *arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python command in the copy."""
    environment = os.environ | of_tree(tree) | {"SPARK_APP_HOME": str(home)} | variables
    done = subprocess.run(
        [sys.executable, *arguments], cwd=tree, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def extended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy with what the recipes add to the shop."""
    tree = copy_tree(tmp_path_factory.mktemp("extended"))
    apply("An expectation", tree)
    apply("A feature", tree)
    apply("A metric", tree)
    [topic] = re.findall(r"^```python\n(.*?)^```$", recipe("A topic"), re.DOTALL | re.MULTILINE)
    with (tree / "app" / "topics.py").open("a", encoding="utf-8") as topics:
        topics.write(topic)
    added = {heading: write_files(heading, tree) for heading in ADDED}
    assert added == ADDED
    return tree


@pytest.fixture(scope="module")
def home(extended: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The home folder of the copy, with a day that was run."""
    folder = tmp_path_factory.mktemp("home")
    run(extended, folder, "-m", "spark_app", "etl", "customers", "daily_sales", "--date", DAY)
    return folder


def follow(heading: str, tree: Path, home: Path, **variables: str) -> list[str]:
    """The standard output of each command of a recipe."""
    commands = re.findall(r"^spark-app (.*)$", recipe(heading), re.MULTILINE)
    return [run(tree, home, "-m", "spark_app", *command.split(), **variables).stdout for command in commands]


def points_of(file: Path) -> Iterator[tuple[str, dict[str, str], dict[str, Any]]]:
    """The points of a metrics file, with the name of the metric and their labels."""
    for line in file.read_text(encoding="utf-8").splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            for metric in (each for scope in resource["scopeMetrics"] for each in scope["metrics"]):
                data: Any = metric.get("sum") or metric.get("gauge") or metric.get("histogram")
                for point in data["dataPoints"]:
                    labels = {each["key"]: each["value"]["stringValue"] for each in point["attributes"]}
                    yield metric["name"], labels, point


def series_of(received: Receiver) -> Iterator[tuple[str, dict[str, str]]]:
    """The series that a receiver got, as Prometheus names them, with their labels: those of no run, too."""
    from spark_app.vocabulary import names
    from spark_app.vocabulary.prometheus_names import series

    metrics = {metric.name: metric for metric in names.METRICS}
    for metric in (each for each in received.metrics if each.name in metrics):
        for point in getattr(metric, str(metric.WhichOneof("data"))).data_points:
            labels = {label.replace(".", "_"): value for label, value in attributes(point).items()}
            yield series(metrics[metric.name]), labels


def matches(selector: Any, name: str, labels: dict[str, str]) -> bool:
    """Whether a series is among those that a selector selects."""
    wanted = re.sub(r"_(bucket|sum|count)$", "", selector.name or "")
    return name == wanted and all(
        re.fullmatch(each.value, labels.get(each.name, "")) is not None
        for each in selector.matchers.matchers
        if str(each.op) in ("MatchOp.Equal", "MatchOp.Re") and each.name != "__name__"
    )


def test_a_third_pipeline_takes_three_files_and_is_seen_everywhere(extended: Path, home: Path) -> None:
    """It runs by its name, after the pipeline whose table it reads; its run has a report and is on every dashboard."""
    with receiver() as received:
        follow("A daily table", extended, home, OTEL_EXPORTER_OTLP_ENDPOINT=received.http_endpoint)
    (folder,) = home.glob("runs/*-etl.refunds-*")
    record = run_record.read(folder)
    assert (record.pipeline, record.slice, record.outcome) == ("etl.refunds", DAY, "succeeded")
    assert record.counts["published"] > 0
    assert f"etl.refunds {DAY}" in (home / "reports" / f"{record.run_id}.html").read_text(encoding="utf-8")
    metrics = list(series_of(received))
    asked = [query for query in queries() if query.kind == "prometheus" and "$pipeline" in query.content["expr"]]
    assert len(asked) > 10
    for query in asked:
        for _, selector in calls(parsed(query.expression(pipeline="etl.refunds"))):
            vector = getattr(selector, "vector_selector", selector)
            if vector.name in ONLY_SOME or not (vector.name or "").startswith("pipeline_"):
                continue
            assert any(matches(vector, name, labels) for name, labels in metrics), f"{query}: {vector.name}"


def test_a_further_query_takes_three_files(extended: Path, home: Path) -> None:
    """It runs by its name, reads what the demo shop has dropped, and has a report."""
    run(extended, home, "-m", "spark_app", "data", "stream", "--rate", "1000", "--for", "3s", "--to", "files")
    follow("A query", extended, home)
    (folder,) = home.glob("runs/*-streaming.removals-*")
    record = run_record.read(folder)
    assert (record.outcome, record.counts["read"] > 1000) == ("succeeded", True)
    assert "streaming.removals" in (home / "reports" / f"{record.run_id}.html").read_text(encoding="utf-8")


def test_a_further_model_takes_two_files_and_a_feature_an_entry(extended: Path, home: Path) -> None:
    """It is found by its name, and its tables can be listed."""
    (said,) = follow("A model", extended, home)
    assert "no version yet" in said


def test_the_tests_and_the_contracts_of_what_was_added_pass(extended: Path, home: Path) -> None:
    """Those that each recipe brings, and those that hold for every pipeline, query, model and feature."""
    tests = [files[-1] for files in ADDED.values()]
    rules = ["tests/unit/test_features.py", "tests/contract/test_layout.py", "tests/contract/test_columns.py"]
    run(extended, home, "-m", "pytest", "-q", *tests, *rules)


def apply(heading: str, tree: Path, *, without: str = "") -> None:
    """Applies the diff of a recipe to a copy, apart from the file of one name."""
    (diff,) = re.findall(r"^```diff\n(.*?)^```$", recipe(heading), re.DOTALL | re.MULTILINE)
    parts = [part for part in re.split(r"^(?=diff )", diff, flags=re.MULTILINE) if part]
    chosen = "".join(part for part in parts if not without or f"b/{without}" not in part)
    subprocess.run(["git", "apply", "--recount", "--unidiff-zero", "-"], input=chosen, cwd=tree, text=True, check=True)


def refused(tree: Path, *tests: str) -> set[str]:
    """The names of those test modules that do not pass in a copy."""
    command = [sys.executable, "-m", "pytest", "-q", *tests]
    done = subprocess.run(
        command, cwd=tree, env=os.environ | of_tree(tree), capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, 1), done.stdout
    return {Path(name).name for name in re.findall(r"^(?:FAILED|ERROR) (\S+?)::", done.stdout, re.MULTILINE)}


def test_an_expectation_takes_a_line_and_a_limit(home: Path) -> None:
    """It is enforced with its own limit, and recorded."""
    (folder,) = home.glob("runs/*-etl.daily_sales-*")
    (result,) = [each for each in run_record.read(folder).expectations if each.expectation == "channel.allowed"]
    assert (result.violations, result.limit) == (0, 0.02)


def test_a_metric_takes_a_declaration(home: Path) -> None:
    """The run has measured it by its label, under the name of its pipeline."""
    (folder,) = home.glob("runs/*-etl.daily_sales-*")
    points = [each for file in folder.glob("metrics*.jsonl") for each in points_of(file) if each[0] == "shop.revenue"]
    assert sorted(labels["amount_category"] for _, labels, _ in points) == ["large", "medium", "small"]
    assert {labels["pipeline.name"] for _, labels, _ in points} == {"etl.daily_sales"}
    assert all(point["asDouble"] > 0 for _, _, point in points)


def test_an_alert_takes_a_rule_cases_and_a_heading(tmp_path: Path) -> None:
    """The contract tests refuse an alert without either; `make test-stack` has promtool judge its cases."""
    for without in ("prometheus/tests/quality.yml", "docs/runbook.md", ""):
        tree = copy_tree(tmp_path / f"tree-{len(without)}")
        apply("An alert", tree, without=without)
        assert bool(refused(tree, "tests/contract/test_alerts.py")) == bool(without)


def test_a_diagnosis_takes_one_file_and_a_pair_of_programs(tmp_path: Path) -> None:
    """All else is written from it, and what holds for each rule holds for it, too, without another line."""
    tree, documented = copy_tree(tmp_path / "tree"), "tests/contract/test_rules_documented.py"
    write_files("A diagnosis", tree)
    apply("A diagnosis", tree)
    assert refused(tree, documented)
    for command in re.findall(r"^python (.*)$", recipe("A diagnosis"), re.MULTILINE):
        run(tree, tmp_path / "home", *command.split())
    of_rules = (f"tests/unit/{name}" for name in ("eventlog/diagnoses", "truth", "annexes/tune", "report/results"))
    assert not refused(
        tree, documented, "tests/contract/test_alerts.py", *of_rules, "tests/integration/test_planted_causes.py"
    )
    assert "### many_jobs" in (tree / "docs" / "diagnoses.md").read_text(encoding="utf-8")


def test_an_annex_takes_one_folder(tmp_path: Path) -> None:
    """Its section is in reports, and nothing that holds for annexes is broken."""
    tree = copy_tree(tmp_path / "tree")
    assert len(write_files("An annex", tree)) == 4
    assert not refused(
        tree, "tests/unit/annexes/hosts", "tests/unit/report/test_page.py", "tests/contract/test_layout.py"
    )
    shutil.rmtree(tree / "src" / "spark_app" / "annexes" / "hosts")
    assert refused(tree, "tests/unit/annexes/hosts", "tests/unit/report/test_page.py") == {"test_plugin.py"}
