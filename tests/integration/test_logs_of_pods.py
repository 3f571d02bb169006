"""Logs of executors that Kubernetes killed, evicted, deleted or did not start say so, and their quiet twins do not.

They were recorded on a cluster of one node by `tests/eventlogs/record_pods.py`.
"""

from typing import Final, NamedTuple

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.comparison import profiling
from spark_app.eventlog.model.executor_loss import kind_of
from spark_app.eventlog.model.outcome import ending_of
from spark_app.eventlog.model.pod_memory import pod_memory
from tests.eventlogs import walking
from tests.eventlogs.record_pods import CASES, findings, recorded

MIB: Final = 1024**2
RULES: Final = {"lost_executors", "missing_executors", "failed_tasks"}
UNDISTURBED: Final = "undisturbed"


class Told(NamedTuple):
    """What is told of a planted cause: the rule, parts of its text and its advice, and the kind of loss; its twin."""

    rule: str
    text: str
    advice: str
    kind: str | None = None
    twin: str = UNDISTURBED


DELETED: Final = Told("lost_executors", "the pod was deleted", "The log does not say by whom", "deleted")
PLANTED: Final = {
    "out-of-memory-planted": Told(
        "lost_executors",
        "exit code 137, OOMKilled",
        "by the settings 896.0 MiB (512.0 MiB of heap, 384.0 MiB of overhead for all else): "
        "raise spark.executor.memoryOverhead (not set)",
        "out_of_memory",
        "out-of-memory-quiet",
    ),
    "python-out-of-memory-planted": Told(
        "failed_tasks",
        "Python worker exited unexpectedly (crashed)",
        "at the memory limit of its pod, by the settings 896.0 MiB",
        twin="python-out-of-memory-quiet",
    ),
    "evicted-planted": Told(
        "lost_executors",
        'Evicted: Usage of EmptyDir volume "scratch" exceeds the limit "100Mi".',
        "It filled its local disk",
        "evicted",
        "evicted-quiet",
    ),
    "deleted-planted": DELETED,
    "drained-planted": DELETED,
    "preempted-planted": DELETED,
    "unschedulable-planted": Told("missing_executors", "at most 2 of 2 executors", "FailedScheduling: no node"),
    "image-planted": Told(
        "missing_executors", "None of 2 executors", "ErrImagePull: nodes cannot pull spark-app:no-such-tag"
    ),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_cause_is_told_in_the_words_of_kubernetes(name: str) -> None:
    """As far as Spark logs it: who deleted a pod, and why one is pending, is in no event log."""
    expected = PLANTED[name]
    [told] = [finding for finding in findings(name) if finding.rule in RULES]
    assert told.rule == expected.rule
    assert expected.text in told.text
    assert expected.advice in told.advice
    gone = [each.reason for each in reader.read(recorded(name)).app.executors.values() if each.lost_tasks]
    assert {kind_of(reason or "") for reason in gone} == {expected.kind} - {None}


@pytest.mark.parametrize("name", sorted({told.twin for told in PLANTED.values()}))
def test_a_quiet_twin_is_told_nothing(name: str) -> None:
    """The same program with enough memory or disk, or left alone; its tasks wait, as those of any such program."""
    assert {finding.rule for finding in findings(name)} <= {"external_wait"}


def test_the_limit_of_a_pod_is_that_of_kubernetes() -> None:
    """Whose API server had 896Mi for executors with a heap of 512m, and 1536Mi for those with 1g of overhead."""
    limits = [("out-of-memory-planted", 896), ("out-of-memory-quiet", 1536)]
    for name, limit in limits:
        memory = pod_memory(reader.read(recorded(name)).app.properties)
        assert memory is not None
        assert memory.limit == limit * MIB


@pytest.mark.parametrize("name", ["driver-evicted-planted", "image-planted"])
def test_a_driver_that_is_evicted_or_deleted_ends_its_log_in_order(name: str) -> None:
    """With exit code 0: that it was stopped while a job ran is all that the log knows."""
    app = reader.read(recorded(name)).app
    assert (ending_of(app).outcome, app.exit_code) == ("incomplete", 0)
    [told] = [finding for finding in findings(name) if finding.rule == "stopped_driver"]
    assert told.text.startswith("The application was stopped while 1 job ran: its program stopped it, or")
    assert f"describe pod {app.properties['spark.kubernetes.driver.pod.name']}`" in told.advice


@pytest.mark.parametrize("name", CASES)
def test_no_span_is_without_its_parent(name: str) -> None:
    """Whatever became of the pods."""
    walking.assert_is_forest(*walking.read(recorded(name)))


def test_the_same_program_has_the_same_settings_in_each_run() -> None:
    """Names of pods, addresses and traces are new each time, and no reason why a run is slower than the one before."""
    first, second = (
        profiling.run_profile(reader.read(recorded(name))).settings for name in (UNDISTURBED, "deleted-planted")
    )
    differing = {name for name in first | second if first.get(name) != second.get(name)}
    assert differing == {"spark.recorded.cause"}
