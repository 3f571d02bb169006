"""What no file, page, span or terminal shows: passwords, tokens and keys in settings, addresses and errors.

A secret is told by the name before it; Spark's own `spark.redaction.regex` (secret, password, token, access key) and
Hadoop's `hadoop.security.sensitive-config-keys` name the same ones. One without a name cannot be told from other text.
"""

import re
from functools import lru_cache
from typing import Final

REDACTED: Final = "(redacted)"
_NAME: Final = (
    r"(?:secret|passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|jaas|token(?!iz)|credential(?!s?[._-]?provider)"
    r"|(?:access|account|api|encryption|private|shared)[._-]?key(?!size)|authorization(?![\w.-])"
    r"|amz-signature|(?<![a-z])sig(?![a-z]))"
)
_VALUE: Final = r"(?:\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|(?:(?:basic|bearer)\s+)?[^\s\"',;&]+)"
_SECRET: Final = re.compile(_NAME, re.IGNORECASE)
_ASSIGNED: Final = re.compile(
    rf"((?<![\w.-])(?=[\w.-]++[\"']?\s*+[=:])(?>[\w.-]*?{_NAME})[\w.-]*+[\"']?\s*+[=:]\s*+){_VALUE}", re.IGNORECASE
)
"""`password=x`, `-Ddb.password=x`, `"apiKey": "x y"`, `Authorization: Bearer x`, `token=x` in a URL.

That a word is a name is looked at before what it says: texts are many, and most words in them are none.
"""
_OPTION: Final = re.compile(rf"(-(?<!\S-)(?>[\w.-]*?{_NAME})[\w.-]*+\s++)(?!-){_VALUE}", re.IGNORECASE)
"""`--password x`."""
_USER: Final = re.compile(r"(?<![^\s/@:\"'(,;=])[^\s/@:\"'(,;=]{1,100}:[^\s/@]{1,200}@")
"""`me:x@` before the host of an address."""
_SWITCHES: Final = ("", "true", "false")


def is_secret(name: str) -> bool:
    """Whether a setting, a header or a variable of this name has a value that is not shown."""
    return _SECRET.search(name) is not None


def setting(name: str, value: str) -> str:
    """The value of a setting as it may be shown; a switch is no secret, whatever its name."""
    return REDACTED if is_secret(name) and value.lower() not in _SWITCHES else redacted(value)


@lru_cache(maxsize=256)
def redacted(text: str) -> str:
    """A text without the secrets that have a name in it, or stand before the host of an address.

    A few are remembered: spans say the names of stages and hosts again and again.
    """
    told = _OPTION.sub(_masked, _ASSIGNED.sub(_masked, text))
    return _USER.sub(f"{REDACTED}@", told) if "@" in told else told


def _masked(found: re.Match[str]) -> str:
    return f"{found[1]}{REDACTED}"
