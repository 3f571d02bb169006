"""The commands of the README run one after the other, as a reader types them.

`.ci/run` runs `make`, `uv` and the set-up in clones of their own; `make e2e` runs what needs Docker.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import msgspec
import pytest
import yaml

from spark_app.eventlog.comparison import baselines
from spark_app.execution.run import load_jobs, workload
from spark_app.report.results.schema import Results
from spark_app.settings import load_settings
from tests.readme import README, ROOT, commands

ELSEWHERE: Final = ("make", "uv", "source", "./scripts/", "spark-app doctor")
DAY: Final = "OTEL_EXPORTER_OTLP_ENDPOINT=http://localhost:4318 spark-app etl --date 2024-01-01"
SAME: Final = {
    "make run-etl DATE=2024-01-01": DAY,
    "spark-app etl --date 2024-01-01": DAY,
    "spark-app ml": "make run-ml",
    "spark-app streaming --for 1m": 'make run-streaming ARGS="--for 1m"',
}
"""Commands that do what another one does, which is run in their place and once: each takes long."""
HERE: Final = list(
    dict.fromkeys(
        SAME.get(command, command)
        for command in commands()
        if command in (*SAME, *SAME.values()) or not command.startswith(ELSEWHERE)
    )
)

OF_MODELS: Final = re.compile(r"^make run-ml|^spark-app ml\b|\brefund_scores\b")
"""Commands that train a model, or need one: before a release, when all run in their order.

Training makes a week of days first, and takes as long as a third of all commands.
"""


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One home folder for all commands."""
    return tmp_path_factory.mktemp("home")


@pytest.mark.parametrize(
    "command",
    [pytest.param(command, marks=pytest.mark.before_release if OF_MODELS.search(command) else ()) for command in HERE],
)
def test_a_command_of_the_readme_succeeds(home: Path, command: str) -> None:
    """It ends with exit code 0."""
    result = run(home, command)
    assert result.returncode == 0, result.stdout + result.stderr


def test_a_day_leaves_a_profile_of_its_workload_and_steps(home: Path) -> None:
    """Another day is compared with it; a range or a replay is not."""
    records = [baselines.load(file) for file in (home / "reports" / "records").glob("*/*.json")]
    one_day = workload(load_jobs(load_settings(), "etl"), days=1, is_replay=False)
    own = [record for record in records if record.workload == one_day]
    published = {"etl.customers #: publish customers", "etl.daily_sales #: publish daily_sales"}
    # A day that is run again as it was publishes nothing of a state.
    record = next(record for record in own if published <= set(record.steps))
    assert all(0 < milliseconds <= record.duration_ms for milliseconds in record.steps.values())


def test_the_step_of_a_workflow_checks_the_job(tmp_path: Path) -> None:
    """It leaves a summary and a document, and what the next run is compared with where the cache looks for it."""
    project = tmp_path / "project"
    project.mkdir()
    (block,) = re.findall(r"^```yaml\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    _, cache, step, upload = yaml.safe_load(block)  # the wheel has tests of its own
    summary, document = tmp_path / "summary.md", tmp_path / "observed.json"
    result = run(project / ".spark-app", step["run"], GITHUB_STEP_SUMMARY=str(summary), RUNNER_TEMP=str(tmp_path))
    found = msgspec.json.decode(document.read_bytes(), type=Results)
    (application,) = found.applications
    assert (result.returncode, found.exit_code) == (found.exit_code, 5 if found.failed_on else 0), result.stderr
    assert (application.name, application.outcome) == ("wordcount", "succeeded")
    assert summary.read_text(encoding="utf-8").startswith("### wordcount: succeeded")
    assert application.report in map(str, project.glob(upload["with"]["path"]))
    (record,) = (project / cache["with"]["path"]).glob("wordcount-*/*.json")
    assert baselines.load(record).id == application.id


def run(home: Path, command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a command with the environment activated."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["bash", "-c", command],
        cwd=ROOT,
        env=os.environ | {"PATH": path, "SPARK_APP_HOME": str(home)} | variables,
        capture_output=True,
        text=True,
        check=False,
    )
