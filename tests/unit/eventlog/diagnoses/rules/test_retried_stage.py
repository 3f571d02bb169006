import pytest

from spark_app.eventlog.findings import Severity
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import found


@pytest.mark.parametrize(("end", "severity"), [(9000, "warning"), (2200, "info")])
def test_another_attempt_costs_its_time(end: int, severity: Severity) -> None:
    """And tells why there is one, if the attempt before it is known."""
    first = [log.stage(0), log.stage(0, end=2150, error="FetchFailed(BlockManagerId(1), no such file)")]
    lines = [log.started(), log.job(0, [0]), *first, log.stage(0, 1), log.stage(0, 1, end=end)]
    finding = found(lines)["retried_stage"]
    assert (finding.cost_ms, finding.severity, finding.stage) == (end - 2100, severity, (0, 1))
    assert "no such file" in finding.text
    assert "attempt 1" in finding.text


def test_another_attempt_without_a_failure_makes_again_what_was_lost() -> None:
    """Also where the first was skipped, since another job had made it; of a log that is not whole nobody knows."""
    again = [log.stage(0, 1), log.stage(0, 1, end=9000)]
    for first in ([], [log.stage(0), log.stage(0, end=2150)]):
        text = found([log.started(), log.job(0, [0]), *first, *again])["retried_stage"].text
        assert text.endswith("its shuffle output was lost")
    cut_off = found([log.started(), log.job(7, [0]), *again])["retried_stage"].text
    assert cut_off.endswith("the log does not say why")
