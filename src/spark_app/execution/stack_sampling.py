"""Samples the stacks of an application of our own, as `spark-app observe --profile` does those of others.

The JVM of the driver is asked to record itself once its session is there: it may be one that `spark-submit` has
started, and one without the Flight Recorder runs on. What fails is a remark, and changes no run.
"""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from pyspark.sql import SparkSession

from spark_app import project
from spark_app.errors import message_of
from spark_app.eventlog import reader
from spark_app.eventlog.parse.locations import log_path
from spark_app.eventlog.reader import Reading
from spark_app.observe.stack_capture import HERTZ, SECONDS_TO_END, StackCapture, incomplete, stack_capture, write_beside
from spark_app.settings import Settings, process_environment
from spark_app.spark.java_runtime import require_java
from spark_app.stack_samples import captured, flight_recorder, python_sampler
from spark_app.stack_samples.captured import Captured
from spark_app.vocabulary.spark_settings import is_local_cluster

Note = Callable[[str], None]
DIAGNOSTICS: Final = "com.sun.management:type=DiagnosticCommand"
"""The bean of Java that does what `jcmd` does."""
INVOKE: Final = ("javax.management.ObjectName", "java.lang.String", "[Ljava.lang.Object;", "[Ljava.lang.String;")
BY_CPU_SINCE: Final = 25
"""The Java from which on there are samples by the time on a processor; two samplers cost twice."""
PROCESS: Final = re.compile(r"_(\d+)\s")
"""Ends the name of a JVM's folder in its repository, as the answer to `JFR.configure` has it."""


class StackSampling:
    """Samples an application from `start` to `stop`, and writes its samples beside its event log; or does nothing."""

    def __init__(self, capture: StackCapture | None, note: Note) -> None:
        """Makes the folder for samples; without a capture there are none."""
        self._capture, self._note = capture, note
        self._variables = capture.variables(is_own=True) if capture else {}
        self._sampler: python_sampler.Sampler | None = None
        self._gateway: Any = None
        self._jvm: int | None = None

    def executor_options(self, master: str) -> str:
        """Options of executors, if they share the folder, or are of this machine and have the recorder."""
        if self._capture is None:
            return ""
        is_here = is_local_cluster(master) and flight_recorder.is_in(require_java().parents[1])
        if not (self._capture.is_shared or is_here):
            return ""
        rates = flight_recorder.rates(self._capture.interval_ms, captured.BY_CPU, *captured.BY_WALL_CLOCK)
        return flight_recorder.options_of_executors(self._capture.folder, rates)

    def start(self, spark: SparkSession) -> None:
        """Samples the driver and the workers of a session from now on."""
        if self._capture is None:
            return
        self._gateway = spark.sparkContext._gateway
        self._jvm = getattr(getattr(self._gateway, "proc", None), "pid", None)
        try:
            python_sampler.give(spark.sparkContext.environment, self._variables)
            folder = self._variables[python_sampler.FOLDER]
            self._sampler = python_sampler.Sampler(folder, self._capture.interval_ms, "python_driver", None)
            python_sampler.start(self._sampler)
        except Exception as error:  # noqa: BLE001 - samples never change a run
            self._note(f"the Python of the driver is not sampled: {message_of(error)}")
        try:
            self._record(self._capture)
        except Exception:  # noqa: BLE001 - samples never change a run
            self._note("the JVM of the driver is not sampled: its Java did not start the Flight Recorder")

    def _record(self, capture: StackCapture) -> None:
        """Has the JVM of the driver record itself.

        Raises:
            Py4JError: It cannot.
            ValueError: It says something unexpected.
        """
        depth, repository = flight_recorder.MAX_FRAMES, capture.folder / captured.RUNNING
        answer = self._diagnose("jfrConfigure", f"stackdepth={depth}", f"repositorypath={repository}")
        number = PROCESS.search(answer)
        if number is None:
            raise ValueError(" ".join(answer.split()))
        self._jvm = int(number[1])
        file = capture.folder / captured.JAVA / f"hotspot-pid-{self._jvm}-own.jfr"
        is_by_cpu = self._gateway.jvm.java.lang.Runtime.version().feature() >= BY_CPU_SINCE
        events = (captured.BY_CPU,) if is_by_cpu else captured.BY_WALL_CLOCK
        rates = flight_recorder.rates(capture.interval_ms, *events)
        self._diagnose("jfrStart", *flight_recorder.words_of_start(file, rates))

    def stop(self) -> None:
        """Ends the samples of the driver, whose session is about to end."""
        if self._sampler is not None:
            self._sampler.is_stopped = True
        if self._jvm is not None:
            with suppress(Exception):  # a JVM that has died has left what it had
                self._diagnose("jfrStop", f"name={flight_recorder.NAME}")

    def write(self, event_log: str | None) -> None:
        """Writes the samples of a session that has ended beside its event log."""
        if self._capture is None:
            return
        if event_log is None:
            self._note("stack samples are lost: they are written beside the event log, and Spark wrote none")
            return
        try:
            self._write(self._capture, reader.read(log_path(event_log)))
        except Exception as error:  # noqa: BLE001 - samples never change a run
            self._note(f"no stack samples: {message_of(error)}")

    def _write(self, capture: StackCapture, reading: Reading) -> None:
        found = captured.read_folder(capture.folder, patience=SECONDS_TO_END)
        self._complete(found)
        of_app = found.of(self._jvm or 0, reading.app.id, 0, float("inf"), interval_ms=capture.interval_ms)
        for remark in (*incomplete(found), *write_beside(of_app, reading)):
            self._note(remark)

    def _complete(self, found: Captured) -> None:
        """Names the JVM of this process, and the folder of the pipelines, whose frames are the user's."""
        current = project.current()
        for process in found.python:
            if process.role == "python_driver":
                process.jvm = self._jvm or 0
                if current is not None:
                    process.folder, process.program = str(current.folder_of("")), ""

    def _diagnose(self, command: str, *words: str) -> str:
        """Has the JVM of the driver do what `jcmd` does; returns what it says."""
        jvm = self._gateway.jvm
        texts, objects = jvm.java.lang.String, jvm.java.lang.Object
        server = jvm.java.lang.management.ManagementFactory.getPlatformMBeanServer()
        arguments = self._array(objects, [self._array(texts, words)])
        given = [jvm.javax.management.ObjectName(DIAGNOSTICS), command, arguments, self._array(texts, INVOKE[3:])]
        # The class of the server is hidden, so that Py4J finds no method in it; its interface is not.
        by_name = jvm.java.lang.Class.forName
        types = self._array(jvm.java.lang.Class, [by_name(name) for name in INVOKE])
        method = by_name("javax.management.MBeanServer").getMethod("invoke", types)
        return str(method.invoke(server, self._array(objects, given)))

    def _array(self, kind: Any, values: Any) -> Any:
        array = self._gateway.new_array(kind, len(values))
        for index, value in enumerate(values):
            array[index] = value
        return array


@contextmanager
def stack_sampling(settings: Settings, note: Note) -> Iterator[StackSampling]:
    """Samples an application if that is switched on, and nobody else samples it already.

    Raises:
        UsageError: The folder that executors share cannot be used.
    """
    if not settings.profile or python_sampler.FOLDER in process_environment():
        yield StackSampling(None, note)
        return
    with (
        TemporaryDirectory(prefix="spark-app-", ignore_cleanup_errors=True) as scratch,
        stack_capture(Path(scratch), settings.profile_executors_path, HERTZ) as capture,
    ):
        yield StackSampling(capture, note)
