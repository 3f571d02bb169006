"""What no file, page, span or terminal shows: passwords, tokens and keys in settings, addresses and errors.

A secret is told by the name before it; Spark's own `spark.redaction.regex` (secret, password, token, access key) and
Hadoop's `hadoop.security.sensitive-config-keys` name the same ones. One without a name cannot be told from other text.
"""

import re
from typing import Final

REDACTED: Final = "(redacted)"
_NAME: Final = (
    r"(?:secret|passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|jaas|token(?!iz)|credential(?!s?[._-]?provider)"
    r"|(?:access|account|api|encryption|private|shared)[._-]?key(?!size)|authorization(?![\w.-])"
    r"|amz-signature|(?<![a-z])sig(?![a-z]))"
)
_VALUE: Final = r"(?:\"(?:[^\"\\]|\\.)*\"?|'(?:[^'\\]|\\.)*'?|(?:(?:basic|bearer)\s+)?[^\s\"',;&]+)"
_SECRET: Final = re.compile(_NAME, re.IGNORECASE)
_ASSIGNED: Final = re.compile(rf"({_NAME}[\w.-]{{0,80}}[\"']?\s*[=:]\s*){_VALUE}", re.IGNORECASE)
"""`password=x`, `-Ddb.password=x`, `"apiKey": "x y"`, `Authorization: Bearer x`, `token=x` in a URL."""
_OPTION: Final = re.compile(rf"((?<!\S)--?[\w.-]{{0,80}}{_NAME}[\w.-]{{0,80}}\s+)(?!-){_VALUE}", re.IGNORECASE)
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


def redacted(text: str) -> str:
    """A text without the secrets that have a name in it, or stand before the host of an address."""
    told = _OPTION.sub(rf"\1{REDACTED}", _ASSIGNED.sub(rf"\1{REDACTED}", text))
    return _USER.sub(f"{REDACTED}@", told)
