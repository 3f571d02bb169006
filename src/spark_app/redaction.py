"""Masks passwords, tokens and keys in settings, URLs and errors before anything is written or printed.

A secret is recognised by the name before it: those of Spark's `spark.redaction.regex` (secret, password, token, access
key) and Hadoop's `hadoop.security.sensitive-config-keys`, and some more. A secret without a name cannot be recognised.
"""

import re
from functools import lru_cache
from typing import Final

REDACTED: Final = "(redacted)"
_NAME: Final = (
    r"(?:secret|passw|passphrase|(?<!by)(?<!com)(?<!tres)(?<!sur)(?<!over)(?<!under)pass(?![a-z])|pwd|jaas"
    r"|token(?!iz)|credential(?!s?[._-]?provider)"
    r"|(?:access|account|api|encryption|keystore|private|shared)[._-]?key(?!size)|authorization(?![\w.-])"
    r"|amz-signature|(?<![a-z])sig(?![a-z])"
    r"|(?-i:(?<!PRIMARY)(?<!FOREIGN)(?<!PARTITION)(?<!SORT)(?<!JOIN)(?<!MAP)(?<!ROW)(?<!PUBLIC)_KEY(?![\w.-])))"
)
_NAME_BEFORE_SPACE: Final = (
    r"(?:passw(?:or)?d|passphrase|pwd|(?:secret|access|account|api|private)[._-]?key"
    r"|(?:client|app)[._-]?secret|(?:access|auth|api|session)[._-]?token)(?![\w.-])"
)
"""Names before a quoted value in SQL; fewer, since prose has `token 'FROM'` and `secret "x" not found`."""
_QUOTED: Final = (
    r"(?:\"(?:[^\"\\]|\\.)*+\"?|'(?:[^'\\]|\\.)*+'?"
    r"|(?P<escape>\\++)(?P<quote>[\"'])(?:(?!(?<!\\)(?P=escape)(?P=quote))[^\n])*+(?:(?P=escape)(?P=quote))?)"
)
"""`"x y"`, `'x y'`, and `\"x y\"` of JSON in JSON; the closing quote may be cut off."""
_MORE: Final = r"(?:,(?![\w.-]*+[\"']?\s*+(?:[=:>]|->))[^\s\"',;&()\[\]{}]++)*+"
"""The rest of a value with commas; a comma before the next name ends it."""
_VALUE: Final = rf"(?:{_QUOTED}|\(redacted\)|(?:(?:basic|bearer)\s+)?[^\s\"',;&]+{_MORE})"
_WORDS: Final = ("secret", "pass", "pwd", "jaas", "token", "credential", "key", "authorization", "sig")
"""A text with none of them, as most plans are, has none of the names."""
_SECRET: Final = re.compile(_NAME, re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    rf"((?<![\w.-])(?=[\w.-]++\\*+[\"']?\s*+(?:[=:]|->|(?<=-)>))(?>[\w.-]*?{_NAME})[\w.-]*+\\*+[\"']?\s*+"
    rf"(?:[=:]|->|(?<=-)>)\s*+){_VALUE}",
    re.IGNORECASE,
)
"""`password=x`, `-Ddb.password=x`, `"apiKey": "x y"`, `Authorization: Bearer x`, `token=x` in a URL, `password -> x`.

The pattern first checks that a word is followed by `=`, `:` or `->`, which is faster: most words are not.
"""
_OPTION: Final = re.compile(rf"(-(?<!\S-)(?>[\w.-]*?{_NAME})[\w.-]*+\s++)(?!-){_VALUE}", re.IGNORECASE)
"""`--password x`."""
_SPACED: Final = re.compile(
    rf"((?<![\w.-])(?=[\w.-]++[\"']?\s++\\*+[\"'])(?>[\w.-]*?{_NAME_BEFORE_SPACE})[\"']?\s++){_QUOTED}", re.IGNORECASE
)
"""`password 'x'` in the options of SQL."""
_PAIR: Final = re.compile(
    rf"((?>(?:(?<=\w)(?P<call>))?)[(\[]\s*+\\*+[\"']?(?=[\w.-]++\\*+[\"']?\s*+,)(?>[\w.-]*?{_NAME})[\w.-]*+\\*+[\"']?\s*+,\s*+)"
    rf"(?:{_QUOTED}(?!\s*+:)|(?(call)(?!))[^\s\"',;&()\[\]]++(?=[)\]]))",
    re.IGNORECASE,
)
"""`option("password", "x")` and the pair `(password,x)`."""
_BEARER: Final = re.compile(r"(\bbearer\s++)[\w.~+/=-]{16,}+", re.IGNORECASE)
"""`Bearer x`, without the name of the header."""
_USER: Final = re.compile(
    r"(?<![^\s/@:\"'(,;=])[^\s/@:\"'(,;=]{1,100}:[^\s/@]{1,200}@(?:[^\s/@,;\"'()=&?]{1,100}@){0,5}"
    r"|(?:(?<=http://)|(?<=https://))(?!\(redacted\)@)[^\s/@\"'?#]{1,300}@"
)
"""`me:x@` before the host of a URL, up to the last `@`; `x@` of the web."""
_MAX_CACHED: Final = 10_000
"""Characters; a plan may have millions."""
_SWITCHES: Final = ("", "true", "false")
_READ_FACTOR: Final = 4
"""How many times as much is read of a text as is shown: masked secrets make it shorter."""


def is_secret(name: str) -> bool:
    """Whether the value of a setting, a header or a variable of this name is masked."""
    return _SECRET.search(name) is not None


def setting(name: str, value: str) -> str:
    """The value of a setting with secrets masked; `true` and `false` are never masked."""
    return REDACTED if is_secret(name) and value.lower() not in _SWITCHES else redacted(value)


def redacted(text: str) -> str:
    """A text with masked secrets: values after a secret name, and credentials before the host of a URL.

    Results for short texts are cached: spans repeat the names of stages and hosts.
    """
    return _cached(text) if len(text) <= _MAX_CACHED else _redacted(text)


def shortened(text: str, most: int) -> str:
    """A text with masked secrets and at most so many characters; an ellipsis at its end says that there are more."""
    shown = redacted(text[: most * _READ_FACTOR])
    return shown if len(shown) <= most and len(text) <= most * _READ_FACTOR else shown[: most - 1] + "…"


def excerpt(text: str, most: int = 200) -> str:
    """The same on one line."""
    return shortened(" ".join(text.split()), most)


@lru_cache(maxsize=256)
def _cached(text: str) -> str:
    return _redacted(text)


def _redacted(text: str) -> str:
    lower = text.lower()
    masked = text
    if any(word in lower for word in _WORDS):
        for pattern in (_ASSIGNED, _OPTION, _SPACED, _PAIR):
            masked = pattern.sub(_masked, masked)
    if "bearer" in lower:
        masked = _BEARER.sub(_masked, masked)
    return _USER.sub(f"{REDACTED}@", masked) if "@" in masked else masked


def _masked(match: re.Match[str]) -> str:
    return f"{match[1]}{REDACTED}"
