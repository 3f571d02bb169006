import pytest

from spark_app.eventlog.model.repeated_reads import MAX_REMEMBERED
from tests.unit.eventlog.diagnoses.plans import GIB, MINUTE, application, found, node, ran, scan


def test_what_is_read_three_times_costs_two_of_them() -> None:
    """Twice a minute of scanning too much, on 4 cores."""
    times = [ran(number, scan(files=4, size=GIB, scan_time=MINUTE)) for number in range(3)]
    (finding,) = found(application(*times), "repeated_scan")
    assert finding.cost_ms == 2 * MINUTE / 4
    assert finding.numbers == {"times": 3, "files": 4, "read_again_bytes": 2 * GIB}
    assert "file:/sales is read 3 times, each time 1.0 GiB in 4 files, first by query 0 (Query 0)" in finding.text


def test_other_files_of_the_same_table_are_no_repetition() -> None:
    """Other partitions, or a table that has grown; ids of columns differ in each query and mean nothing."""
    days = [scan(files=4, size=GIB, filters=f"[(day#{number} = {number})]", scan_time=MINUTE) for number in range(3)]
    grown = [scan("/log", files=number + 1, size=(number + 1) * GIB, scan_time=MINUTE) for number in range(3)]
    same = [scan("/same", files=4, size=GIB, filters=f"[(day#{number}L = 7)]", scan_time=MINUTE) for number in range(3)]
    app = application(*(ran(number, plan) for number, plan in enumerate([*days, *grown, *same])))
    assert [finding.text.split()[0] for finding in found(app, "repeated_scan")] == ["file:/same"]


def test_little_that_is_read_again_is_none() -> None:
    """Less than five seconds, however many bytes."""
    quick = [ran(number, scan("/quick", files=4, size=GIB, scan_time=9000)) for number in range(3, 6)]
    assert not found(application(*quick), "repeated_scan")


def test_a_format_without_a_scan_time_costs_between_its_shortest_and_its_other_scans() -> None:
    """Of three scans, in tasks of 90, 60 and 90 ms, two cost 120 to 150 ms of 4 cores; two in one task share it."""
    lines = [ran(number, scan(files=4, size=GIB)) for number in range(3)]
    ends = next(line for line in lines[1] if line["Event"] == "SparkListenerTaskEnd")
    ends["Task Metrics"] |= {"Executor Run Time": 60}
    (finding,) = found(application(*lines), "repeated_scan", cost_ms=0, cost_ratio=0)
    assert (finding.cost_low_ms, finding.cost_high_ms) == (0.9 * 120 / 4, 0.9 * 150 / 4)
    assert finding.cost_ms == pytest.approx(0.9 * 135 / 4)
    twice = node("Union", scan(files=4, size=GIB), scan(files=4, size=GIB))
    (finding,) = found(application(ran(0, twice), ran(1, twice)), "repeated_scan", cost_ms=0, cost_ratio=0)
    assert finding.cost_ms == pytest.approx(0.9 * 3 * 45 / 4)


def test_a_query_that_has_not_ended_has_read_nothing_yet() -> None:
    """Its numbers are not whole."""
    times = [ran(number, scan(files=4, size=GIB, scan_time=MINUTE)) for number in range(3)]
    assert not found(application(*times[:2], times[2][:-1]), "repeated_scan")


def test_what_is_kept_in_mind_is_bounded() -> None:
    """A new folder in each of thousands of queries is forgotten again; what is read often stays."""
    often = scan("/often", files=4, size=GIB)
    lines = [ran(number, scan(f"/{number}", files=1, size=1)) for number in range(MAX_REMEMBERED + 5)]
    lines = [*lines[:3], ran(5000, often), *lines[3:700], ran(5001, often), *lines[700:], ran(5002, often)]
    app = application(*lines)
    assert len(app.repeated_reads.reads) == MAX_REMEMBERED
    assert [finding.numbers["times"] for finding in found(app, "repeated_scan", cost_ms=0, cost_ratio=0)] == [3]


def test_a_plan_that_is_none_is_no_reason_to_stop_reading() -> None:
    """A line that another program has damaged."""
    broken = {"Location": "", "metrics": [], "children": []}
    assert application(ran(1, broken)).repeated_reads.reads == []
