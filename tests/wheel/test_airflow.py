"""The DAG of the README, run by Airflow in an environment of its own, beside an installed spark-app."""

import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog.comparison import baselines
from tests.readme import README, ROOT
from tests.wheel.conftest import UV, ran

AIRFLOW: Final = ("apache-airflow-core==3.3.2", "apache-airflow-providers-standard==1.21.0")
JOB: Final = """
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.appName("seven").master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
spark.range(1000).selectExpr("id % 7 AS key").groupBy("key").count().write.parquet(f"{sys.argv[0]}.{sys.argv[1]}")
spark.stop()
"""


@pytest.fixture(scope="module")
def airflow(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of an Airflow without spark-app; its home folder is beside it, with a database."""
    folder = tmp_path_factory.mktemp("airflow")
    newest = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["uv"]["exclude-newer"]
    ran([UV, "venv", "--python", sys.executable, folder / "venv"], folder).check_returncode()
    program = folder / "venv" / "bin" / "airflow"
    python = program.with_name("python")
    ran([UV, "pip", "install", "--python", python, "--exclude-newer", newest, *AIRFLOW], folder).check_returncode()
    ran([program, "db", "migrate"], folder, AIRFLOW_HOME=str(folder)).check_returncode()
    return program


@pytest.fixture(scope="module")
def dag(airflow: Path) -> str:
    """The name of the DAG in the README, which is in the folder of DAGs now."""
    blocks = re.findall(r"^```python\n(.*?)^```$", README, re.DOTALL | re.MULTILINE)
    ((block, name),) = [(block, dag[1]) for block in blocks if (dag := re.search(r'with DAG\("(\w+)"', block))]
    dags = airflow.parents[2] / "dags"
    dags.mkdir()
    (dags / f"{name}.py").write_text(block, encoding="utf-8")
    return name


def dag_run(airflow: Path, tool: Path, dag: str, job: str, home: Path) -> subprocess.CompletedProcess[str]:
    """What Airflow prints of a run of a DAG for a day, with a program as its job and a home folder of spark-app."""
    folder = airflow.parents[2]
    (folder / "dags" / "job.py").write_text(job, encoding="utf-8")
    path = os.pathsep.join([str(tool / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    variables = {
        "AIRFLOW_HOME": str(folder),
        "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
        "AIRFLOW_VAR_SPARK_APP_HOME": str(home),
    }
    return ran([airflow, "dags", "test", dag, "2024-01-01"], folder, PATH=path, **variables)


def test_a_task_leaves_a_report_and_what_its_next_run_is_compared_with(
    airflow: Path, tool: Path, dag: str, tmp_path: Path
) -> None:
    """In the home folder, by the name of DAG and task; the log of the task names the report.

    On a busy machine, the job has a finding that is a warning, and the task fails.
    """
    done = dag_run(airflow, tool, dag, JOB, tmp_path)
    has_warning = "returned a non-zero exit code 5" in done.stdout
    (record,) = (tmp_path / "reports" / "records").glob("*/*.json")
    (report,) = (tmp_path / "reports").glob("local-*.html")
    assert (done.returncode, baselines.load(record).application) == (int(has_warning), "sales.totals")
    assert f"report     {report}" in done.stdout
    assert (airflow.parents[2] / "dags" / "job.py.2024-01-01" / "_SUCCESS").is_file()


def test_a_task_fails_with_the_exit_code_of_observe(airflow: Path, tool: Path, dag: str, tmp_path: Path) -> None:
    """Here a condition holds, since the job used no Spark."""
    done = dag_run(airflow, tool, dag, "", tmp_path)
    assert "returned a non-zero exit code 5" in done.stdout
    assert done.returncode == 1
