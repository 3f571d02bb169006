"""Lines become events with the fields that are needed; what is broken is an error, what is foreign nothing."""

import pytest
from msgspec import Raw

from spark_app.eventlog.parse import events
from spark_app.eventlog.parse.events import Accumulable, DriverNumbers, JobStart, TaskEnd, counted
from spark_app.vocabulary.spark_progress import Progress

TASK_END = (
    b'{"Event":"SparkListenerTaskEnd","Stage ID":3,"Stage Attempt ID":1,"Task Type":"ResultTask",'
    b'"Task End Reason":{"Reason":"ExceptionFailure","Class Name":"java.lang.Error","Description":"no"},'
    b'"Task Info":{"Task ID":7,"Index":2,"Attempt":1,"Launch Time":1000,"Executor ID":"0","Host":"h",'
    b'"Locality":"ANY","Speculative":true,"Getting Result Time":0,"Finish Time":1500,"Failed":true,"Killed":false}}'
)


def test_a_task_that_failed_has_its_reason_and_no_numbers_of_its_own_making() -> None:
    """Times are those of the scheduler; metrics that the log does not have stay absent."""
    found = events.event(TASK_END)
    assert isinstance(found, TaskEnd)
    assert (found.stage, found.stage_attempt, found.info.launched, found.info.finished) == (3, 1, 1000, 1500)
    assert (found.reason.error_type, found.reason.description, found.info.is_speculative) == (
        "java.lang.Error",
        "no",
        True,
    )
    assert found.metrics is None


def test_a_job_leads_to_its_trace_and_its_query() -> None:
    """Of all local properties only those that lead somewhere are kept."""
    found = events.event(
        b'{"Event":"SparkListenerJobStart","Job ID":4,"Submission Time":1,"Stage Infos":[],"Stage IDs":[5,6],'
        b'"Properties":{"traceparent":"00-a-b-01","spark.sql.execution.id":"9","spark.app.name":"x"}}'
    )
    assert isinstance(found, JobStart)
    assert found.stages == [5, 6]
    assert found.properties is not None
    assert (found.properties.traceparent, found.properties.execution, found.properties.query) == (
        "00-a-b-01",
        "9",
        None,
    )


def test_numbers_of_the_driver_are_pairs() -> None:
    """As Spark writes them: a list of two."""
    found = events.event(
        b'{"Event":"org.apache.spark.sql.execution.ui.SparkListenerDriverAccumUpdates","executionId":1,'
        b'"accumUpdates":[[64,12]]}'
    )
    assert isinstance(found, DriverNumbers)
    assert found.updates == [(64, 12)]


def test_a_kind_that_nobody_needs_is_nothing() -> None:
    """Whatever later versions of Spark add."""
    assert events.event(b'{"Event":"org.example.SomethingNew","a":[1,2]}') is None


@pytest.mark.parametrize(
    "line", [b"", b"{", b'{"a":1}', TASK_END[:-9], TASK_END.replace(b'"Stage ID":3', b'"Stage ID":"x"')]
)
def test_a_broken_line_is_an_error(line: bytes) -> None:
    """It is for the reader to count it and to go on."""
    with pytest.raises(ValueError):  # noqa: PT011 - msgspec's own words differ by what is broken
        events.event(line)


@pytest.mark.parametrize(
    "line",
    [
        TASK_END.replace(b'"h"', b'"\xff"'),
        TASK_END.replace(b'"h"', b'"h","New":' + b"[" * 5000 + b"]" * 5000),
        TASK_END.replace(b'"Launch Time":1000', b'"Launch Time":' + b"9" * 5000),
    ],
)
def test_a_hostile_line_is_an_error_like_any_other(line: bytes) -> None:
    """Bytes that are no text, more levels than Python can follow, a number without end."""
    with pytest.raises(ValueError):  # noqa: PT011 - msgspec's own words differ by what is broken
        events.event(line)


def test_a_plan_that_is_too_deep_is_an_error_like_any_other() -> None:
    """Nobody has to know of Python's limit."""
    deep = Raw(b'{"nodeName":"Union","children":[' * 3000 + b"]}" * 3000)
    with pytest.raises(ValueError, match="nested too deeply"):
        events.plan(deep)


def test_only_numbers_are_counted() -> None:
    """Accumulables of a program may hold anything."""
    values = [b"7", b'"8"', b"-1", b'"x"', b"[1]", b"1.5", '"\u00b2"'.encode(), b'"' + b"9" * 5000 + b'"', b'"\xff"']
    accumulables = [Accumulable(number, value=Raw(value)) for number, value in enumerate(values)]
    assert counted(accumulables) == {0: 7, 1: 8, 2: -1}


PROGRESS = (
    b'{"Event":"org.apache.spark.sql.streaming.StreamingQueryListener$QueryProgressEvent","progress":{"id":"q",'
    b'"runId":"r","name":"orders","timestamp":"2026-11-22T11:57:54.001Z","batchId":7,"batchDuration":293,'
    b'"durationMs":{"triggerExecution":293,"addBatch":209},"eventTime":{"max":"2026-11-22T11:57:53.773Z",'
    b'"watermark":"2026-11-22T11:57:46.773Z"},"stateOperators":[{"operatorName":"stateStoreSave","numRowsTotal":28,'
    b'"numRowsRemoved":7,"commitTimeMs":165,"numShufflePartitions":3,'
    b'"customMetrics":{"rocksdbPutCount":18,"SnapshotLastUploaded.partition_1_default":-1}}],'
    b'"sources":[{"description":"KafkaV2[Subscribe[orders]]","startOffset":"{\\"orders\\":{\\"0\\":5,\\"1\\":5}}",'
    b'"endOffset":"{\\"orders\\":{\\"0\\":8,\\"1\\":9}}","latestOffset":"{\\"orders\\":{\\"0\\":20,\\"1\\":9,\\"2\\":4}}",'
    b'"numInputRows":7,"inputRowsPerSecond":"NaN","metrics":{"avgOffsetsBehindLatest":"6.0"}}],'
    b'"sink":{"description":"files","numOutputRows":-1},"observedMetrics":{"rows":{"values":[40,["a"],null],"schema":'
    b'{"type":"struct","fields":[{"name":"read","type":"long"},{"name":"traceparents","type":"array"},{"name":"n"}]}}}}}'
)


def progress_of(line: bytes) -> Progress:
    """The progress in a line."""
    found = events.event(line)
    assert isinstance(found, events.QueryProgress)
    return found.progress


def test_a_progress_tells_of_state_sources_and_observations() -> None:
    """Records behind are those of all partitions, also of one that is new."""
    found = progress_of(PROGRESS)
    assert (found.rows_read, found.lag, found.has_batch) == (7, {"orders": 16}, True)
    assert (found.newest_event, found.watermark, found.started) == (1795348673773, 1795348666773, 1795348674001)
    assert (found.state[0].rows, found.state[0].removed, found.state[0].custom["rocksdbPutCount"]) == (28, 7, 18)
    assert found.observed == {"rows": {"read": 40, "traceparents": ["a"], "n": None}}


def test_what_a_progress_does_not_tell_is_unknown() -> None:
    """Among it what Spark logs as -1, also where a clock was set back."""
    for line in (PROGRESS, PROGRESS.replace(b"293,", b"-293,")):
        found = progress_of(line)
        assert found.sink is not None
        assert (found.sink.rows, found.state[0].updated, found.state[0].memory_bytes) == (None, None, None)
