"""What Spark itself did when a stack was sampled: compress, sort, plan, and the like, by classes in the stack.

The innermost class that the table has decides: a Kryo object that is read from a compressed stream is deserialised,
and while a block of that stream is decompressed it is compression. Methods that take rows from an iterator are not in
the table, since what produces these rows is below them in the stack.
"""

import re
from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from spark_app.stack_samples.samples import Frame, StackSamples

Work = Literal[
    "planning",
    "code generation",
    "class loading",
    "deserialization",
    "serialization",
    "compression",
    "sorting",
    "Parquet and ORC",
]
_SQL: Final = r"org\.apache\.spark\.sql\."
TABLE: Final[dict[Work, str]] = {
    # QueryExecution measures the phases parsing, analysis, optimization and planning by QueryPlanningTracker; adaptive
    # execution plans again in methods of its own.
    "planning": rf"{_SQL}(?:catalyst\.(?:analysis|optimizer|parser|planning|rules)\.|catalyst\.QueryPlanningTracker\b"
    rf"|execution\.adaptive\.AdaptiveSparkPlanExec\.\S*(?:reOptimize|optimizeQueryStage|createQueryStages))",
    # Janino compiles what Spark writes. Writers of rows (UnsafeRowWriter) are in the package of code generation, too.
    "code generation": r"org\.codehaus\.(?:janino|commons\.compiler)\."
    rf"|{_SQL}catalyst\.expressions\.codegen\.(?:Code|Generate[A-Z]|ExprCode|Block|JavaCode)"
    rf"|{_SQL}execution\.(?:WholeStageCodegenExec\.doCodeGen|CodegenSupport\.)",
    "class loading": r"java\.lang\.ClassLoader\.|java\.net\.URLClassLoader\.|jdk\.internal\.loader\."
    r"|java\.lang\.Class\.forName|java\.util\.zip\.ZipFile|org\.apache\.spark\.util\.\w*ClassLoader\.",
    # JavaSerializer, KryoSerializer, and the pickles of rows and of RDDs in Python.
    "deserialization": r"java\.io\.ObjectInputStream\.|java\.io\.ObjectStreamClass\."
    r"|com\.esotericsoftware\.kryo\.\S*(?:read\w*|Input\.\w+)$|com\.twitter\.chill\.\S*\.read$"
    r"|org\.apache\.spark\.serializer\.\S*\.read(?:Object|Key|Value)$|net\.razorvine\.pickle\.Unpickler\.",
    "serialization": r"java\.io\.ObjectOutputStream\."
    r"|com\.esotericsoftware\.kryo\.\S*(?:write\w*|Output\.\w+)$|com\.twitter\.chill\.\S*\.write$"
    r"|org\.apache\.spark\.serializer\.\S*\.write(?:Object|Key|Value)$|net\.razorvine\.pickle\.Pickler\.",
    # The codecs of spark.io.compression.codec, of Parquet, ORC and Hadoop, and those of cached tables.
    "compression": r"com\.github\.luben\.zstd\.|net\.jpountz\.(?:lz4|xxhash)\.|org\.xerial\.snappy\."
    r"|com\.ning\.compress\.|io\.airlift\.compress\.|org\.apache\.hadoop\.io\.compress\.|java\.util\.zip\.GZIP"
    r"|org\.apache\.parquet\.hadoop\.(?:codec\.|CodecFactory)|org\.apache\.orc\.impl\.\w*Codec\."
    rf"|{_SQL}execution\.columnar\.compression\.",
    # Of rows, and of shuffles; the method that takes all rows, UnsafeExternalRowSorter.sort, is not among them.
    "sorting": r"org\.apache\.spark\.util\.collection\.(?:unsafe\.sort|TimSort)"
    rf"|{_SQL}execution\.UnsafeExternalRowSorter(?:\$|\.insertRow)"
    r"|org\.apache\.spark\.shuffle\.sort\.ShuffleInMemorySorter",
    "Parquet and ORC": r"org\.apache\.(?:parquet|orc)\."
    rf"|{_SQL}execution\.(?:datasources\.(?:parquet|orc)\.|vectorized\.)",
}
"""Beginnings of functions by what they are for. Source: the classes in stacks of Spark 4.2, and its packages."""
_PATTERNS: Final = {work: re.compile(pattern) for work, pattern in TABLE.items()}
_PYTHON_PICKLES: Final[dict[str, Work]] = {"loads": "deserialization", "dumps": "serialization"}


class RecognizedWork(NamedTuple):
    """What Spark did, and the function that says so."""

    work: Work
    function: str


class SparkWork:
    """Tells of stacks what Spark did in them."""

    def __init__(self, samples: StackSamples) -> None:
        """Looks at each frame once."""
        self._frames = [_step(frame) for frame in samples.frames]

    def of(self, stack: Sequence[int]) -> RecognizedWork | None:
        """What Spark did in a stack; None for anything else, as the program's own functions and generated code."""
        return next((step for number in reversed(stack) if (step := self._frames[number]) is not None), None)


def _step(frame: Frame) -> RecognizedWork | None:
    work = _of_python(frame) if frame.language == "python" else _of_java(frame.function)
    return RecognizedWork(work, frame.function) if work else None


def _of_java(function: str) -> Work | None:
    # Codecs of Parquet and ORC are in the packages of these: the table has compression first.
    return next((work for work, pattern in _PATTERNS.items() if pattern.match(function)), None)


def _of_python(frame: Frame) -> Work | None:
    is_of_spark = frame.file == "pyspark/serializers.py"
    return _PYTHON_PICKLES.get(frame.function.rpartition(".")[2]) if is_of_spark else None
