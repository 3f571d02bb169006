"""A program is sampled in a process of its own, as drivers and workers of Spark are."""

import json
import statistics
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from spark_app.stack_samples import python_sampler, python_stacks
from spark_app.stack_samples.python_stacks import PythonProcess

INTERVAL_MS: Final = 5.0
COMPUTE: Final = """
import time

def used(seconds):
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        sum(range(1000))

def much():
    used(0.7)

def little():
    used(0.3)
"""
# As `pyspark.taskcontext` does it; the worker idles before its task, and after it.
WORKER: Final = """
import sys, types
class TaskContext:
    _taskContext = None
sys.modules["pyspark.taskcontext"] = types.SimpleNamespace(TaskContext=TaskContext)
used(0.1)
TaskContext._taskContext = types.SimpleNamespace(_taskAttemptId=12)
much()
TaskContext._taskContext = None
used(0.1)
"""
START: Final = "from spark_app.stack_samples import python_sampler\n"


def sampled(folder: Path, program: str, interval_ms: float = INTERVAL_MS) -> list[PythonProcess]:
    """What a program leaves."""
    file = folder / "job.py"
    file.write_text(START + COMPUTE + program, encoding="utf-8")
    logs = folder / "logs"
    logs.mkdir()
    variables = {python_sampler.FOLDER: str(logs), python_sampler.INTERVAL: str(interval_ms)}
    variables |= {"PYTHONPATH": str(Path(python_sampler.__file__).parents[2]), python_sampler.LAUNCH: "token-7"}
    done = subprocess.run([sys.executable, str(file)], env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    read = (python_stacks.read(file) for file in sorted(logs.iterdir()))
    return [process for process in read if process is not None]


def seconds(process: PythonProcess, state: str) -> Mapping[str, float]:
    """The seconds of samples in some state, by each function on the stack."""
    found: dict[str, float] = defaultdict(float)
    for sample in process.samples:
        if sample.state == state:
            for function in {process.frames[index][1] for index in process.stacks[sample.stack]}:
                found[function] += sample.weight * process.interval_ms / 1000
    return found


def test_samples_have_the_time_that_functions_have_used(tmp_path: Path) -> None:
    """By the processor's clock, so that other work of the machine does not count."""
    (process,) = sampled(tmp_path, "python_sampler.start_in_driver()\nmuch()\nlittle()\n")
    ran = seconds(process, "running")
    assert (process.role, process.launch, process.jvm) == ("python_driver", "token-7", None)
    assert ran["much"] / (ran["much"] + ran["little"]) == pytest.approx(0.7, abs=0.03)
    assert ran["much"] + ran["little"] == pytest.approx(1.0, abs=0.1)


HELD: Final = """
import os
write = os.write

def slow(*arguments):
    written = write(*arguments)
    time.sleep(0.02)  # last, so that the lock is given away for long once, and the next look follows at once
    return written

python_sampler.os.write = slow
python_sampler.start_in_driver()
began = time.thread_time()
for index in range(10):
    names = {"used": used}
    exec(f"def new_{index}(): used(0.05)\\ndef held_{index}(): sum(range(5_000_000))", names)
    names[f"new_{index}"]()
    names[f"held_{index}"]()
with open("FILE", "w") as file:
    file.write(str(time.thread_time() - began - 0.5))
"""


def test_a_function_that_holds_the_lock_of_the_interpreter_has_its_time(tmp_path: Path) -> None:
    """One sample after it stands for many, also where it began while the sampler wrote stacks that it had not seen."""
    (process,) = sampled(tmp_path, HELD.replace("FILE", str(tmp_path / "held")))
    truth, ran = float((tmp_path / "held").read_text(encoding="utf-8")), seconds(process, "running")
    assert sum(used for function, used in ran.items() if "held_" in function) == pytest.approx(truth, rel=0.3)


TAKEN: Final = """
taken, current_frames = [], python_sampler._current_frames

def frames():
    found = current_frames()
    taken.append(time.time_ns() // 1_000_000)
    time.sleep(0.03)
    return found

python_sampler._current_frames = frames
python_sampler.start_in_driver()
much()
with open("FILE", "w") as file:
    file.write(" ".join(map(str, taken)))
"""


def test_a_sample_has_the_time_at_which_its_stack_was_taken(tmp_path: Path) -> None:
    """Also where the program works on before the sampler notes it: it may be in another step by then."""
    (process,) = sampled(tmp_path, TAKEN.replace("FILE", str(tmp_path / "taken")), interval_ms=100)
    taken = [int(word) for word in (tmp_path / "taken").read_text(encoding="utf-8").split()]
    late = [min(abs(sample.at_ms - each) for each in taken) for sample in process.samples]
    assert len(late) > 3
    assert statistics.median(late) < 10


SPLIT: Final = """
import json, os, sys
big = json.dumps(list(range(100_000)))
clock, spent = time.perf_counter, {"looping": 0.0, "other": 0.0}

def looping(rounds):
    for index in range(rounds):
        index % 7

def other():
    OTHER

python_sampler.start_in_driver()
until = time.monotonic() + 6
while time.monotonic() < until:
    began = clock()
    looping(ROUNDS)
    between = clock()
    other()
    spent["looping"] += between - began
    spent["other"] += clock() - between
with open("SPENT", "w") as file:
    json.dump(spent, file)
"""


@pytest.mark.parametrize(
    ("other", "rounds", "apart"),
    [("os.path.exists('missing')", 20_000, 0.5), ("json.loads(big)", 300_000, 0.2)],
    ids=["gives the lock away", "holds the lock"],
)
def test_what_a_function_does_with_the_lock_does_not_make_it_hot(
    tmp_path: Path, other: str, rounds: int, apart: float
) -> None:
    """The share of a loop beside it is near the truth: not a small part, as where looks wait for the lock.

    A look still comes some time after it is due, so that a call that gives the lock away has too much by that.
    """
    program = SPLIT.replace("OTHER", other).replace("ROUNDS", str(rounds)).replace("SPENT", str(tmp_path / "spent"))
    (process,) = sampled(tmp_path, program, interval_ms=20)
    spent, found = json.loads((tmp_path / "spent").read_text(encoding="utf-8")), seconds(process, "running")
    truth = spent["looping"] / (spent["looping"] + spent["other"])
    assert found["looping"] / (found["looping"] + found["other"]) == pytest.approx(truth, abs=apart)


def test_threads_that_run_take_turns_as_ever(tmp_path: Path) -> None:
    """To ask for the lock at once would make them change all the time."""
    (process,) = sampled(
        tmp_path,
        """
import sys, threading
usual, found = sys.getswitchinterval(), []
python_sampler.start_in_driver()
threads = [threading.Thread(target=much) for _ in range(3)]
for thread in threads:
    thread.start()
while any(thread.is_alive() for thread in threads):
    used(0.01)
    found.append(sys.getswitchinterval())
assert found.count(usual) > len(found) / 2, found
""",
        interval_ms=50,
    )
    assert seconds(process, "running")["much"] > 1.5


def test_a_thread_that_waits_does_not_run(tmp_path: Path) -> None:
    """Looks at one place are one sample, for each second."""
    (process,) = sampled(
        tmp_path, "import time\ndef idle():\n    time.sleep(1.5)\npython_sampler.start_in_driver()\nidle()\nlittle()\n"
    )
    waited = seconds(process, "waiting")
    assert waited["idle"] == pytest.approx(1.5, abs=0.1)
    assert seconds(process, "running").get("idle", 0) < 0.05
    assert sum(sample.state == "waiting" for sample in process.samples) < 20


def test_only_the_task_of_a_worker_is_sampled(tmp_path: Path) -> None:
    """Samples have its id; before and after it there are none."""
    (process,) = sampled(tmp_path, "python_sampler.start_in_workers(is_daemon=False)\n" + WORKER)
    assert {sample.task for sample in process.samples} == {12}
    assert seconds(process, "running")["<module>"] == pytest.approx(0.7, abs=0.06)


def test_a_daemon_has_the_workers_sampled_that_it_forks_and_not_their_children(tmp_path: Path) -> None:
    """The JVM of a worker is the parent of its daemon."""
    program = """
import os
python_sampler.start_in_workers(is_daemon=True)
worker = os.fork()
if worker == 0:
    child = os.fork()
    if child:
        os.waitpid(child, 0)
    os._exit(0)
os.waitpid(worker, 0)
"""
    (process,) = sampled(tmp_path, program)
    assert process.role == "python_worker"
    assert process.jvm is not None
    assert process.pid != process.jvm


def test_a_file_ends_at_its_size(tmp_path: Path) -> None:
    """From half of it on there are fewer samples."""
    program = "python_sampler.MAX_BYTES = 6000\npython_sampler.start_in_driver()\nused(4)\n"
    (process,) = sampled(tmp_path, program)
    assert process.is_cut
    assert (tmp_path / "logs").stat().st_size < 8000


def test_no_list_of_threads_has_the_sampler(tmp_path: Path) -> None:
    """A program that waits for all its threads ends."""
    sampled(
        tmp_path, "python_sampler.start_in_driver()\nimport threading\nassert threading.active_count() == 1\nlittle()\n"
    )


def test_a_worker_names_its_executor(tmp_path: Path) -> None:
    """Its JVM, the parent, has it in its command line; a driver of a local master has none."""
    program = """
import subprocess, sys
words = ["--executor-id", "3", "--app-id", "app-1"]
command = "import subprocess, sys; sys.exit(subprocess.run([sys.executable, *sys.argv[1:3]]).returncode)"
if len(sys.argv) < 2:
    sys.exit(subprocess.run([sys.executable, "-c", command, __file__, "worker", *words]).returncode)
python_sampler.start_in_workers(is_daemon=False)
used(0.05)
"""
    (process,) = sampled(tmp_path, program)
    assert process.executor == ("app-1", "3")


def test_workers_elsewhere_get_the_variables_with_the_functions_of_the_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the path that the program gives them; nothing where executors inherit the environment."""

    class SparkContext:
        def _do_init(self, path: str) -> None:
            self.environment = {"PYTHONPATH": path}

    variables = {python_sampler.FOLDER: "/shared/python", python_sampler.INTERVAL: "20"}
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    python_sampler.in_workers_of(SparkContext)
    context = SparkContext()
    context._do_init("/own")
    assert context.environment == {"PYTHONPATH": "/own"}
    monkeypatch.setenv(python_sampler.HOOK, "/shared/hook")
    python_sampler.in_workers_of(SparkContext)
    context._do_init("/own")
    assert context.environment == {"PYTHONPATH": "/shared/hook:/own", **variables}


def test_a_program_that_replaces_threads_is_sampled_by_a_real_one(tmp_path: Path) -> None:
    """As gevent does it, whose threads are greenlets: nothing of the sampler runs in them."""
    replaced = """
import _thread, time
def refuse(*_):
    raise SystemExit("the sampler is a greenlet")
real = _thread.start_new_thread
_thread.start_new_thread = time.sleep = _thread.get_ident = refuse
python_sampler.start_in_driver()
_thread.start_new_thread = real
much()
"""
    (process,) = sampled(tmp_path, replaced)
    assert seconds(process, "running")["much"] > 0.5
