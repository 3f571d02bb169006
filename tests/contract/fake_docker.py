# ruff: noqa: PTH123, PTH105 - to import pathlib (and typing) takes longer than all else
"""A `docker` for the PATH of a test: it answers what a file says, and notes what it was asked.

Run as a program, with the folder of its files in FAKE_DOCKER: `state.json` (what to answer), `calls` (what was asked).
"""

from __future__ import annotations

import json
import os
import signal
import sys

FOLDER = os.environ.get("FAKE_DOCKER", ".")
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(words: list[str]) -> int:
    """Answers one call; gives the exit code."""
    with open(f"{FOLDER}/state.json", encoding="utf-8") as file:
        state = json.load(file)
    given = "" if sys.stdin.isatty() or words[:1] != ["compose"] or "run" not in words else sys.stdin.read()
    call = {"words": words, "given": given, "bind": os.environ.get("BIND_ADDRESS")}
    with open(f"{FOLDER}/calls", "a", encoding="utf-8") as calls:
        calls.write(json.dumps(call) + "\n")
    match words:
        case ["info", *_]:
            return said(state["info"])
        case ["compose", "version", *_]:
            return said(state["compose"])
        case ["image", "inspect", *images]:
            return 0 if set(images) <= set(state["images"]) else 1
        case ["volume", "inspect", volume]:
            return 0 if volume in state["volumes"] else 1
        case ["ps", *_]:
            return said({"out": "\n".join(json.dumps(container) for container in state["others"])})
        case ["logs", *_, name]:
            return said({"err": state["logs"].get(name, "")})
        case ["compose", *rest]:
            return compose(rest[rest.index("-f") + 2 :], state)
    return 64


def compose(words: list[str], state: dict[str, Any]) -> int:
    """Answers a call of Compose."""
    match words:
        case ["config", *_]:
            return said({"out": json.dumps(state["config"])})
        case ["ps", *_]:
            found = state["containers"][0]
            if len(state["containers"]) > 1:
                state["containers"].pop(0)
                write("state.json", json.dumps(state))
            return said({"out": "\n".join(json.dumps(container) for container in found)})
        case ["pull" | "build", service]:
            return 1 if service in state["cannot"] else 0
        case ["run", *_]:
            return int(state["run"])
        case ["up", *_]:
            if state["up"] == "hangs":
                write("up.pid", str(os.getpid()))
                signal.pause()
            return said(state["up"])
    return 64


def write(name: str, text: str) -> None:
    """Writes one of the files, whole or not at all."""
    with open(f"{FOLDER}/{name}.new", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(f"{FOLDER}/{name}.new", f"{FOLDER}/{name}")


def said(answer: dict[str, Any]) -> int:
    """Says what is to be said; gives the exit code."""
    sys.stdout.write(answer.get("out", ""))
    sys.stderr.write(answer.get("err", ""))
    return int(answer.get("code", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
