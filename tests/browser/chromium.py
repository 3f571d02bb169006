"""A headless Chromium that a test talks to over two pipes, by the DevTools protocol; no driver, no port."""

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
Answer = dict[str, Any]


class Page:
    """One tab; `problems` are all errors and warnings of its console, and everything that it asked a network for."""

    def __init__(self, out: int, into: int) -> None:
        """Takes the ends of both pipes."""
        self._out, self._into, self._rest = out, into, b""
        self._numbers, self._session = count(1), ""
        self.problems: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, file: Path, *, width: int = 1280, scheme: str = "light") -> None:
        """Shows a file in a window of a width, to somebody who likes it light or dark; waits until it is there."""
        self.problems.clear()
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._ask("Page.navigate", url=file.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """What a line of JavaScript gives."""
        told = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told
        return told["result"].get("value")

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other."""
        for key in keys:
            text = {"text": "\r"} if key == "Enter" else {}
            code = {"Enter": 13, "Tab": 9}[key]
            self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
            self._ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def _ask(self, method: str, **parameters: Any) -> Answer:
        number = next(self._numbers)
        session = {"sessionId": self._session} if self._session else {}
        command = {"id": number, "method": method, "params": parameters} | session
        os.write(self._into, json.dumps(command).encode() + b"\0")
        while (told := self._next()).get("id") != number:
            pass
        assert "error" not in told, told
        result: Answer = told["result"]
        return result

    def _next(self) -> Answer:
        while b"\0" not in self._rest:
            chunk = os.read(self._out, 1 << 16)
            assert chunk, "Chromium went away"
            self._rest += chunk
        line, self._rest = self._rest.split(b"\0", 1)
        told: Answer = json.loads(line)
        self._note(told.get("method", ""), told.get("params", {}))
        return told

    def _note(self, method: str, told: Answer) -> None:
        match method:
            case "Log.entryAdded":
                self.problems.append(told["entry"]["text"])
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.problems.append(json.dumps(told))
            case "Network.requestWillBeSent" if not told["request"]["url"].startswith(("file:", "data:")):
                self.problems.append(f"asked for {told['request']['url']}")


@contextmanager
def chromium(profile: Path) -> Iterator[Page]:
    """A browser with a profile of its own; fails with a word on what to install where there is none."""
    program = next(filter(None, map(shutil.which, NAMES)), None)
    assert program, f"none of {', '.join(NAMES)} is on PATH: apt-get install -y --no-install-recommends chromium"
    (theirs_in, into), (out, theirs_out) = os.pipe(), os.pipe()
    # Chromium reads commands from descriptor 3 and writes to 4, whatever numbers the pipes have here.
    wired = ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", program]
    process = subprocess.Popen(
        [*wired, *FLAGS, "--remote-debugging-pipe", f"--user-data-dir={profile}"],
        pass_fds=(theirs_in, theirs_out),
        stderr=subprocess.DEVNULL,
    )
    os.close(theirs_in)
    os.close(theirs_out)
    try:
        yield Page(out, into)
    finally:
        os.close(into)
        process.terminate()
        process.wait(timeout=20)
        os.close(out)
