"""Merged stacks as `flamegraph.pl` reads them: a line for each stack, with its time."""

from collections.abc import Iterator

from spark_app.stack_samples.stack_profile import NO_NODE, Part, StackProfile


def lines(stacks: StackProfile, part: Part) -> Iterator[str]:
    """The stacks of a part, the outermost function first, with milliseconds: `JVM;Thread.run;Task.run 120`."""
    paths = dict[int, str]()

    def path(node: int) -> str:
        if node not in paths:
            parent, label = stacks.nodes[node]
            own = stacks.labels[label].text.replace(";", ":").replace("\n", " ")
            paths[node] = own if parent == NO_NODE else f"{path(parent)};{own}"
        return paths[node]

    yield from sorted(f"{path(node)} {round(tally.ms)}" for node, tally in part.own.items())
