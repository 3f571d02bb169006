from msgspec.structs import replace

from spark_app.stack_samples.driver_calls import DriverCalls
from spark_app.stack_samples.samples import Sample
from tests.unit.stack_samples.made import Taken

JVM = Sample(1100, 0, 1, 0)


def calling(*threads: str) -> DriverCalls:
    """Threads of the program that wait for the JVM from 1000 to 1200, at a line each; a sample is 10 ms."""
    taken = Taken()
    taken.process("driver", "driver")
    taken.process("python_driver", None)
    for number, place in enumerate(threads):
        taken.add(1000, place, "call@py4j/java_gateway.py:3", process=1, thread=number, state="waiting")
    samples = taken.done()
    samples.samples = [replace(sample, weight=20.0) for sample in samples.samples]
    return DriverCalls(samples)


def test_the_line_that_waits_for_the_jvm_has_called_it() -> None:
    """While it waits, and from one look before, since when it may have."""
    calls = calling("main@job.py:4!")
    lines = {at: calls.line_of(replace(JVM, at_ms=at)) for at in (989, 990, 1100, 1200, 1201)}
    assert lines == {989: "", 990: "main (job.py:4)", 1100: "main (job.py:4)", 1200: "main (job.py:4)", 1201: ""}


def test_of_several_threads_that_wait_none_is_named() -> None:
    """It cannot be told whose call the JVM works at; a thread without a line of the program does not count."""
    assert not calling("main@job.py:4!", "other@job.py:9!").line_of(JVM)
    assert calling("main@job.py:4!", "library@lib.py:9").line_of(JVM) == "main (job.py:4)"


def test_a_line_that_waits_for_something_else_has_called_nothing() -> None:
    """As for a file, or a lock."""
    taken = Taken()
    taken.process("driver", "driver")
    taken.process("python_driver", None)
    taken.add(1100, "main@job.py:4!", "acquire@threading.py:3", process=1, state="waiting")
    assert not DriverCalls(taken.done()).line_of(JVM)
