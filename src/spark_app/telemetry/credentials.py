"""The secrets in the standard `OTEL_EXPORTER_OTLP_*` variables: the SDK, requests and gRPC repeat them in messages."""

import re
from collections.abc import Iterator, Mapping
from typing import Final
from urllib.parse import unquote

from spark_app.redaction import REDACTED

_NAME: Final = re.compile(r"OTEL_EXPORTER_OTLP(?:_[A-Z]+)?_(HEADERS|ENDPOINT)")
_USER: Final = re.compile(r"(?:[^/]*//)?(.*)@", re.DOTALL)
_UNRESERVED: Final = re.compile(r"[\w.~-]+", re.ASCII)
"""The characters that no quoting or escaping changes; RFC 3986, section 2.3."""
_MIN_CHARACTERS: Final = 4
"""Shorter texts are not secrets, and occur in every message."""


class Credentials:
    """Removes the secrets of some variables from texts; no general pattern would match them."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        """Collects them: the values of headers, and the user and the query of endpoints."""
        texts = {text for name, value in variables.items() for text in _secrets(name, value)}
        texts |= {piece for text in texts for piece in _UNRESERVED.findall(text)}
        known = sorted((text for text in texts if len(text) >= _MIN_CHARACTERS), key=len, reverse=True)
        self._pattern = re.compile("|".join(map(re.escape, known)), re.IGNORECASE) if known else None

    def hidden(self, text: str) -> str:
        """The text without the secrets and their pieces."""
        return self._pattern.sub(REDACTED, text) if self._pattern else text


def _secrets(name: str, value: str) -> Iterator[str]:
    """Each secret, as written and percent-decoded."""
    variable = _NAME.fullmatch(name)
    if variable is None:
        return
    for text in _of_headers(value) if variable[1] == "HEADERS" else _of_endpoint(value):
        yield from (text.strip(), unquote(text).strip())


def _of_headers(value: str) -> Iterator[str]:
    """The values of `name=value,name=value`; all of the text where it has another form."""
    yield from (each.split("=", 1)[-1] for each in value.split(","))


def _of_endpoint(value: str) -> Iterator[str]:
    user = _USER.match(value)
    if user:
        yield user[1]
    query = value.partition("?")[2]
    yield from (each.split("=", 1)[-1] for each in query.split("&"))
