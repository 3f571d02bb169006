# ruff: noqa: PTH123 - to import pathlib (and typing) takes longer than everything else here
"""A `docker` for the PATH of a test: it answers as `state.json` says and records each call in `calls`.

It runs as a program with the folder of both files in FAKE_DOCKER.
"""

from __future__ import annotations

import json
import os
import sys

FOLDER = os.environ.get("FAKE_DOCKER", ".")
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(words: list[str]) -> int:
    """Answers one call and returns the exit code."""
    with open(f"{FOLDER}/state.json", encoding="utf-8") as file:
        state = json.load(file)
    words = words[words.index("-f") + 2 :] if "-f" in words else words
    call = {
        "words": words,
        "options": sys.argv[1 : len(sys.argv) - len(words)],
        "stdin": sys.stdin.read() if words[0] == "run" else "",
        "bind": os.environ.get("BIND_ADDRESS"),
    }
    with open(f"{FOLDER}/calls", "a", encoding="utf-8") as calls:
        calls.write(json.dumps(call) + "\n")
    return answer(words, state)


def answer(words: list[str], state: dict[str, Any]) -> int:
    """Prints the answer to one command and returns its exit code."""
    match words:
        case ["image", "inspect", *images]:
            return int(not set(images) <= set(state["images"]))
        case ["volume", "inspect", volume]:
            return int(volume not in state["volumes"])
        case ["build" | "pull", *services]:
            arrived = [state["config"]["services"][name]["image"] for name in services if name in state["registry"]]
            state["images"] += arrived
            with open(f"{FOLDER}/state.json", "w", encoding="utf-8") as file:
                json.dump(state, file)
            return int(not arrived)
        case ["config", *_]:
            sys.stdout.write(json.dumps(state["config"]))
            return 0
        case ["logs", *_, container]:
            sys.stderr.write(state["logs"].get(container, ""))
            return 0
    said = state[words[0]]
    sys.stdout.write(said.get("out", ""))
    sys.stderr.write(said.get("err", ""))
    return int(said.get("code", 0))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
