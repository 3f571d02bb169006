from tests.unit.eventlog.diagnoses.stream_cases import application, batch, found


def test_overhead_names_its_largest_part() -> None:
    """And costs what it took more than the work."""
    durations = {"triggerExecution": 900, "addBatch": 200, "queryPlanning": 500, "walCommit": 100}
    finding = found(application(batch(number, seconds=0.9, durations_ms=durations) for number in range(20)))
    assert finding["batch_overhead"].cost_ms == 20 * 400
    assert finding["batch_overhead"].advice.startswith("queryPlanning is planning: ")
