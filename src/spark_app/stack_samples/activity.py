"""What a thread did when its stack was sampled: worked, or waited, and for what."""

import re
from collections.abc import Sequence
from typing import Final, Literal

from spark_app.stack_samples.samples import Sample, StackSamples

Activity = Literal["jvm", "python", "reading and writing", "lock", "waiting", "waiting for python"]
WAITING: Final[frozenset[Activity]] = frozenset({"lock", "waiting", "waiting for python"})
"""In these a thread does nothing."""
_OF_PYTHON: Final = ("org.apache.spark.api.python.", "org.apache.spark.sql.execution.python.")
"""The packages of the classes with which a task hands rows to a Python worker and takes them back."""
_WAITS: Final = frozenset(
    {
        "io.netty.channel.epoll.Native.epollWait0",
        "java.lang.Object.wait",
        "java.lang.Object.wait0",
        "java.lang.ProcessHandleImpl.waitForProcessExit0",
        "java.lang.Thread.sleep",
        "java.lang.Thread.sleep0",
        "java.net.PlainSocketImpl.socketAccept",
        "java.net.SocketInputStream.socketRead0",
        "jdk.internal.misc.Unsafe.park",
        "sun.nio.ch.EPoll.wait",
        "sun.nio.ch.Net.accept",
        "sun.nio.ch.Net.poll",
        "sun.nio.ch.SocketDispatcher.read0",
        "sun.nio.ch.UnixDomainSockets.accept0",
    }
)
"""Native methods that wait, for which a sampler says only that they are native."""
_FILES: Final = re.compile(
    r"java\.io\.(?:FileInputStream|FileOutputStream|RandomAccessFile)\."
    r"|sun\.nio\.ch\.(?:Unix)?(?:File|Socket)Dispatcher(?:Impl)?\.|sun\.nio\.fs\.UnixNativeDispatcher\."
    r"|java\.net\.SocketOutputStream\.|java\.io\.UnixFileSystem\."
)
"""Native methods that read and write files, or send to sockets: on a processor of the kernel, or waiting for a disk."""
_READERS_OF_PIPES: Final = "org.apache.spark.util.RedirectThread.run"
"""Reads what Python workers print, and waits for it in a method that elsewhere reads files."""


class Activities:
    """Tells of samples what their threads did."""

    def __init__(self, samples: StackSamples) -> None:
        """Looks at each frame once."""
        self._samples = samples
        names = [frame.function for frame in samples.frames]
        self._files = {number for number, name in enumerate(names) if _FILES.match(name)}
        self._waits = {number for number, name in enumerate(names) if name in _WAITS}
        self._reads_pipes = {number for number, name in enumerate(names) if name == _READERS_OF_PIPES}
        self._of_python = {number for number, name in enumerate(names) if name.startswith(_OF_PYTHON)}

    def of(self, sample: Sample) -> Activity:
        """What the thread of a sample did."""
        stack = self._samples.stacks[sample.stack]
        if self._samples.processes[sample.process].role in {"python_driver", "python_worker"}:
            return "waiting" if sample.state == "waiting" else "python"
        if sample.state == "locked":
            return "lock"
        if sample.state == "native" and not self._is_wait(stack):
            return "reading and writing" if stack and stack[-1] in self._files else "jvm"
        if sample.state == "running":
            return "jvm"
        return "waiting" if self._of_python.isdisjoint(stack) else "waiting for python"

    def _is_wait(self, stack: Sequence[int]) -> bool:
        return bool(stack) and (stack[-1] in self._waits or not self._reads_pipes.isdisjoint(stack))
