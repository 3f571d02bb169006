"""The scripts that run queries and pipelines in the stack, with a program in place of spark-app."""

import os
import subprocess
import time
from pathlib import Path
from typing import Final

import pytest

from tests.polling import patience, poll_until

ROOT: Final = Path(__file__).resolve().parents[2]
DAY_SECONDS: Final = 86_400
OF_THE_STACK: Final = {"SPARK_APP_KAFKA__SERVERS": "kafka:19092"}
SPARK_APP: Final = """#!/usr/bin/env bash
case "$*" in
    "data --help") exit "${NO_DEMO:-0}" ;;
    data*)
        echo "$$ $*" >>"$SPARK_APP_HOME/sent"
        [[ $(wc -l <"$SPARK_APP_HOME/sent") -gt ${FAILURES:-0} ]] || exit 4
        exec tail --follow /dev/null
        ;;
esac
read -r children </proc/$$/task/$$/children || true
echo "$*${children:+ with demo}"
until [[ -z $children || $(wc -l <"$SPARK_APP_HOME/sent") -gt ${FAILURES:-0} ]]; do sleep 0.05; done
exit 3
"""
"""Notes what sends records, which fails so often and then never ends; says what runs the queries, and ends with 3 once
records are sent."""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home folder with the program beside it."""
    for folder in ("bin", "logs", "runs", "reports"):
        (tmp_path / folder).mkdir()
    (tmp_path / "sent").touch()
    (tmp_path / "bin" / "spark-app").write_text(SPARK_APP, encoding="utf-8")
    (tmp_path / "bin" / "spark-app").chmod(0o755)
    return tmp_path


def run(
    home: Path, *arguments: str, script: str = "run_streaming.sh", **variables: str
) -> subprocess.CompletedProcess[str]:
    """A script, as `docker exec` starts it."""
    path = f"{home / 'bin'}:{os.environ['PATH']}"
    command = [str(ROOT / "scripts" / script), *arguments]
    environment = {"PATH": path, "SPARK_APP_HOME": str(home), **variables}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=patience(60))


def test_the_demo_shop_sends_records_as_long_as_the_queries_run(home: Path) -> None:
    """The exit code is that of the queries; what sends records ends after them."""
    done = run(home, "events", "--for", "5m", DEMO_RATE="7", **OF_THE_STACK)
    assert (done.returncode, done.stdout, done.stderr) == (3, "streaming events --for 5m with demo\n", "")
    pid, _, words = (home / "sent").read_text(encoding="utf-8").strip().partition(" ")
    assert words == "data stream --rate 7 --for 365d"
    poll_until(lambda: not Path("/proc", pid).exists(), "the end of what sends records")


def test_the_demo_shop_starts_again_when_it_ends(home: Path) -> None:
    """And says so in its log; the last one ends after the queries."""
    run(home, DEMO_RATE="7", FAILURES="2", **OF_THE_STACK)
    pids = [line.split()[0] for line in (home / "sent").read_text(encoding="utf-8").splitlines()]
    assert len(pids) == 3
    poll_until(lambda: not Path("/proc", pids[-1]).exists(), "the end of what sends records")
    log = (home / "logs" / "demo-shop.log").read_text(encoding="utf-8").splitlines()
    assert log == [f"the demo shop ended with code 4; it starts again in {pause} s" for pause in (1, 2)]


@pytest.mark.parametrize(
    ("arguments", "variables"),
    [
        ((), {}),
        ((), {"SPARK_APP_KAFKA__SERVERS": "mine:9092"}),
        ((), OF_THE_STACK | {"DEMO_RATE": "0"}),
        ((), OF_THE_STACK | {"NO_DEMO": "2"}),
        (("status",), OF_THE_STACK),
        (("events", "--available-now"), OF_THE_STACK),
        (("reset", "events"), OF_THE_STACK),
    ],
)
def test_a_source_of_the_users_own_gets_no_records_of_the_demo_shop(
    home: Path, arguments: tuple[str, ...], variables: dict[str, str]
) -> None:
    """Nor does a command that waits for none."""
    done = run(home, *arguments, **variables)
    assert (done.returncode, done.stdout) == (3, " ".join(("streaming", *arguments)) + "\n")


@pytest.mark.parametrize("script", ["run_streaming.sh", "run_etl.sh", "run_ml.sh"])
def test_scripts_delete_old_log_files_and_no_run(home: Path, script: str) -> None:
    """A query that has run for long keeps the files that say so: `retention` alone knows which runs have ended."""
    names = ("runs/r/running", "runs/r/run.json", "reports/r.html", "logs/old.jsonl", "logs/new.jsonl")
    for name in names:
        (home / name).parent.mkdir(exist_ok=True)
        (home / name).touch()
        age = 1 if name == "logs/new.jsonl" else 20
        os.utime(home / name, times=(time.time() - age * DAY_SECONDS,) * 2)
    assert run(home, "2024-01-01", script=script).returncode == 3
    assert [name for name in names if not (home / name).exists()] == ["logs/old.jsonl"]
