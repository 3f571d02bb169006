"""The nodes of a graph of code: what each says itself, by a digest, and what it reaches."""

import hashlib
import re
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final

from pyspark.sql import DataFrame

Label = tuple[str, str]
"""A module, and the name of something in it."""
DIGITS: Final = 10
"""So many hexadecimal digits of a digest are kept."""


@dataclass
class Node:
    """A function, a class, a value or a module.

    Attributes:
        label: What it is called.
        file: Where it is.
        line: In which line; 0 where that is not known.
        digest: Names what it says itself.
        reaches: The keys of what it reaches at once, in the order of its code.
        words: All names and words in its code and values, in small letters.
        attributes: The names of attributes of what only a run knows, such as DataFrames.
        defined: The names of attributes that classes of the project have.
        packages: The names of installed packages that it uses.
    """

    label: Label
    file: str = ""
    line: int = 0
    digest: str = ""
    reaches: list[Hashable] = field(default_factory=list)
    words: set[str] = field(default_factory=set)
    attributes: set[str] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    packages: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self._hash = hashlib.sha256()

    def add(self, *parts: object) -> None:
        """Adds to what it says."""
        for part in parts:
            text = str(part)
            self._hash.update(f"{len(text)}:{text}".encode("utf-8", errors="surrogatepass"))

    def reach(self, key: Hashable) -> None:
        """Adds something that it reaches."""
        self.add("reaches")
        self.reaches.append(key)

    def name(self, text: str) -> None:
        """Adds a text to its words."""
        self.words.update(re.findall(r"\w+|\*", text.lower()))

    def seal(self) -> None:
        """Ends what it says."""
        self.digest = self._hash.hexdigest()[:DIGITS]


@dataclass(frozen=True)
class Reach:
    """All that something says and reaches.

    Attributes:
        digest: Names it; it is the same for what does the same, wherever it stands.
        nodes: What it reaches, itself first.
    """

    digest: str
    nodes: Sequence[Node]

    @cached_property
    def parts(self) -> dict[str, dict[str, str]]:
        """By module and name, the digest of each part."""
        found: dict[str, dict[str, str]] = {}
        for node in self.nodes:
            module, name = node.label
            parts = found.setdefault(module, {})
            parts[name] = digest_of(parts[name], node.digest) if name in parts else node.digest
        return found

    @cached_property
    def places(self) -> dict[Label, tuple[str, int]]:
        """File and line of each part."""
        return {node.label: (node.file, node.line) for node in reversed(self.nodes)}

    @cached_property
    def words(self) -> set[str]:
        """The words of all parts."""
        return set[str]().union(*(node.words for node in self.nodes))

    @cached_property
    def attributes(self) -> set[str]:
        """The names of attributes in all parts, without those of its own classes."""
        found = set[str]().union(*(node.attributes for node in self.nodes))
        return found.difference(*(node.defined for node in self.nodes)) | (found & {*dir(DataFrame)})

    @cached_property
    def packages(self) -> set[str]:
        """The installed packages that it uses."""
        return set[str]().union(*(node.packages for node in self.nodes))


def digest_of(*parts: object) -> str:
    """Names texts."""
    node = Node(("", ""))
    node.add(*parts)
    node.seal()
    return node.digest
