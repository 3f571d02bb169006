import pytest

from tests.unit.eventlog.diagnoses.stream_cases import application, batch, found


def test_batches_are_longer_than_a_trigger_that_a_property_tells() -> None:
    """The first batch of the run does not count; the cost is what the others took longer."""
    app = application([batch(2 * number, seconds=1.5) for number in range(11)], trigger_ms=1000)
    finding = found(app)["batch_longer_than_trigger"]
    assert (finding.numbers["late_batches"], finding.numbers["trigger_ms"], finding.cost_ms) == (10, 1000, 5000)
    assert "as the starts" not in finding.text


@pytest.mark.parametrize(("batches", "is_late"), [(2, False), (3, True), (4, True)])
def test_few_long_batches_are_late_where_two_are(batches: int, *, is_late: bool) -> None:
    """As many as of ten batches, where the share is a fifth: 35 s each at a trigger of five, but for the first."""
    app = application([batch(n, at=35 * n, seconds=35) for n in range(batches)], trigger_ms=5000)
    assert ("batch_longer_than_trigger" in found(app)) == is_late


def test_batches_without_a_trigger_are_not_too_long() -> None:
    """Each starts when the one before it has ended."""
    app = application(batch(number, at=2 * number, seconds=2) for number in range(20))
    assert "batch_longer_than_trigger" not in found(app)


@pytest.mark.parametrize(
    ("slowdown", "cpu_s", "severity"),
    [(1.9, 10, "warning"), (2.5, 10, "warning"), (3.5, 10, "info"), (3.5, 3, "info"), (3.5, 2, "warning")],
)
def test_a_busy_host_explains_batches_that_are_in_time_on_a_quiet_one(
    slowdown: float, cpu_s: int, severity: str
) -> None:
    """A third of 3 s is as long as the trigger; below twice the time, a host is not busy.

    Of 20 s of run time, tasks that computed for two have waited for something else, such as a service.
    """
    app = application([batch(4 * number, at=4 * number, seconds=3) for number in range(11)], trigger_ms=1000)
    app.deserialize_cpu_ns, app.deserialize_ms = 1_000_000_000, round(1000 * slowdown)
    app.run_ms, app.cpu_ns = 20_000, cpu_s * 1_000_000_000
    finding = found(app)["batch_longer_than_trigger"]
    assert (finding.severity, "the host made" in finding.text) == (severity, severity == "info")
