"""Names the line of the program in what Spark logs about each action of PySpark: `parquet at jobs/flights.py:24`.

PySpark does so for `collect` and the like; every other action is `parquet at NativeMethodAccessorImpl.java:0`. This
module sets the same two local properties (`callSite.short`, `callSite.long`) around the calls of the JVM that start
jobs: queries, jobs and stages get the line as their name or in their details. Streaming queries get the interval of
their trigger. The properties are thread-local, as PySpark's threads are those of the JVM, and are restored after the
call. What PySpark or the program set is left alone.

`spark-app observe` loads a copy of this file into the programs of others (docs/decisions/0011-call-sites.md). So it
imports nothing of this project, runs on Python 3.8 and later, and raises nothing: whatever fails, a call is made as
without it.
"""

from __future__ import annotations

import functools
import os
import re
import sys
import threading
from contextlib import contextmanager, suppress
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from types import FrameType

SHORT: Final = "callSite.short"
LONG: Final = "callSite.long"
"""Local properties of Spark (`org.apache.spark.util.CallSite`)."""
STREAM: Final = "spark.observed.callSite"
"""The line that started a streaming query: its thread inherits the property, and has other values of the other two."""
TRIGGER: Final = "spark.sparkApp.streaming.trigger"
"""The interval between the batches of a streaming query, which no event of Spark has: its thread inherits it, too."""
NOWHERE: Final = (" at NativeMethodAccessorImpl.java:", " at DirectMethodHandleAccessor.java:")
"""The ends of the call site of a call from Python, up to its line: of Java up to 17, and from 18 on (JEP 416)."""
PY4J: Final = "/py4j/"
"""In the call sites that PySpark sets in a callback, as of `foreachBatch`: `call at .../py4j/clientserver.py:642`."""
ACTIONS: Final = frozenset({
    # DataFrame, its statistics and its groups; PySpark names the first four itself, but not in `foreachBatch`
    "collectToPython", "collectAsArrowToPython", "toPythonIterator", "tailToPython",
    "count", "isEmpty", "showString", "htmlString", "getRowsToPython", "checkpoint", "localCheckpoint", "describe",
    "summary", "pivot", "approxQuantile", "crosstab", "freqItems", "corr", "cov",
    # DataFrameReader (to infer a schema), DataFrameWriter, DataFrameWriterV2, MergeIntoWriter
    "load", "json", "csv", "orc", "parquet", "text", "xml", "jdbc", "save", "saveAsTable", "insertInto", "create",
    "replace", "createOrReplace", "append", "overwrite", "overwritePartitions", "merge",
    # SparkSession, Catalog
    "sql", "cacheTable", "refreshTable", "createTable", "recoverPartitions",
    # RDD
    "collectAndServe", "toLocalIteratorAndServe", "runJob", "saveAsTextFile", "saveAsHadoopFile", "saveAsHadoopDataset",
    "saveAsNewAPIHadoopFile", "saveAsNewAPIHadoopDataset", "saveAsSequenceFile",
    # DataStreamWriter
    "start", "toTable",
    # DeltaTable
    "delete", "update", "updateExpr", "execute", "executeCompaction", "executeZOrderBy", "vacuum", "history",
    "generate", "restoreToVersion", "restoreToTimestamp", "convertToDelta",
    # MLlib
    "fit", "evaluate",
})  # fmt: skip
"""Methods of Java objects that may start jobs. A method of such a name that starts none costs some messages more."""
STREAM_ACTIONS: Final = ("start", "toTable")
EVERY: Final = re.compile(r"ProcessingTimeTrigger\((\d+)\)")
"""How Spark writes `trigger(processingTime=...)`, with its milliseconds."""
PYTHON_RDD: Final = "z:org.apache.spark.api.python.PythonRDD"
"""The only class whose static methods start jobs; `functions.count`, for one, starts none."""
LIBRARIES: Final = ("pyspark", "py4j", "delta", "IPython", "ipykernel")
"""Packages that are not the program."""
WRAPPERS: Final = ("wrapper", "wrapped", "<lambda>")
"""Functions of PySpark's decorators, which do not name the action."""
MAX_DEPTH: Final = 300
"""Frames of the stack that are searched for the program."""
MAX_FRAMES: Final = 5
"""Frames of the program in the long form."""
GATEWAY: Final = "py4j.java_gateway"
_skipped: list[str] = []
_declared = threading.local()
_is_library: dict[str, bool] = {}


