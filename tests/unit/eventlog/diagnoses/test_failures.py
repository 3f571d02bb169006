"""Failures that one machine cannot raise are known by what Spark, Kafka and cluster managers say of them."""

import pytest

from spark_app.eventlog.diagnoses.failures import FAILURES, failure_of

TASK = "Job aborted due to stage failure: Task 3 in stage 2.0 failed 4 times, most recent failure: Lost task 3.3: "
LOST = f"{TASK}ExecutorLostFailure (executor 2 exited caused by one of the running tasks) Reason: "
WORKER = 'Traceback (most recent call last):\n  File "/opt/spark/python/lib/pyspark.zip/pyspark/worker.py", line 3\n'
SAID = [
    (f"{TASK}java.io.IOException: No space left on device", "full_disk"),
    ("12 tasks (1077.5 MiB) is bigger than spark.driver.maxResultSize (1024.0 MiB)", "result_too_large"),
    ("Cannot broadcast the table that is larger than 8.0 GiB: 9.1 GiB.", "broadcast_too_large"),
    (f"{LOST}Container killed by YARN for exceeding physical memory limits.", "container_memory"),
    (f"{LOST}The executor with id 2 exited with exit code 137(SIGKILL).", "container_memory"),
    (f"{TASK}java.lang.OutOfMemoryError: Java heap space\n\tat java.util.Arrays", "executor_memory"),
    ("java.lang.OutOfMemoryError: Java heap space\n\tat org.apache.spark.sql.Dataset.collect", "driver_memory"),
    (f"{LOST}Executor heartbeat timed out after 128936 ms", "executor_lost"),
    ("org.apache.spark.shuffle.FetchFailedException: Failed to connect to host-7:7337", "lost_shuffle"),
    ("[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9", "python_version"),
    (f"{WORKER}ModuleNotFoundError: No module named 'pyarrow.parquet'", "module_missing_on_executors"),
    ("[DELTA_CONCURRENT_APPEND.WITHOUT_HINT] Transaction conflict detected.", "delta_conflict"),
    ("io.delta.exceptions.ConcurrentDeleteReadException: This transaction attempted to read", "delta_conflict"),
    ("[KAFKA_DATA_LOSS.START_OFFSET_RESET] Some data may have been lost", "offsets_gone"),
    ("org.apache.kafka.common.errors.UnknownTopicOrPartitionException: This server does not host", "topic_missing"),
    ("TimeoutException: Timed out waiting for a node assignment. Call: describeTopics", "kafka_unreachable"),
    ("errors.TimeoutException: Call(callName=listOffsets on broker 1, deadlineMs=17) timed out", "kafka_unreachable"),
    ("org.apache.kafka.common.config.ConfigException: No resolvable bootstrap urls", "kafka_unreachable"),
    ("[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log.", "two_queries_one_checkpoint"),
    ("java.nio.file.AccessDeniedException: s3a://lake/x: (Service: S3, Status Code: 403)", "credentials"),
    ("PSQLException: FATAL: password authentication failed for user", "credentials"),
    ("java.net.UnknownHostException: warehouse.internal", "unreachable"),
    ("Kryo serialization failed: Buffer overflow. Available: 0, required: 93", "serializer_buffer"),
    (f"{WORKER}ZeroDivisionError: division by zero", None),
    ("java.lang.IllegalStateException: the third batch is not for us", None),
]


@pytest.mark.parametrize(("error", "name"), SAID)
def test_an_error_is_known_by_its_words(error: str, name: str | None) -> None:
    """Where one fits several kinds, by what happened first; of one that is not known nothing is said."""
    failure = failure_of(error)
    assert (failure.name if failure else None) == name


def test_advice_about_a_module_names_it() -> None:
    """As the error does."""
    failure = failure_of("pyspark/worker.py\nModuleNotFoundError: No module named 'sklearn'")
    assert failure is not None
    assert "has no module sklearn. Install it there" in failure.advice


def test_each_kind_has_a_name_of_its_own() -> None:
    """Findings of the same cause are one."""
    names = [failure.name for failure in FAILURES]
    assert len(names) == len({*names})
