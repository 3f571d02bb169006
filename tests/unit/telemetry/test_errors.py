import logging

from spark_app.telemetry.errors import TelemetryErrors


def test_an_error_is_kept_once() -> None:
    """The same line, the same exception of a call or the same log call of the SDK is one entry."""
    errors, log = TelemetryErrors(), logging.makeLogRecord
    errors.add("a\n  b")
    errors.add("a b")
    for seconds in (1, 2):
        errors.handle(log({"name": "x", "msg": "retrying in %d s", "args": (seconds,), "levelno": logging.WARNING}))
        errors.guard("not done", divmod, seconds, 0)
    assert list(errors) == [
        "a b",
        "x: retrying in 1 s",
        "not done: ZeroDivisionError: integer division or modulo by zero",
    ]


def test_the_list_is_bounded() -> None:
    """It has at most 50 lines of at most 500 characters."""
    errors = TelemetryErrors()
    for number in range(1000):
        errors.add(f"{number}" + "x" * 1000)
    assert [len(line) for line in errors] == [500] * 50


def test_credentials_of_an_endpoint_are_removed() -> None:
    """The user and password of a URL are replaced: errors are written to a log that others read."""
    errors = TelemetryErrors()
    errors.add("cannot send to https://me:s3cr:et@host:4318/v1/traces or you:pw@host")
    assert list(errors) == ["cannot send to https://(redacted)@host:4318/v1/traces or (redacted)@host"]


def test_an_error_is_logged_once() -> None:
    """The log of a run gets the errors since the last call."""
    errors = TelemetryErrors()
    errors.add("a")
    assert errors.unlogged() == ["a"]
    errors.add("b")
    assert errors.unlogged() == ["b"]
    assert errors.unlogged() == []
