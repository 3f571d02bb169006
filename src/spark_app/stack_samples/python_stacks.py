"""Reads the files that `spark_app.stack_samples.python_sampler` has written, also of processes that were killed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from os.path import normpath
from pathlib import Path
from typing import Any, Final

import msgspec

from spark_app.stack_samples.samples import Frame, Role, State

SUFFIX: Final = ".stacks"
PACKAGES: Final = re.compile(
    r".*/(?:site-packages|dist-packages|[^/]+\.(?:zip|egg|whl)|python3\.\d+|spark-app-\w{8}/python)/"
)
"""The folders, up to the path of a module, whose modules are libraries; the last is that of our hooks."""
NOTEBOOK: Final = ("<ipython-input-", "<stdin>")


@dataclass(frozen=True, slots=True)
class PythonSample:
    """A sample; `stack` is the index of its stack in the process."""

    at_ms: int
    thread: int
    stack: int
    state: State
    task: int | None
    weight: float


@dataclass(slots=True)
class PythonProcess:
    """What one process has written.

    Attributes:
        role: What it is of the application.
        pid: Its id.
        jvm: The id of the JVM that it belongs to; None of a driver that has started none.
        host: The name of its host.
        interval_ms: The time between two samples that was set.
        started_ms: When its sampler has started.
        launch: The launch of `spark-app observe` that it belongs to; None of a driver that has started the JVM itself.
        folder: Its working folder at that time.
        program: The file of its program, as it was named.
        path: Where it looks for modules.
        executor: The application and the id of the executor that it belongs to; None of one that is in the driver.
        frames: The file, function and line of each frame.
        stacks: The frames of each stack, the outermost first.
        samples: By time.
        is_cut: Whether its file has reached its size, so that the last samples are missing.
    """

    role: Role
    pid: int
    jvm: int | None
    host: str
    interval_ms: float
    started_ms: int
    launch: str | None
    folder: str
    program: str
    path: list[str]
    executor: tuple[str, str] | None = None
    frames: list[tuple[str, str, int]] = field(default_factory=list)
    stacks: list[list[int]] = field(default_factory=list)
    samples: list[PythonSample] = field(default_factory=list)
    is_cut: bool = False

    @property
    def jvm_of_launch(self) -> int | None:
        """The id of its JVM; of a driver that `spark-submit` has started, it is in the id of the launch."""
        return jvm_of(self.launch or "") if self.jvm is None else self.jvm

    @property
    def program_folder(self) -> str:
        """The folder of the file of the program; of one without a file, where it was started."""
        file = Path(self.folder, self.program)
        return normpath(file.parent) if file.is_file() else self.folder


def jvm_of(launch: str) -> int | None:
    """The process id at the end of the id of a launch: the script of Spark becomes the JVM. None where it has none."""
    number = launch.rpartition("-")[2]
    return int(number) if number.isdecimal() else None


def read(file: Path) -> PythonProcess | None:
    """What a process has written; None without a line. A last line that was cut is left out."""
    process: PythonProcess | None = None
    for line in file.read_bytes().splitlines():
        try:
            process = with_line(process, line)
        except (ValueError, TypeError, IndexError):
            break
    return process


def with_line(process: PythonProcess | None, line: bytes) -> PythonProcess | None:
    """The process with what one more line of its file says; the first one begins it.

    Raises:
        ValueError, TypeError, IndexError: The line was cut.
    """
    kind, *rest = msgspec.json.decode(line)
    if kind == "process":
        return PythonProcess(*rest[:-1])
    if process is not None:
        _add(process, kind, rest)
    return process


def _add(process: PythonProcess, kind: str, rest: list[Any]) -> None:
    if kind == "frame":
        function, line = rest[1], rest[2]
        process.frames.append((rest[0], function, line))
    elif kind == "stack":
        process.stacks.append(rest)
    elif kind == "sample":
        process.samples.append(PythonSample(*rest))
    elif kind == "jvm":
        process.jvm = rest[0]
    elif kind == "executor":
        app, executor = rest
        process.executor = app, executor
    elif kind == "full":
        process.is_cut = True


class Names:
    """Names the files of frames, without the folders of a user or a machine.

    Args:
        folder: The working folder of the driver: files of functions that it sent to workers are relative to it.
        program: The folder of its program.
        path: Where it looks for modules.
    """

    def __init__(self, folder: str, program: str, path: Sequence[str]) -> None:
        """Prepares the folders to look for."""
        self._folder, self._program = folder, f"{program}/"
        self._path = sorted((f"{each}/" for each in path if each.startswith("/")), key=len, reverse=True)

    def frame(self, file: str, function: str, line: int) -> Frame:
        """The frame of a function."""
        name, is_own = self._file(file)
        return Frame("python", function, name, line, is_own)

    def _file(self, file: str) -> tuple[str, bool]:
        """The name of a file, and whether it is of the program."""
        if "/ipykernel_" in file or file.startswith(NOTEBOOK):
            return "notebook", True
        if file.startswith("<"):
            return file, False
        full = normpath(Path(self._folder, file))
        found = PACKAGES.match(full)
        if found is not None:
            return full[found.end() :], False
        if full.startswith(self._program):
            return full.removeprefix(self._program), True
        root = next((each for each in self._path if full.startswith(each)), f"{Path(full).parent}/")
        return full.removeprefix(root), False
