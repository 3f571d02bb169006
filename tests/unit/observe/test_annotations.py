from pathlib import Path

import pytest

from spark_app.eventlog import reader
from spark_app.eventlog.model.host_load import HostLoad, LoadSample
from spark_app.observe.annotations import annotate
from tests.unit.eventlog.logs import program, write

LOAD = HostLoad(2, (LoadSample(1000, 3, {"cpu": 7}, 40), LoadSample(2000, 4, {}, 90)))


@pytest.mark.parametrize("is_alive", [True, False])
def test_what_observe_measured_travels_with_a_closed_log(tmp_path: Path, *, is_alive: bool) -> None:
    """Also while its JVM, which outlives the program by a moment, is not gone yet."""
    reading = reader.read(write(tmp_path / "app-1", program()))
    reading.app.host_load, reading.app.process_exit_code, reading.app.is_alive = LOAD, 7, is_alive
    annotate(reading, [], tmp_path)
    again = reader.read(tmp_path / "app-1")
    assert (again.app.host_load, again.app.process_exit_code, again.remarks) == (LOAD, 7, [])


def test_a_log_that_grows_is_left_alone(tmp_path: Path) -> None:
    """Spark would write into the midst of what is added."""
    log = write(tmp_path / "app-1.inprogress", program())
    before, reading = log.read_bytes(), reader.read(log)
    reading.app.is_alive = True
    annotate(reading, [], tmp_path)
    assert log.read_bytes() == before


def test_what_was_not_measured_stays_unknown(tmp_path: Path) -> None:
    """A kernel may not count what Python workers use."""
    reading = reader.read(write(tmp_path / "app-1", program()))
    reading.app.host_load, reading.app.is_alive = HostLoad(2, (LoadSample(1000, 3, {}),)), False
    annotate(reading, [], tmp_path)
    assert reader.read(tmp_path / "app-1").app.host_load == HostLoad(2, (LoadSample(1000, 3, {}, None),))
