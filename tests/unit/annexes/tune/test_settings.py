from itertools import chain
from pathlib import Path
from typing import Final

import pytest

from spark_app.annexes.tune.settings import STATISTICS, Candidate, candidates, in_force
from spark_app.eventlog import reader
from spark_app.eventlog.diagnoses.diagnose import diagnose
from spark_app.eventlog.diagnoses.rule import rules
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.diagnoses.trials import GIB
from spark_app.eventlog.findings import Finding
from spark_app.eventlog.model.application import Application
from tests.unit.eventlog import log
from tests.unit.eventlog.made import Run, Stage, Task

EVENTLOGS: Final = Path(__file__).parents[3] / "eventlogs"
HOST: Final = 16 * GIB


def of(name: str) -> list[Candidate]:
    """What is tried for a recorded run of seconds, where half a second counts."""
    app = reader.read(EVENTLOGS / name).app
    return candidates(app, diagnose(app, Thresholds(cost_ms=500)), HOST)


def finding(rule: str, **numbers: float) -> Finding:
    """A finding with some evidence."""
    return Finding(rule, "warning", "text", "advice", numbers, 1000)


def values(app: Application, *findings: Finding, host: int = HOST) -> dict[str, str]:
    """What is tried, by the setting."""
    return {each.setting: each.value for each in candidates(app, findings, host)}


@pytest.mark.parametrize(
    ("cause", "setting", "value"),
    [
        ("tiny_tasks", "spark.sql.adaptive.enabled", "true"),
        ("small_files_read", "spark.sql.files.maxPartitionBytes", "512m"),
        ("sort_merge_join_could_broadcast", "spark.sql.autoBroadcastJoinThreshold", "10m"),
        ("spill", "spark.memory.fraction", "0.6"),
    ],
)
def test_a_recorded_cause_proposes_its_setting_first(cause: str, setting: str, value: str) -> None:
    """With the cost of the finding as what it saves at most; its quiet twin has no such proposal by that finding."""
    first, *_ = of(f"causes/{cause}-planted.zst")
    assert (first.setting, first.value, first.sign) == (setting, value, cause)
    assert first.predicted_ms is not None
    assert cause not in {each.sign for each in of(f"causes/{cause}-quiet.zst")}


@pytest.mark.parametrize("name", ["healthy", "idle-cluster", "gap", "empty"])
def test_for_a_run_without_a_sign_nothing_is_tried(name: str) -> None:
    """Trials take time."""
    assert of(f"diagnoses/{name}.zst") == []


def test_memory_is_not_tried_beyond_half_of_the_host() -> None:
    """In local mode all of it is on this machine."""
    app = Run(1000, [], settings={"spark.master": "local[2]", "spark.driver.memory": "5g"}).application
    assert values(app, finding("spill"))["spark.memory.fraction"] == "0.8"
    assert "spark.driver.memory" not in values(app, finding("spill"))
    assert values(app, finding("spill"), host=64 * GIB)["spark.driver.memory"] == "10240m"


def test_on_a_cluster_the_memory_of_executors_is_tried() -> None:
    """The tasks run there."""
    app = Run(1000, [], settings={"spark.master": "yarn", "spark.executor.memory": "2g"}).application
    assert values(app, finding("memory_under"))["spark.executor.memory"] == "4096m"


def test_memory_that_nobody_used_is_tried_to_save_cost() -> None:
    """Its peak, and something more."""
    app = Run(1000, [], settings={"spark.master": "yarn", "spark.executor.memory": "10g"}).application
    (found,) = candidates(app, [finding("memory_over", peak_heap_bytes=2 * GIB)], HOST)
    assert (found.setting, found.value, found.goal) == ("spark.executor.memory", "2663m", "cost")


@pytest.mark.parametrize(
    ("master", "cores", "value"), [("yarn", "4", "2"), ("yarn", "1", None), ("yarn", "", None), ("local[4]", "4", None)]
)
def test_fewer_tasks_may_share_an_executor(master: str, cores: str, value: str | None) -> None:
    """Where executors have several cores by their setting; in local mode it does nothing."""
    app = Run(1000, [], settings={"spark.master": master, "spark.executor.cores": cores}).application
    assert values(app, finding("spill")).get("spark.executor.cores") == value


@pytest.mark.parametrize(("limit", "value"), [("1000", "0"), ("0", None), (None, None)])
def test_a_limit_of_rows_is_taken_from_small_files(limit: str | None, value: str | None) -> None:
    """It may be why they are small."""
    settings = {} if limit is None else {"spark.sql.files.maxRecordsPerFile": limit}
    app = Run(1000, [], settings=settings).application
    assert values(app, finding("small_files_written")).get("spark.sql.files.maxRecordsPerFile") == value


