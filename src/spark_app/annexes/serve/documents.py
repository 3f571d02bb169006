"""Pages of the documentation that alerts and findings lead to, from their Markdown: each heading has an anchor."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from spark_app.settings import IS_INSTALLED, PACKAGE, PROJECT

NAMES: Final = ("runbook", "incidents", "diagnoses", "accuracy")
FOLDER: Final = (PACKAGE / "stack" if IS_INSTALLED else PROJECT) / "docs"


def page(name: str, folder: Path = FOLDER) -> tuple[str, Markup] | None:
    """The title and the content of a page; None without one of this name."""
    file = folder / f"{name}.md"
    if name not in NAMES or not file.is_file():
        return None
    return _rendered(file, file.stat().st_mtime_ns)


@cache
def _rendered(file: Path, _: int) -> tuple[str, Markup]:
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(file.read_text(encoding="utf-8"))
    for opening, inline in pairwise(tokens):
        if opening.type == "heading_open":
            opening.attrSet("id", anchor(inline.content))
    for token in tokens:
        _redirect(token.children or [])
    title = tokens[1].content if tokens and tokens[0].tag == "h1" else file.stem
    below = tokens[3:] if tokens and tokens[0].tag == "h1" else tokens
    return title, Markup(parser.renderer.render(below, parser.options, {}))


def _redirect(tokens: Sequence[Token]) -> None:
    """Has links lead to pages that are served; one to another file of the repository is no link."""
    opening: Token | None = None
    for token in tokens:
        if token.type == "link_open":
            opening = token
            _replace(token)
        elif token.type == "link_close" and opening is not None:
            token.tag = opening.tag


def _replace(link: Token) -> None:
    parts = urlsplit(str(link.attrGet("href") or ""))
    if parts.scheme or not parts.path:
        return
    name = parts.path.removesuffix(".md")
    if name in NAMES:
        link.attrs = {"href": f"/docs/{name}#{parts.fragment}".rstrip("#")}
    else:
        link.tag, link.attrs = "span", {}


def anchor(heading: str) -> str:
    """The name by which links find a heading, as GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
