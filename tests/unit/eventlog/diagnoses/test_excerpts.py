import pytest

from spark_app.eventlog.diagnoses import excerpts


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no such file", "no such file"),
        ("a.B: no\n\tat a.b(C.java:1)\n\tat d.e(F.java:2)", "a.B: no"),
        ("a.B: no\n\tat a.b(C.java:1)\nCaused by: c.D: 1\n\tat e\nCaused by: e.F: 2\n\tat g", "a.B: no; e.F: 2"),
        (
            'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    f(1)\nValueError: x\n 38000',
            "ValueError: x",
        ),
        ("Traceback (most recent call last):", "Traceback (most recent call last):"),
    ],
    ids=["a line", "Java", "Java with causes", "Python", "nothing"],
)
def test_an_error_is_told_without_its_stack(text: str, said: str) -> None:
    """What was raised, and of Java what caused it in the end."""
    assert excerpts.error(text) == said


def test_no_secret_of_an_error_is_told() -> None:
    """What a driver of a database says has the address that it was given, with all that is in it."""
    text = "a.SQLException: no way to jdbc:db://me:hunter2@h?password=hunter2\n\tat a.b(C.java:1)"
    assert excerpts.error(text) == "a.SQLException: no way to jdbc:db://(redacted)@h?password=(redacted)"
