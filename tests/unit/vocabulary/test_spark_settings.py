import pytest

from spark_app.vocabulary.spark_settings import is_local, without_recording


@pytest.mark.parametrize(
    ("master", "expected"),
    [("local", True), ("local[4]", True), ("local-cluster[2,1,1024]", False), ("spark://host:7077", False)],
)
def test_a_driver_without_executors_is_local(master: str, expected: bool) -> None:  # noqa: FBT001 - a parameter
    """A cluster in one process has executors."""
    assert is_local({"spark.master": master}) is expected


def test_a_log_without_a_master_is_not_local() -> None:
    """Nobody knows; clusters are the rule."""
    assert not is_local({})


def test_options_that_sample_stacks_are_none_of_the_application() -> None:
    """Whatever else is configured stays."""
    ours = "-XX:StartFlightRecording=name=spark-app,settings=none,filename=/a -XX:FlightRecorderOptions=stackdepth=200 "
    ours += "-Xlog:jfr+startup=off"
    assert without_recording(ours) == ""
    assert without_recording(f"-Da=b {ours} -Dc=d") == "-Da=b -Dc=d"
    assert without_recording("-XX:StartFlightRecording=name=own") == "-XX:StartFlightRecording=name=own"
