"""What the script of a page draws as flame graphs: merged stacks, and pictures of parts of them to choose from."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec
from markupsafe import Markup

from spark_app.report.formatting import line
from spark_app.report.section import Subject
from spark_app.report.sections.stack_samples import StackSection, stack_samples
from spark_app.report.sections.stack_steps import MAX_NAME
from spark_app.stack_samples.attribution import Place
from spark_app.stack_samples.counts import MIN_FUNCTION_SAMPLES, MIN_STAGE_SAMPLES, NO_SAMPLES, Tally
from spark_app.stack_samples.difference import WORTH_NAMING
from spark_app.stack_samples.stack_profile import NO_NODE, Label, Node, Part

KINDS: Final = ("root", "java", "python")
View = tuple[str, list[int] | None] | tuple[str, list[int], list[int], bool]
_SCRIPT_END: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


class Drawn(NamedTuple):
    """The samples of what a page is about, with what the script draws of them.

    Attributes:
        section: The samples.
        data: The merged stacks and the views of them, as JSON.
        least: A function with fewer samples is not shown.
        enough: So many samples a picture of its own takes.
    """

    section: StackSection
    data: Markup
    least: int = MIN_FUNCTION_SAMPLES
    enough: int = MIN_STAGE_SAMPLES


def drawn(about: Subject) -> Drawn | None:
    """The samples of what a page is about; None without any."""
    section = stack_samples(about.scope, about.stacks, about.limits)
    return None if section is None else Drawn(section, data(section))


def _views(section: StackSection) -> Iterator[tuple[str, list[Place] | None]]:
    """The pictures to choose from: everything, the stages, and the queries with several of them."""
    app, of_query = section.scope.app, defaultdict[int, list[Place]](list)
    yield ("the run" if section.scope.run else "the application"), None
    for title, places in [*section.steps.items()][: section.limits.stages]:
        sampled = [place for place in places if place in section.profile.parts]
        if section.profile.of(sampled).shown.samples >= MIN_STAGE_SAMPLES:
            yield f"{title}, {len(places):,} stages", sampled
    for row in section.drawn[: section.limits.stages]:
        place = row.place
        if isinstance(place, str):
            yield row.name, [place]
            continue
        yield f"stage {place[0]}{f'.{place[1]}' if place[1] else ''}: {row.name}", [place]
        query = app.query_of(app.job_of(app.stages[place]))
        if query is not None:
            of_query[query.id].append(place)
    yield from ((f"query {query}", places) for query, places in sorted(of_query.items()) if len(places) > 1)


def data(section: StackSection) -> Markup:
    """What the script draws: the samples of each place."""
    parts = {row.place: row.part for row in section.rows}
    number_of_place = {place: number for number, place in enumerate(parts)}
    views: list[View] = [
        (line(name, MAX_NAME), None if places is None else [number_of_place[place] for place in places])
        for name, places in _views(section)
    ]
    stacks = section.profile
    return drawing(stacks.labels, stacks.nodes, [*parts.values()], views, section.limits.stack_nodes)


def drawing(
    labels: Sequence[Label], nodes: Sequence[Node], parts: Sequence[Part], views: Sequence[View], most: int
) -> Markup:
    """What the script draws, as JSON in a script element.

    Args:
        labels: What nodes say.
        nodes: Merged stacks; those that have too few samples in all parts together are left out.
        parts: Samples of the nodes.
        views: The pictures to choose from: a name, the numbers of its parts or None for all, and for a picture of a
            difference the numbers of the parts to compare with, and which of both came first.
        most: How many nodes are kept, those with the most time.
    """
    kept = _kept(nodes, parts, most)
    shown_labels = dict.fromkeys(nodes[node].label for node in kept)
    number_of_label = {label: number for number, label in enumerate(shown_labels)}
    shown = {
        "least": MIN_FUNCTION_SAMPLES,
        "worth_naming": WORTH_NAMING,
        "labels": [_label(labels[label]) for label in shown_labels],
        "parents": [kept.get(nodes[node].parent, NO_NODE) for node in kept],
        "nodes": [number_of_label[nodes[node].label] for node in kept],
        "parts": [_own(nodes, part, kept) for part in parts],
        "views": views,
    }
    text = msgspec.json.encode(shown).decode()
    for character, escaped in _SCRIPT_END.items():
        text = text.replace(character, escaped)
    return Markup(text)


def _kept(nodes: Sequence[Node], parts: Iterable[Part], most: int) -> dict[int, int]:
    """The nodes that are drawn, with their new numbers; a caller is before what it calls, and has as many samples."""
    totals = [NO_SAMPLES] * len(nodes)
    for part in parts:
        for node, tally in part.own.items():
            totals[node] += tally
    for number in range(len(totals) - 1, -1, -1):
        if nodes[number].parent != NO_NODE:
            totals[nodes[number].parent] += totals[number]
    enough = (node for node, tally in enumerate(totals) if tally.samples >= MIN_FUNCTION_SAMPLES)
    chosen = sorted(sorted(enough, key=lambda node: (-totals[node].ms, node))[:most])
    return {node: number for number, node in enumerate(chosen)}


def _own(nodes: Sequence[Node], part: Part, kept: Mapping[int, int]) -> list[list[Any]]:
    """The nodes in which samples of a part end, with their counts and times; a caller stands for what is left out."""
    own = defaultdict[int, Tally](Tally)
    for end, tally in part.own.items():
        node = end
        while node != NO_NODE and node not in kept:
            node = nodes[node].parent
        if node != NO_NODE:
            own[kept[node]] += tally
    return [[*own], [tally.samples for tally in own.values()], [round(tally.ms) for tally in own.values()]]


def _label(label: Label) -> list[Any]:
    """The kind of a function, its name, its file, its line, and whether it is the user's."""
    names = [line(label.function, MAX_NAME), line(label.file, MAX_NAME)]
    return [KINDS.index(label.kind), *names, label.line, int(label.is_own)]
