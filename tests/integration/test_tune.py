"""Programs that know nothing of spark-app, tuned as a user tunes them: what is refused, and what memory they need."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

PROGRAM: Final = """
import sys
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
if len(sys.argv) > 1:
    spark.range(10).write.mode("append").parquet(sys.argv[1])
spark.stop()
"""
SUBMIT: Final = ("spark-submit", "--master", "local[1]", "--conf", "spark.ui.enabled=false")


def tuned(folder: Path, *command: str) -> tuple[int, dict[str, Any]]:
    """The exit code and the document of a tuning of the program with some options."""
    (folder / "job.py").write_text(PROGRAM, encoding="utf-8")
    variables = {
        "SPARK_APP_HOME": str(folder / "home"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }
    done = subprocess.run(
        [sys.executable, "-m", "spark_app", "tune", "--json", "--", *command],
        cwd=folder,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        text=True,
        check=False,
    )
    return done.returncode, json.loads(done.stdout)


def test_a_program_that_adds_rows_is_run_once_and_refused(tmp_path: Path) -> None:
    """The refusal names what it writes; there are the rows of one run."""
    code, document = tuned(tmp_path, *SUBMIT, "job.py", str(tmp_path / "rows"))
    assert code == 2
    assert f"adds rows to {tmp_path / 'rows'}" in document["error"]["message"]
    assert len(list(tmp_path.glob("home/reports/tuning/*/run-*.log"))) == 1


def test_a_program_with_too_little_heap_gets_what_spark_needs(tmp_path: Path) -> None:
    """Its own option is overridden; it is run again once."""
    code, document = tuned(tmp_path, *SUBMIT, "--driver-memory", "256m", "job.py")
    assert (code, document["runs"]) == (0, 2)
    assert [each["settings"] for each in document["memory"]] == [{"spark.driver.memory": "540m"}]
