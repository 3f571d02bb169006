"""What a model was made of: the commit of the program, and a fingerprint of all that determines a model."""

import hashlib
import json
import subprocess
from contextlib import suppress
from typing import Any, Final

from app.settings import IS_INSTALLED, PROJECT

GIT_SECONDS: Final = 5


def git_commit() -> str | None:
    """The commit that is checked out; None outside of a clone and without git.

    An installed wheel may lie in the clone of another project, whose commit says nothing about it.
    """
    if IS_INSTALLED:
        return None
    command = ["git", "-C", str(PROJECT), "rev-parse", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True)
        return done.stdout.strip() or None
    return None


def fingerprint(**parts: Any) -> str:
    """The same text for the same parts, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()
