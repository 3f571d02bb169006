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

from tests.polling import patience, poll_until

NAMES: Final = ("chromium", "chromium-browser", "google-chrome")
FLAGS: Final = ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking")
LOCAL: Final = ("file:", "data:", "http://127.0.0.1:")
KEYS: Final = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
"""The keys that a test presses, with what Windows calls them."""
Answer = dict[str, Any]


class Page:
    """One tab; `violations` are all errors and warnings of its console, and everything that it asked a network for."""

    def __init__(self, out: int, into: int) -> None:
        """Takes the ends of both pipes."""
        self._out, self._into, self._rest = out, into, b""
        self._numbers, self._session = count(1), ""
        self.problems: list[str] = []
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def open(self, page: Path | str, *, width: int = 1280, scheme: str = "light") -> None:
        """Shows a file or an address of this machine in a window of a width, light or dark; waits until it is there."""
        self.problems.clear()
        self._ask(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        self._ask("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self._ask("Page.navigate", url=page if isinstance(page, str) else page.as_uri())
        while self._next().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        """What a line of JavaScript gives."""
        message = self._ask("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in message, message
        return message["result"].get("value")

    def wait(self, condition: str) -> None:
        """Waits until a line of JavaScript is true."""
        poll_until(lambda: self.value(f"Boolean({condition})"), condition)

    def click(self, selector: str) -> None:
        """Clicks the first element of a selector, as a person does: in its midst, after scrolling to it."""
        x, y = self._midst(selector)
        for kind in ("mousePressed", "mouseReleased"):
            self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def hover(self, selector: str) -> None:
        """Moves the mouse over the first element of a selector."""
        x, y = self._midst(selector)
        self._ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)

    def _midst(self, selector: str) -> tuple[float, float]:
        """Scrolls to the first element of a selector; returns where its midst is then."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        x, y = self.value(
            f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({found}.getBoundingClientRect())"
        )
        return x, y

    def roles(self, selector: str) -> list[str]:
        """The role that a screen reader says of each element in the first one of a selector."""
        root = self._ask("DOM.getDocument")["root"]["nodeId"]
        found = self._ask("DOM.querySelector", nodeId=root, selector=selector)["nodeId"]
        nodes = self._ask("Accessibility.queryAXTree", nodeId=found)["nodes"]
        return [node["role"]["value"] for node in nodes if not node["ignored"]]

    @property
    def clipboard(self) -> str:
        """The text that was copied."""
        self._ask("Browser.grantPermissions", permissions=["clipboardReadWrite"])
        text: str = self.value("navigator.clipboard.readText()")
        self._ask("Browser.resetPermissions")
        return text

    def type(self, text: str) -> None:
        """Types into what has the focus."""
        self._ask("Input.insertText", text=text)

    def press(self, *keys: str) -> None:
        """Presses keys, one after the other."""
        for key in keys:
            text = {"text": "\r"} if key == "Enter" else {}
            code = KEYS[key]
            self._ask("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
            self._ask("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def _ask(self, method: str, **parameters: Any) -> Answer:
        number = next(self._numbers)
        session = {"sessionId": self._session} if self._session else {}
        command = {"id": number, "method": method, "params": parameters} | session
        os.write(self._into, json.dumps(command).encode() + b"\0")
        while (message := self._next()).get("id") != number:
            pass
        assert "error" not in message, message
        result: Answer = message["result"]
        return result

    def _next(self) -> Answer:
        while b"\0" not in self._rest:
            chunk = os.read(self._out, 1 << 16)
            assert chunk, "Chromium went away"
            self._rest += chunk
        line, self._rest = self._rest.split(b"\0", 1)
        message: Answer = json.loads(line)
        self._note(message.get("method", ""), message.get("params", {}))
        return message

    def _note(self, method: str, parameters: Answer) -> None:
        match method:
            case "Log.entryAdded":
                self.problems.append(parameters["entry"]["text"])
            case "Runtime.exceptionThrown" | "Runtime.consoleAPICalled":
                self.problems.append(json.dumps(parameters))
            case "Network.requestWillBeSent" if not parameters["request"]["url"].startswith(LOCAL):
                self.problems.append(f"asked for {parameters['request']['url']}")


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
        process.wait(timeout=patience(20))
        os.close(out)