def install(skip: Iterable[str] = ()) -> None:
    """Names the call sites of this process from now on, also if PySpark is imported later.

    Args:
        skip: Folders with libraries that call Spark for the program, and are not the program.
    """
    with suppress(Exception):
        _skipped.extend(os.path.join(os.path.abspath(folder), "") for folder in skip)
        when_imported(GATEWAY, _patch)


def when_imported(name: str, patch: Callable[[Any], None]) -> None:
    """Patches a module, now or when it is imported; once for each module.

    Args:
        name: The module.
        patch: Takes the module after it was loaded; what it raises is dropped.
    """
    module = sys.modules.get(name)
    if module is not None:
        patch(module)
    elif not any(isinstance(finder, _Finder) and finder.name == name for finder in sys.meta_path):
        sys.meta_path.insert(0, _Finder(name, patch))


@contextmanager
def work_of(function: str, file: str, line: int) -> Iterator[None]:
    """Actions that libraries start for a function, which is not on the stack any more, have its line."""
    before = getattr(_declared, "frame", None)
    _declared.frame = (function, f"{_shown(file)}:{line}")
    try:
        yield
    finally:
        _declared.frame = before


class _Finder:
    """Has a module patched when it is imported, and finds nothing else."""

    def __init__(self, name: str, patch: Callable[[Any], None]) -> None:
        self.name = name
        self._patch = patch

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        if name != self.name:
            return None
        with suppress(Exception):
            spec = PathFinder.find_spec(name, path)
            if spec is not None and hasattr(spec.loader, "exec_module"):
                spec.loader = _Loader(spec.loader, self._patch)  # type: ignore[assignment] # it has what the import system calls
                sys.meta_path.remove(self)
                return spec
        return None


class _Loader:
    """Loads a module as its own loader does, then patches it."""

    def __init__(self, loader: Any, patch: Callable[[Any], None]) -> None:
        self._loader = loader
        self._patch = patch

    def create_module(self, spec: Any) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        module.__loader__ = module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        with suppress(Exception):
            self._patch(module)


def _patch(module: Any) -> None:
    """Replaces the call of a method of a Java object; once, also by copies of this module."""
    member, lost = module.JavaMember, (module.Py4JNetworkError, OSError)
    original = member.__call__
    if hasattr(original, "call_sites_skip"):
        original.call_sites_skip.extend(_skipped)
        return

    @functools.wraps(original)
    def call(self: Any, *arguments: Any) -> Any:
        site = _set(self) if self.name in ACTIONS else None
        if site is None:
            return original(self, *arguments)
        try:
            result = original(self, *arguments)
        except lost:  # with the JVM, its properties are gone
            raise
        except BaseException:
            _restore(*site)
            raise
        _restore(*site)
        return result

    call.call_sites_skip = _skipped  # type: ignore[attr-defined] # where a copy of this module finds the list
    member.__call__ = call


def _set(member: Any) -> tuple[Any, dict[str, str | None]] | None:
    """Sets the call site of an action.

    Returns:
        The Java context, and the properties as they were before; None if nothing was set.
    """
    context: Any = None
    before: dict[str, str | None] = {}
    after: dict[str, str] = {}
    try:
        if not member.target_id.startswith("z:") or member.target_id == PYTHON_RDD:
            context, after = _context(), _properties(member.name, sys._getframe(1))
        if context is None or not after:
            return None
        short = context.getLocalProperty(SHORT)
        if short is not None and not _says_nothing(short):
            after = {}
        after.update(_trigger(member))
        for name, value in after.items():
            before[name] = None if short is None and name != TRIGGER else context.getLocalProperty(name)
            context.setLocalProperty(name, value)
    except Exception:  # noqa: BLE001 - a call site never makes a call fail
        _restore(context, before)
        return None
    return context, before


