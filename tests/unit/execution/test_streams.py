from app.errors import ConfigError, InputError, SparkAppError
from app.execution.streams import joined


def test_a_failure_names_all_queries_that_failed() -> None:
    """The exit code is that of the first; one failure stays what it is."""
    first, second, third = InputError("streaming.a: gone"), ConfigError("streaming.b: wrong"), ValueError("x\n  at y")
    failure = joined([first, second, third])
    assert str(failure) == "3 queries failed: streaming.a: gone; streaming.b: wrong; ValueError: x"
    assert (type(failure), failure.__cause__) == (InputError, first)
    assert type(joined([third, first])) is SparkAppError
    assert joined([third]) is third
