"""The hottest functions that are not the user's: of Spark, Java, and Python's libraries. SQL has no others."""

from collections import defaultdict
from dataclasses import dataclass
from typing import Final

from spark_app.stack_samples.counts import LEAST, NOTHING, Tally
from spark_app.stack_samples.stack_profile import NO_NODE, ROOTS, Label, Part, StackProfile

WAITING: Final = Label("root", ROOTS["waiting"])


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function by the samples that end in it, and by those that have it in the stack, each once."""

    label: Label
    itself: Tally
    total: Tally


def hottest(stacks: StackProfile, part: Part, most: int) -> list[LibraryFunction]:
    """The functions in which most of the time is spent itself; what waits is left out, and what has few samples."""
    totals, is_waiting = [NOTHING] * len(stacks.nodes), [False] * len(stacks.nodes)
    for end, tally in part.own.items():
        totals[end] += tally
    for number, node in enumerate(stacks.nodes):
        at_root = node.parent == NO_NODE
        is_waiting[number] = stacks.labels[node.label] == WAITING if at_root else is_waiting[node.parent]
    itself = defaultdict[int, Tally](Tally)
    for number in range(len(totals) - 1, -1, -1):
        node = stacks.nodes[number]
        label = stacks.labels[node.label]
        if number in part.own and label.kind != "root" and not label.is_own and not is_waiting[number]:
            itself[node.label] += part.own[number]
        if node.parent != NO_NODE:
            totals[node.parent] += totals[number]
    enough = [label for label, tally in itself.items() if tally.samples >= LEAST]
    chosen = sorted(enough, key=lambda label: (-itself[label].ms, stacks.labels[label]))[:most]
    with_calls = dict.fromkeys(chosen, NOTHING)
    for number, node in enumerate(stacks.nodes):
        if node.label in with_calls and not is_waiting[number] and not _is_recursion(stacks, number):
            with_calls[node.label] += totals[number]
    return [LibraryFunction(stacks.labels[label], itself[label], with_calls[label]) for label in chosen]


def _is_recursion(stacks: StackProfile, number: int) -> bool:
    """Whether the function of a node is one of its callers, too."""
    label, at = stacks.nodes[number].label, stacks.nodes[number].parent
    while at != NO_NODE:
        if stacks.nodes[at].label == label:
            return True
        at = stacks.nodes[at].parent
    return False
