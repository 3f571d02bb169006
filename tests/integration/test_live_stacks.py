"""The live page of a real job shows the hot line of a Python UDF while its stage runs."""

import json
import os
import re
import subprocess
import sys
import urllib.request
from html import unescape
from pathlib import Path
from typing import Final

from tests.polling import lets_end, poll_until

PROGRAM: Final = """
import os, sys
from pyspark.sql import SparkSession, functions as F


def planted(number):
    total = 0
    while number == 0 and not os.path.exists("go"):
        for index in range(10_000):
            total += index % 7
    return number


spark = SparkSession.builder.master("local[2]").appName("live").getOrCreate()
print(spark.range(0, 8, 1, 2).select(F.udf(planted, "long")("id").alias("all")).agg(F.sum("all")).first()[0])
sys.exit(3)
"""


def section(address: str) -> str:
    """The text of the part of the live page that is about samples of stacks."""
    with urllib.request.urlopen(f"{address}live?seen=0", timeout=30) as answer:
        page = json.load(answer)["page"]
    found = page.partition('<section id="stacks-now">')[2].partition("</section>")[0]
    return " ".join(unescape(re.sub("<[^>]+>", " ", found)).split())


def test_a_live_page_shows_the_hot_line_of_the_running_stage(tmp_path: Path) -> None:
    """With its stage, by the samples of its worker; the command ends as ever, and its report has the samples."""
    (tmp_path / "hot.py").write_text(PROGRAM, encoding="utf-8")
    errors = tmp_path / "stderr"
    variables = {"SPARK_APP_HOME": str(tmp_path / "home"), "PYSPARK_PYTHON": sys.executable, "TMPDIR": str(tmp_path)}
    options = ["--live", "--profile", "--profile-hertz", "49"]
    with errors.open("wb") as stderr:
        process = subprocess.Popen(
            [sys.executable, "-m", "spark_app", "observe", *options, "--", sys.executable, "hot.py"],
            cwd=tmp_path,
            env=os.environ | variables,
            stdout=subprocess.PIPE,
            stderr=stderr,
        )
    with process, lets_end(tmp_path / "go"):
        poll_until(lambda: b"\n" in errors.read_bytes(), "the address of the page")
        address, text = errors.read_text(encoding="utf-8").split()[2], ""

        def is_shown() -> bool:
            nonlocal text
            text = section(address) if process.poll() is None else text
            return (
                re.search(r"Stage \d+ .*planted UDF hot.py:\d+ (9\d|100) %", text) is not None
                or process.poll() is not None
            )

        poll_until(is_shown, lambda: text + errors.read_text(encoding="utf-8"), seconds=120)
        assert process.poll() is None, errors.read_text(encoding="utf-8")
        stage = text.partition("Stage ")[2]
        assert re.match(r"\d+ first at .*hot.py:\d+ \d+ samples .*Python works \d", stage), text
        (tmp_path / "go").touch()
        assert process.stdout is not None
        assert (process.stdout.read().split()[-1], process.wait(120)) == (b"28", 3)
    (page,) = (tmp_path / "home" / "reports").glob("local-*.html")
    report = page.read_text(encoding="utf-8")
    assert 'id="stack-samples"' in report
    assert 'id="stacks-now"' not in report
