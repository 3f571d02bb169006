import logging

from app.telemetry.problems import Problems


def test_a_problem_is_told_once() -> None:
    """The same line, the same failure or the same log call does not fill the list."""
    problems, log = Problems(), logging.makeLogRecord
    problems.tell("a\n  b")
    problems.tell("a b")
    for seconds in (1, 2):
        problems.handle(log({"name": "x", "msg": "retrying in %d s", "args": (seconds,), "levelno": logging.WARNING}))
        problems.guard("not done", divmod, seconds, 0)
    assert list(problems) == [
        "a b",
        "x: retrying in 1 s",
        "not done: ZeroDivisionError: integer division or modulo by zero",
    ]


def test_the_list_is_short() -> None:
    """At most 50 lines of at most 500 characters, whatever happens."""
    problems = Problems()
    for number in range(1000):
        problems.tell(f"{number}" + "x" * 1000)
    assert [len(line) for line in problems] == [500] * 50


def test_credentials_in_an_endpoint_are_not_told() -> None:
    """What comes before an @ is replaced: problems go to a log file and to whoever reads it."""
    problems = Problems()
    problems.tell("cannot send to https://me:s3cr:et@host:4318/v1/traces or you:pw@host")
    assert list(problems) == ["cannot send to https://(redacted)@host:4318/v1/traces or (redacted)@host"]


def test_what_is_new_is_reported_once() -> None:
    """Each run's log gets what happened since the last one."""
    problems = Problems()
    problems.tell("a")
    assert problems.unreported() == ["a"]
    problems.tell("b")
    assert problems.unreported() == ["b"]
    assert problems.unreported() == []
