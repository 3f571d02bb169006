import os
import subprocess
import sys
import time
from pathlib import Path

from spark_app.observe import host_load
from spark_app.observe.host_load import HostLoadSampler
from spark_app.observe.processes import busy_ns
from tests.polling import poll_until

SOME = "some avg10=1.00 avg60=0.50 avg300=0.10 total=4200\n"


def proc(folder: Path, runnable: int = 7, pressure: str = SOME) -> Path:
    """A folder as the kernel has it."""
    (folder / "pressure").mkdir(exist_ok=True)
    (folder / "loadavg").write_text(f"3.10 2.50 1.20 {runnable}/812 4711\n")
    (folder / "pressure" / "cpu").write_text(f"{pressure}full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
    return folder


def test_a_sample_has_the_other_runnable_threads_and_the_pressure(tmp_path: Path) -> None:
    """The reader itself runs, too, and does not count."""
    sampler, before = HostLoadSampler(proc(tmp_path)), time.time() * 1000
    sampler.sample()
    assert sampler.load is not None
    (sample,) = sampler.load.samples
    assert (sample.runnable, sample.stalled_us, sample.python_ms) == (6, {"cpu": 4200}, 0)
    assert before - 1 <= sample.time_ms <= time.time() * 1000 + 1
    assert sampler.load.processors >= 1


def test_what_a_kernel_does_not_count_is_unknown(tmp_path: Path) -> None:
    """Pressure may be switched off; a system without `/proc` has no samples."""
    sampler = HostLoadSampler(proc(tmp_path, pressure=""))
    sampler.sample()
    assert sampler.load is not None
    assert sampler.load.samples[0].stalled_us == {}
    nowhere = HostLoadSampler(tmp_path / "nowhere")
    nowhere.sample()
    assert nowhere.load is None


def test_samples_of_a_long_time_are_thinned_out(tmp_path: Path) -> None:
    """They reach from the start to the end, and are bounded."""
    sampler = HostLoadSampler(proc(tmp_path))
    for number in range(host_load.MAX_SAMPLES * 3):
        if number == host_load.MAX_SAMPLES * 3 - 4:
            proc(tmp_path, runnable=99)
        sampler.sample()
    assert sampler.load is not None
    assert host_load.MAX_SAMPLES / 2 <= len(sampler.load.samples) <= host_load.MAX_SAMPLES
    assert {sampler.load.samples[0].runnable, sampler.load.samples[-1].runnable} == {6, 98}


def test_the_time_of_python_workers_is_kept_when_they_end(tmp_path: Path) -> None:
    """Spark ends workers that are idle; the sum never falls."""
    sampler = HostLoadSampler(proc(tmp_path), jvms=lambda: [Path(f"/proc/{os.getpid()}")])
    with subprocess.Popen([sys.executable, "-c", "sum(range(10**7)); input()"], stdin=subprocess.PIPE) as worker:
        thread = Path(f"/proc/{worker.pid}/task/{worker.pid}")
        poll_until(lambda: busy_ns(thread.parents[1]).get(thread, 0) > 50_000_000, "50 ms of work")
        sampler.sample()
    sampler.sample()
    assert sampler.load is not None
    during, after = (sample.python_ms or 0 for sample in sampler.load.samples)
    assert 50 <= during <= after


def test_this_machine_is_measured() -> None:
    """Where it runs Linux, as the tests do."""
    sampler = HostLoadSampler()
    sampler.sample()
    assert sampler.load is not None


def test_a_sample_is_taken_beside_each_look(tmp_path: Path) -> None:
    """The look comes first."""
    looks: list[int] = []
    sampler = HostLoadSampler(proc(tmp_path))
    look = sampler.beside(lambda: looks.append(1))
    look()
    assert sampler.load is not None
    assert (len(looks), len(sampler.load.samples)) == (1, 1)
