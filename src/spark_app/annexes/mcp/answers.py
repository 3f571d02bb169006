"""Answers of the tools: JSON documents of bounded size, which say what was left out and how to ask for it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

MAX_CHARACTERS: Final = 24_000
"""Of an answer, about 7,000 tokens: assistants cut or refuse much longer ones."""
LEFT_OUT: Final = "left_out"
Document = dict[str, Any]


def _same(item: Any) -> Any:
    return item


@dataclass(frozen=True, slots=True)
class Page:
    """The part of each list that an answer shows: at most `limit` items, without the first `offset`."""

    limit: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class PagedRows:
    """A list in an answer, of which only a page is shown.

    Attributes:
        items: All of them.
        show: Makes what is shown of an item.
        ask: Tells how to ask for the rest of a list whose end is not known; None for the next offset.
    """

    items: Sequence[Any]
    show: Callable[[Any], Any] = _same
    ask: Callable[[Sequence[Any]], str] | None = None


def answer(document: Mapping[str, Any], page: Page) -> Document:
    """A document with its lists cut to a page, which is halved until the answer is small enough.

    What is unknown (None) has no key. `left_out` has a sentence for each list that was cut.
    """
    cut = _cut(document, page)
    while len(encoded(cut)) > MAX_CHARACTERS and page.limit > 1:
        page = replace(page, limit=page.limit // 2)
        cut = _cut(document, page)
    return cut


def encoded(document: Document) -> str:
    """A document as JSON without white space."""
    return msgspec.json.encode(document).decode()


def _cut(document: Mapping[str, Any], page: Page) -> Document:
    cut, left_out = {}, []
    for name, value in document.items():
        if isinstance(value, PagedRows):
            shown = value.items[page.offset : page.offset + page.limit]
            cut[name] = _plain([value.show(item) for item in shown])
            left_out += _left_out(name, value, shown, page)
        elif value is not None:
            cut[name] = _plain(value)
    return cut | {LEFT_OUT: left_out} if left_out else cut


def _left_out(name: str, rows: PagedRows, shown: Sequence[Any], page: Page) -> list[str]:
    """A sentence, if the page has not all."""
    total, end = len(rows.items), page.offset + len(shown)
    if not shown and total:
        return [f"{name}: there are {total}, none after offset {page.offset}"]
    if end < total:
        if rows.ask is not None:
            return [f"{name}: {len(shown)} are here; {rows.ask(shown)}"]
        return [f"{name}: {len(shown)} of {total} are here; {end} to {total - 1} with offset={end}"]
    return [f"{name}: the first {page.offset} of {total} were left out by the offset"] if page.offset and total else []


def _plain(value: Any) -> Any:
    """A struct or an instant as JSON has it, without what is unknown."""
    return _known(msgspec.to_builtins(value))


def _known(value: Any) -> Any:
    """A value of JSON without keys whose value is unknown."""
    if isinstance(value, Mapping):
        return {name: _known(each) for name, each in value.items() if each is not None}
    return [_known(each) for each in value] if isinstance(value, list) else value
