from spark_app.eventlog.diagnoses.rules.excluded_executors import excluded_executors
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.eventlog.findings import Finding
from tests.unit.eventlog import log
from tests.unit.eventlog.log import Line


def found(*lines: Line) -> list[Finding]:
    """What the rule finds."""
    return excluded_executors(log.application([log.started(), *lines]), Thresholds())


def test_an_exclusion_from_a_stage_is_an_info() -> None:
    """It ends with the stage."""
    of_stage = [{"stageId": stage, "stageAttemptId": 0} for stage in (3, 4)]
    lines = [log.exclusion("ExecutorExcludedForStage", executorId="1", **stage) for stage in of_stage]
    (finding,) = found(*lines, log.exclusion("NodeExcludedForStage", hostId="h", **of_stage[0]))
    assert finding.severity == "info"
    assert "excluded 1 executor and 1 host from 2 stage attempts" in finding.text
    assert "executor 1, host h" in finding.text


def test_an_exclusion_from_the_application_is_a_warning() -> None:
    """It lasts for an hour, unless a setting says otherwise."""
    (finding,) = found(log.exclusion("NodeExcluded", hostId="h", executorFailures=2))
    assert (finding.severity, finding.numbers["excluded_hosts"]) == ("warning", 1)
    assert "excluded 1 host from the whole application" in finding.text


def test_without_exclusions_nothing_is_found() -> None:
    """As in every application without spark.excludeOnFailure.enabled."""
    assert not found()
