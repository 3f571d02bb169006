from spark_app.eventlog.diagnoses import diagnose
from spark_app.eventlog.diagnoses.rules.failed_application import failed_application
from spark_app.eventlog.diagnoses.rules.stopped_driver import stopped_driver
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from tests.unit.eventlog import log
from tests.unit.eventlog.diagnoses.cases import BEGAN, DEFAULTS, stage, task

LIMITS = Thresholds()


def test_the_failure_is_the_first_finding() -> None:
    """Before a finding that costs minutes."""
    slow = [task(number, 1) for number in range(4)] + [task(4, 300)]
    lines = [
        *stage(slow, seconds=300)[:-1],
        log.job_ended(0, time=BEGAN + 300_000, error="no disk"),
        log.ended(400_000),
    ]
    findings = diagnose.diagnose(log.application(lines), DEFAULTS)
    assert [finding.rule for finding in findings][:2] == ["failed_application", "partition_skew"]
    assert findings[0].text.endswith("its last job: no disk")


def test_a_killed_application_is_told_by_which_signal() -> None:
    """And no error of an earlier job is given as the reason."""
    app = log.application([log.started(), log.job(0, []), log.job_ended(0), log.ended()])
    assert failed_application(app, LIMITS) == []
    app.process_exit_code = 143
    (finding,) = failed_application(app, LIMITS)
    assert finding.text == "The application was killed by SIGTERM (exit code 143)"
    assert finding.numbers == {"exit_code": 143}


def test_the_failing_query_is_named() -> None:
    """With its error."""
    lines = [log.started(), log.query(7), log.query_ended(7, error="java.lang.X: no\n\tat a.b"), log.ended()]
    (finding,) = failed_application(log.application(lines), LIMITS)
    assert (finding.query, finding.text.partition("; ")[2]) == (7, "query 7 (d): java.lang.X: no")


def test_a_driver_on_kubernetes_that_was_stopped_in_a_job_says_what_may_have_stopped_it() -> None:
    """And where the reason is: its pod, if the log names it."""
    pod = {"spark.master": "k8s://https://host", "spark.kubernetes.namespace": "jobs"}
    rest = [log.job(0, []), log.ended()]
    (finding,) = stopped_driver(log.application([log.started(), log.environment(pod), *rest]), LIMITS)
    assert finding.text.startswith("The application was stopped while 1 job ran: its program stopped it, or its driver")
    assert finding.advice.startswith("`kubectl -n jobs get events`")
    named = pod | {"spark.kubernetes.driver.pod.name": "shop-driver"}
    (finding,) = stopped_driver(log.application([log.started(), log.environment(named), *rest]), LIMITS)
    assert finding.advice.startswith("`kubectl -n jobs describe pod shop-driver`")


def test_a_python_driver_that_got_the_signal_says_so() -> None:
    """Its log has the exit code; without a job that ran, nothing of it was lost."""
    pod, ended = log.environment({"spark.master": "k8s://https://host"}), log.ended() | {"ExitCode": 143}
    (finding,) = stopped_driver(log.application([log.started(), pod, log.job(0, []), ended]), LIMITS)
    assert finding.text.startswith("The application was stopped while 1 job ran: its driver got SIGTERM, as when")
    over = [log.started(), pod, log.job(0, []), log.job_ended(0), ended]
    assert stopped_driver(log.application(over), LIMITS) == []


def test_a_driver_without_a_pod_an_end_or_a_job_was_not_stopped_by_kubernetes() -> None:
    """One that has no end may still run."""
    pod = log.environment({"spark.master": "k8s://https://host"})
    job, ended = [log.job(0, [])], [log.ended()]
    for lines in ([*job, *ended], [pod, *job], [pod, *ended], [pod, *job, log.job_ended(0), *ended]):
        assert stopped_driver(log.application([log.started(), *lines]), LIMITS) == []


def test_a_known_failure_has_advice_of_its_own() -> None:
    """Whatever failed: a job, a query, or the program before it ran a job."""
    strict = '[CAST_INVALID_INPUT] The value \'x\' of the type "STRING" cannot be cast to "INT"'
    lines = [log.started(), log.job(0, []), log.job_ended(0, error=strict), log.ended()]
    (finding,) = failed_application(log.application(lines), LIMITS)
    assert (finding.cause, "try_cast" in finding.advice) == ("cast", True)


def test_the_exception_that_ended_the_program_is_named_with_its_line() -> None:
    """Where no job and no query had failed; of one from the JVM, its own words."""
    java = (
        "An error occurred while calling o30.load.\n: java.sql.SQLException: No suitable driver\n\tat java.sql.Driver"
    )
    stack = f'Traceback (most recent call last):\n  File "/jobs/daily.py"\npy4j.protocol.Py4JJavaError: {java}'
    record = {
        "Event": "spark-app.LogRecord", "time": 1, "severity": "FATAL", "logger": "py4j.protocol",
        "message": "uncaught exception", "file": "/jobs/daily.py", "line": 7, "exception": stack,
    }  # fmt: skip
    app = log.application([log.started(), record, log.ended()])
    app.process_exit_code = 1
    (finding,) = failed_application(app, LIMITS)
    assert finding.text == (
        "The application failed with exit code 1; daily.py:7: java.sql.SQLException: No suitable driver"
    )
    assert finding.cause == "jdbc_driver"
