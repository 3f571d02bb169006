"""The hottest functions that are not the user's: of Spark, Java, and Python's libraries. SQL has no others."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from spark_app.stack_samples.counts import MIN_FUNCTION_SAMPLES, NO_SAMPLES, Tally
from spark_app.stack_samples.stack_profile import NO_NODE, ROOTS, Label, Part, StackProfile

WAITING_ROOT: Final = Label("root", ROOTS["waiting"])


@dataclass(frozen=True, slots=True)
class LibraryFunction:
    """A function by the samples that end in it, and by those that have it in the stack, each once."""

    label: Label
    itself: Tally
    total: Tally


def hottest(stacks: StackProfile, part: Part, most: int) -> list[LibraryFunction]:
    """The functions in which most of the time is spent itself; what waits is left out, and what has few samples."""
    totals, is_waiting = [NO_SAMPLES] * len(stacks.nodes), _waiting(stacks)
    for end, tally in part.own.items():
        totals[end] += tally
    for number in range(len(totals) - 1, -1, -1):
        if stacks.nodes[number].parent != NO_NODE:
            totals[stacks.nodes[number].parent] += totals[number]
    itself = endings(stacks, {end: tally for end, tally in part.own.items() if not is_waiting[end]})
    with_calls = dict.fromkeys([*itself][:most], NO_SAMPLES)
    for number, node in enumerate(stacks.nodes):
        if node.label in with_calls and not is_waiting[number] and not _is_recursion(stacks, number):
            with_calls[node.label] += totals[number]
    return [LibraryFunction(stacks.labels[label], itself[label], total) for label, total in with_calls.items()]


def endings(stacks: StackProfile, own: Mapping[int, Tally]) -> dict[int, Tally]:
    """The functions that samples end in, the hottest first, without the user's and those of too few samples.

    Args:
        stacks: Has the nodes and their labels.
        own: The samples that end in each node, as in a part.

    Returns:
        The samples of each function, by the number of its label.
    """
    sums = defaultdict[int, Tally](Tally)
    for end, tally in own.items():
        label = stacks.nodes[end].label
        if stacks.labels[label].kind != "root" and not stacks.labels[label].is_own:
            sums[label] += tally
    ranked = sorted(sums, key=lambda label: (-sums[label].ms, stacks.labels[label]))
    return {label: sums[label] for label in ranked if sums[label].samples >= MIN_FUNCTION_SAMPLES}


def _waiting(stacks: StackProfile) -> list[bool]:
    """Whether each node is of a thread that waits."""
    found = list[bool]()
    for node in stacks.nodes:
        at_root = node.parent == NO_NODE
        found.append(stacks.labels[node.label] == WAITING_ROOT if at_root else found[node.parent])
    return found


def _is_recursion(stacks: StackProfile, number: int) -> bool:
    """Whether the function of a node is one of its callers, too."""
    label, at = stacks.nodes[number].label, stacks.nodes[number].parent
    while at != NO_NODE:
        if stacks.nodes[at].label == label:
            return True
        at = stacks.nodes[at].parent
    return False
