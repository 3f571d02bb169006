"""Samples of the stacks of executors of a real standalone cluster, whose workers started before the command."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from spark_app.eventlog import reader
from tests.eventlogs.standalone import cluster
from tests.integration.test_stack_samples import PROGRAM, SHORT, WORKER, Run, observed, of_role, weights

OF_CLUSTER: Final = (
    '.master("{master}").config("spark.executor.memory", "512m").config("spark.executor.cores", "1")'
    '.config("spark.executor.extraJavaOptions", {java!r})'
)


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The URL of a master with two workers."""
    with cluster(tmp_path_factory.mktemp("cluster") / "daemons") as url:
        yield url


def on_cluster(program: str, master: str) -> str:
    """A program, on the cluster, whose executors start as drivers of tests do."""
    of_cluster = OF_CLUSTER.format(master=master, java=os.environ["SPARK_SUBMIT_OPTS"])
    return program.replace('.master("local[2]")', of_cluster)


@pytest.fixture(scope="module")
def sampled(tmp_path_factory: pytest.TempPathFactory, master: str) -> Run:
    """One run with samples, whose executors share a folder with the driver."""
    folder, shared = tmp_path_factory.mktemp("sampled"), tmp_path_factory.mktemp("shared")
    options = ("--profile", "--profile-hertz", "99", "--profile-executors", str(shared))
    run = observed(folder, *options, program=on_cluster(PROGRAM.format(seconds=4, texts=600_000), master))
    assert not list(shared.iterdir())
    return run


def test_executors_of_a_master_in_another_process_are_sampled(sampled: Run) -> None:
    """Both kinds of samples of each: those of the JVM, and those of the Python workers, with their tasks."""
    samples, app = sampled.samples, reader.read(sampled.log).app
    executors = set(app.executors) - {"driver"}
    assert len(executors) > 1
    for role in ("executor", WORKER):
        assert {each.executor for each in samples.processes if each.role == role} == executors
    assert of_role(samples, "driver")
    ran = weights(samples, WORKER)
    assert ran["much"] / (ran["much"] + ran["little"]) == pytest.approx(0.7, abs=0.08)
    assert {each.task for each in of_role(samples, WORKER)} <= {run.id for run in sampled.task_runs}
    ran = weights(samples, "executor")  # Java 17 does not see how much of them is digests
    assert any(name.endswith("GeneratedIteratorForCodegenStage1.processNext") for name in ran)
    assert sampled.code == 3
    assert "no stack" not in sampled.stderr


def test_executors_without_a_folder_are_named(tmp_path: Path, master: str) -> None:
    """They start as before, and the remark says what to do."""
    run = observed(tmp_path, "--profile", program=on_cluster(SHORT, master))
    assert run.code == 3
    assert {each.role for each in run.samples.processes} == {"driver", "python_driver"}
    assert "executors was sampled: those of another master need --profile-executors" in run.stderr
    assert not any("defaultJavaOptions" in name for name in reader.read(run.log).app.properties)
