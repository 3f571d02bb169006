"""The secrets in the standard `OTEL_EXPORTER_OTLP_*` variables: the SDK, requests and gRPC repeat them in messages."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from app.redaction import REDACTED

_NAME: Final = re.compile(r"OTEL_EXPORTER_OTLP(?:_[A-Z]+)?_(HEADERS|ENDPOINT)")
_USER: Final = re.compile(r"(?:[^/]*//)?(.*)@", re.DOTALL)
_UNRESERVED: Final = re.compile(r"[\w.~-]+", re.ASCII)
"""What stays as it is however a text is quoted, escaped or torn into lines; RFC 3986, section 2.3."""
_SHORTEST: Final = 4
"""Shorter ones are no secrets, and are found in every message."""


class Credentials:
    """Takes the secrets of some variables out of texts; no pattern could know them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Finds them: headers, and what endpoints say before an @ and after a question mark."""
        texts = {text for name, value in variables.items() for text in _secrets(name, value)}
        texts |= {piece for text in texts for piece in _UNRESERVED.findall(text)}
        known = sorted((text for text in texts if len(text) >= _SHORTEST), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known)), re.IGNORECASE) if known else None

    def hidden(self, text: str) -> str:
        """The text without them, whole or in pieces."""
        return self._pattern.sub(REDACTED, text) if self._pattern else text


def _secrets(name: str, value: str) -> Iterator[str]:
    """Each as it stands there and percent-decoded."""
    found = _NAME.fullmatch(name)
    if found is None:
        return
    for text in _of_headers(value) if found[1] == "HEADERS" else _of_endpoint(value):
        yield from (text.strip(), unquote(text).strip())


def _of_headers(value: str) -> Iterator[str]:
    """The values of `name=value,name=value`; all of it where it is written in another way."""
    yield from (each.split("=", 1)[-1] for each in value.split(","))


def _of_endpoint(value: str) -> Iterator[str]:
    user = _USER.match(value)
    if user:
        yield user[1]
    query = value.partition("?")[2]
    yield from (each.split("=", 1)[-1] for each in query.split("&"))
