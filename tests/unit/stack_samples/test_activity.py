import pytest

from spark_app.stack_samples.activity import Activities, Activity
from spark_app.stack_samples.samples import Role, State
from tests.unit.stack_samples.made import PYTHON, TASK, Taken


@pytest.mark.parametrize(
    ("stack", "state", "activity"),
    [
        ((TASK, "a.B.c"), "running", "jvm"),
        ((TASK, PYTHON), "running", "jvm"),
        ((TASK, "net.jpountz.LZ4.compress"), "native", "jvm"),
        ((TASK, "sun.nio.ch.SocketDispatcher.read0"), "native", "waiting"),
        ((TASK, PYTHON, "sun.nio.ch.SocketDispatcher.read0"), "native", "waiting for python"),
        ((TASK, PYTHON, "java.lang.Object.wait"), "waiting", "waiting for python"),
        (("org.apache.spark.util.RedirectThread.run", "java.io.FileInputStream.readBytes"), "native", "waiting"),
        ((TASK, "java.io.FileInputStream.readBytes"), "native", "reading and writing"),
        ((TASK, "java.io.FileInputStream.readBytes"), "running", "jvm"),
        ((TASK, "a.B.c"), "locked", "lock"),
    ],
)
def test_the_innermost_function_tells_what_a_native_method_does(
    stack: tuple[str, ...], state: State, activity: Activity
) -> None:
    """A compressor works, a socket waits; and for Python where a class that talks to a worker called it."""
    samples = Taken()
    samples.process()
    samples.add(1, *stack, state=state)
    assert Activities(samples.done()).of(samples.samples[0]) == activity


@pytest.mark.parametrize("role", ["python_worker", "python_driver"])
def test_python_works_or_waits(role: Role) -> None:
    """As its sampler says."""
    samples = Taken()
    samples.process(role)
    samples.add(1, "f@job.py:3")
    samples.add(1, "f@job.py:3", state="waiting")
    assert [Activities(samples.done()).of(each) for each in samples.samples] == ["python", "waiting"]