def _trigger(member: Any) -> dict[str, str]:
    """The property with the interval of a streaming query that starts; empty for another action, and without one."""
    if member.name not in STREAM_ACTIONS:
        return {}
    with suppress(Exception):  # another Java object has a method of this name, or another Spark keeps it elsewhere
        field = member.container.getClass().getDeclaredField("trigger")
        field.setAccessible(True)
        found = EVERY.fullmatch(field.get(member.container).toString())
        if found is not None:
            return {TRIGGER: f"{found.group(1)} milliseconds"}
    return {}


def _says_nothing(call_site: str) -> bool:
    """Whether a call site is no line of the program: in Java, in Py4J's callbacks, or in a skipped folder."""
    return any(place in call_site for place in (*NOWHERE, PY4J, *_skipped))


def _restore(context: Any, before: dict[str, str | None]) -> None:
    with suppress(Exception):
        for name, value in before.items():
            context.setLocalProperty(name, value)


def _context() -> Any:
    """The Java context of the SparkContext; None unless each Python thread is a thread of the JVM.

    Without `PYSPARK_PIN_THREAD` the JVM may run the action in another thread, which does not have the properties.
    """
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    active = getattr(context, "_active_spark_context", None)
    if active is None or type(active._gateway).__name__ != "ClientServer":
        return None
    return active._jsc


def _properties(method: str, frame: FrameType | None) -> dict[str, str]:
    """The call site of an action, short and long; empty without a frame of the program."""
    function = called = method
    frames: list[tuple[str, str]] = []
    for _ in range(MAX_DEPTH):
        if frame is None or len(frames) == MAX_FRAMES:
            break
        code = frame.f_code
        if not _belongs_to_library(code.co_filename):
            frames.append((code.co_name, f"{_shown(code.co_filename)}:{frame.f_lineno}"))
        elif not frames and code.co_name not in WRAPPERS:
            function = code.co_name
            if not code.co_filename.startswith(tuple(_skipped)):
                called = function
        frame = frame.f_back
    declared = getattr(_declared, "frame", None)
    if declared is not None and not any(_file(place) == _file(declared[1]) for _, place in frames):
        function, frames = called, [declared]
    if not frames:
        return {}
    short = f"{function} at {frames[0][1]}"
    properties = {SHORT: short, LONG: "\n".join([short, *(f"  in {name}, {place}" for name, place in frames)])}
    if method in STREAM_ACTIONS:
        properties[STREAM] = short
    return properties


def _file(place: str) -> str:
    return place.rpartition(":")[0]


def _belongs_to_library(file: str) -> bool:
    """Whether a file belongs to Spark's Python packages, a notebook's kernel, the skipped folders or this module."""
    known = _is_library.get(file)
    if known is None:
        packages = (getattr(sys.modules.get(name), "__path__", ()) for name in LIBRARIES)
        roots = [os.path.join(root, "") for package in packages for root in package]
        is_inside = os.path.abspath(file).startswith((*roots, *_skipped))
        known = _is_library[file] = is_inside or file == __file__ or file.startswith("<frozen")
    return known


def _shown(file: str) -> str:
    """A file as a person names it: relative to the working folder if it is below; the number of a notebook's cell."""
    if "ipykernel_" in file or file.startswith("<ipython-input-"):
        return f"In[{sys.modules['IPython'].get_ipython().execution_count}]"
    if file.startswith("<"):
        return file
    full, here = os.path.abspath(file), os.path.join(os.getcwd(), "")
    return full.removeprefix(here)