def test_small_shuffle_partitions_become_as_many_as_the_cores_need() -> None:
    """Without any finding: a short program has none."""
    app = Run(1000, [Stage("sum", 0, 500, [Task(0, 500, read=100_000)])]).application
    (found,) = candidates(app, [], HOST)
    assert (found.setting, found.value, found.now) == ("spark.sql.shuffle.partitions", "2", None)
    large = Run(1000, [Stage("sum", 0, 500, [Task(0, 500, read=300 << 20)])]).application
    assert candidates(large, [], HOST) == []


def rdd_shuffle(*, written_by: str, read_by: str) -> Application:
    """An application whose second stage reads 2 MiB that the first one has shuffled, without SQL."""
    lines = [log.started(), log.environment({"spark.master": "local[2]"}), log.job(0, [0, 1])]
    for number, name in enumerate((written_by, read_by)):
        rows = {"Total Records Read": 9, "Local Bytes Read": 2 << 20} if number else {}
        done, ended = log.task(number, number), log.stage(number, end=3000)
        done["Task Metrics"]["Shuffle Read Metrics"] = rows
        begun = log.stage(number)
        for each in (begun, ended):
            each["Stage Info"] |= {"RDD Info": [{"RDD ID": number, "Name": name}], "Parent IDs": [0] * number}
        lines += [begun, done, ended]
    return log.application(lines)


@pytest.mark.parametrize(
    ("written_by", "read_by", "is_tried"),
    [
        ("MapPartitionsRDD", "ShuffledRDD", True),
        ("PairwiseRDD", "ShuffledRDD", False),
        ("MapPartitionsRDD", "PythonRDD", False),
    ],
)
def test_kryo_is_tried_for_objects_of_the_jvm(written_by: str, read_by: str, is_tried: bool) -> None:  # noqa: FBT001
    """What Python shuffles are bytes already."""
    found = values(rdd_shuffle(written_by=written_by, read_by=read_by))
    assert ("spark.serializer" in found) == is_tried


def to_pandas(version: str, size: int, arrow: str | None) -> Application:
    """An application with a `toPandas` whose tasks sent so many bytes."""
    query, job, ended = log.query(1) | {"description": "toPandas at job.py:5"}, log.job(0, [0]), log.stage(0, end=3000)
    job["Properties"] = {"spark.sql.execution.id": "1"}
    task = log.task(0, 0)
    task["Task Metrics"]["Result Size"] = size
    set_to = {} if arrow is None else {"spark.sql.execution.arrow.pyspark.enabled": arrow}
    lines = [{"Event": "SparkListenerLogStart", "Spark Version": version}, log.started(), log.environment(set_to)]
    return log.application([*lines, query, job, log.stage(0), task, ended])


@pytest.mark.parametrize(
    ("version", "size", "arrow", "value"),
    [
        ("4.1.4", 1 << 20, None, "true"),
        ("4.2.0", 1 << 20, "false", "true"),
        ("4.2.0", 1 << 20, None, None),
        ("3.5.7", 1 << 20, "true", None),
        ("3.5.7", 1 << 19, None, None),
    ],
)
def test_arrow_is_tried_for_large_frames_of_pandas(
    version: str, size: int, arrow: str | None, value: str | None
) -> None:
    """Where it is off: by default, or by its setting."""
    assert values(to_pandas(version, size, arrow)).get("spark.sql.execution.arrow.pyspark.enabled") == value


@pytest.mark.parametrize(
    ("version", "arrow", "value"), [("4.1.4", None, "true"), ("4.2.0", "false", "true"), ("4.2.0", None, None)]
)
def test_arrow_is_tried_for_udfs_where_it_is_off(version: str, arrow: str | None, value: str | None) -> None:
    """Where it is on, Spark has left it out for a UDF that it cannot serve."""
    name = "spark.sql.execution.pythonUDF.arrow.enabled"
    lines = [{"Event": "SparkListenerLogStart", "Spark Version": version}, log.started()]
    app = log.application([*lines, log.environment({} if arrow is None else {name: arrow})])
    assert values(app, finding("row_python_udf")).get(name) == value


def test_what_is_tried_is_a_setting_of_spark() -> None:
    """Because of a finding of a rule, or of a statistic."""
    tried = [trial for rule in rules().values() for trial in rule.tries]
    assert all(each.setting.startswith(("spark.", "{memory}")) for each in chain(tried, *STATISTICS.values()))


def test_a_setting_that_the_program_sets_itself_was_not_in_force() -> None:
    """In its code, or later in its session."""
    app = log.application([log.started(), log.environment({"spark.a": "1"}), log.query(1)])
    assert in_force(app, {"spark.a": "1"}) is None
    assert in_force(app, {"spark.a": "2"}) == "not in force: the program or its launcher sets spark.a to 1"
    assert in_force(app, {"spark.b": "2"}) == "not in force: the program or its launcher sets spark.b"
    app.queries[1].settings["spark.a"] = "5"
    assert in_force(app, {"spark.a": "1"}) == "not in force: the program sets spark.a to 5 in its session"
