"""Call sites as Spark writes them: the call that started some work, and the line of the program that made it.

Spark has no line of a call from Python, `parquet at NativeMethodAccessorImpl.java:0`, unless PySpark or
`spark_app.spark.call_sites` sets it; of a stage that adaptive execution runs it has
`$anonfun$withThreadLocalCaptured$1 at CompletableFuture.java:1768`. What stands for such calls is there once more in
`spark_app.spark.call_sites`, which runs in the programs of others and imports nothing of this project.
"""

import re
from dataclasses import dataclass
from typing import Final

_SHORT_FORM: Final = re.compile(r"(\S+) at (.+):(\d+)")
"""Source: `CallSite.shortForm`."""
_REFLECTION: Final = ("NativeMethodAccessorImpl.java", "DirectMethodHandleAccessor.java", "<unknown>")
"""Where a call from Python seems to come from: Java's reflection, up to Java 17 and from Java 18 on (JEP 416)."""
_CALLBACK: Final = re.compile(r"/py4j/|/python3[.]\d+t?/threading[.]py(?=:|$)")
_ANONYMOUS: Final = re.compile(r"\$anonfun\$|\$\d+")
_ACTIONS: Final = {
    "showString": "show",
    "htmlString": "show",
    "getRowsToPython": "show",
    "collectToPython": "collect",
    "collectAsArrowToPython": "toPandas",
    "toPythonIterator": "toLocalIterator",
    "tailToPython": "tail",
}
"""By the methods of the JVM behind them, the actions of PySpark that have another name."""


@dataclass(frozen=True, slots=True)
class CallSite:
    """A call, with the file and the line that it stands in."""

    call: str
    file: str
    line: str

    @property
    def is_internal(self) -> bool:
        """Whether the call is in a function within Spark, in Py4J, or in Python's threads.

        PySpark has the latter for actions of a Python callback, as that of `foreachBatch`, and of an
        `InheritableThread`.
        """
        return "$" in self.call or _CALLBACK.search(self.file) is not None

    @property
    def is_of_program(self) -> bool:
        """Whether it leads to a line of the program."""
        return not self.is_internal and not self.file.startswith(_REFLECTION)

    @property
    def action(self) -> str:
        """The action of PySpark that made the call."""
        return _ACTIONS.get(self.call, self.call)


def parse(text: str | None) -> CallSite | None:
    """The call site that a text is; None for any other text, such as what a program calls its work."""
    match = _SHORT_FORM.fullmatch(text or "")
    return CallSite(*match.groups()) if match else None


def called(stage_name: str) -> str:
    """The method that a stage began with, by its name; of anonymous functions the method around them."""
    return _ANONYMOUS.sub("", stage_name.partition(" at ")[0])
