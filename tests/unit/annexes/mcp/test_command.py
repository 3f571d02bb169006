import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.server.mcpserver import MCPServer

from spark_app.__main__ import run
from spark_app.annexes.mcp.library import Library
from spark_app.annexes.mcp.server import server
from spark_app.annexes.mcp.tools import Tools
from spark_app.eventlog.diagnoses.thresholds import Thresholds
from spark_app.settings import load_settings
from tests.polling import patience

ROOT: Final = Path(__file__).parents[4]
LOGS: Final = ROOT / "tests" / "eventlogs" / "causes"
RUN: Final = "tiny_tasks-planted.zst"
TOOLS: Final = {name for name in vars(Tools) if not name.startswith("_")}
PROMPTS: Final = {"why_slow", "why_failed", "what_changed"}
STEP: Final = re.compile(r"^\d\. (\w+)", re.MULTILINE)


def command(*arguments: str) -> list[str]:
    """The program, started in a process of its own."""
    return [sys.executable, "-m", "spark_app", "mcp", *arguments]


def over_stdio(home: Path) -> StdioServerParameters:
    """A server over standard input and output."""
    program, *arguments = command(str(LOGS))
    environment = {"SPARK_APP_HOME": str(home), "PATH": os.environ["PATH"]}
    return StdioServerParameters(command=program, args=arguments, env=environment, cwd=ROOT)


@contextmanager
def serving(home: Path, *arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A server over HTTP, and its address."""
    environment = os.environ | {"SPARK_APP_HOME": str(home)}
    with subprocess.Popen(
        command(*arguments), cwd=ROOT, env=environment, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stderr is not None
            yield process, process.stderr.readline().partition("serving on ")[2].partition(" ")[0]
        finally:
            process.terminate()


def asked(place: Any, questions: Callable[[Client], Awaitable[None]]) -> None:
    """Asks a server over a client of the SDK."""

    async def ask() -> None:
        async with Client(place) as client:
            await questions(client)

    asyncio.run(ask())


async def explained(client: Client) -> None:
    """A run is explained, and what is asked wrongly is answered with an error, after which the server goes on."""
    tools = (await client.list_tools()).tools
    assert {tool.name for tool in tools} == TOOLS
    assert all(tool.description and tool.annotations and tool.annotations.read_only_hint for tool in tools)
    rows = await answer(client, "list_runs", name="TINY_TASKS")
    assert {row["run"] for row in rows["runs"]} == {RUN, "tiny_tasks-quiet.zst"}
    assert (await answer(client, "summary", run=RUN))["findings"][0]["rule"] == "tiny_tasks"
    assert "no run or event log 'nothing'" in await failure(client, "summary", run="nothing")
    assert "stage" in await failure(client, "stage", run=RUN)
    assert "greater than or equal to 0" in await failure(client, "stage", run=RUN, stage=-1)
    assert "nonsense" in await failure(client, "nonsense")
    assert (await answer(client, "query_plan", run=RUN, query=0))["operators"]


async def misspelled(client: Client) -> None:
    """Nothing is answered to a question with an argument that is not known."""
    assert all(tool.input_schema["additionalProperties"] is False for tool in (await client.list_tools()).tools)
    assert await failure(client, "search_events", run=RUN, text="TaskEnd") == (
        "error: search_events has no argument 'text'. Its arguments are run, contains, event, after, limit, width."
    )
    assert "'severitty'; did you mean severity? Its" in await failure(client, "findings", run=RUN, severitty="info")
    with pytest.raises(MCPError, match=r"why_slow has no argument 'rum'; did you mean run\? Its arguments are run\."):
        await client.get_prompt("why_slow", {"rum": RUN})


async def guided(client: Client) -> None:
    """Each prompt names tools, in an order that begins with an overview, and the run that is meant."""
    listed = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
    assert set(listed) == PROMPTS
    assert all(prompt.description and prompt.arguments for prompt in listed.values())
    for name, first in (("why_slow", "summary"), ("why_failed", "summary"), ("what_changed", "compare")):
        steps = STEP.findall(await prompted(client, name, run=RUN))
        assert steps[0] == first
        assert set(steps) <= TOOLS
    assert f"run='{RUN}'" in await prompted(client, "why_slow", run=RUN)
    assert "list_runs with limit=1" in await prompted(client, "why_failed")
    assert "baseline='tiny_tasks-quiet.zst'" in await prompted(client, "what_changed", baseline="tiny_tasks-quiet.zst")


async def prompted(client: Client, name: str, **arguments: str) -> str:
    """The text of a prompt."""
    (message,) = (await client.get_prompt(name, arguments)).messages
    return str(message.content.text)  # type: ignore[union-attr]


async def answer(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    """The document of a tool, which is the same as text and as structured content."""
    result = await client.call_tool(tool, arguments)
    (content,) = result.content
    assert not result.is_error, content
    document: dict[str, Any] = json.loads(content.text)  # type: ignore[union-attr]
    assert document == result.structured_content
    return document


async def failure(client: Client, tool: str, **arguments: Any) -> str:
    """Why a tool has no answer."""
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


def test_an_assistant_asks_over_standard_input_and_output(tmp_path: Path) -> None:
    """Nothing but the protocol is on standard output."""
    asked(over_stdio(tmp_path), explained)


def in_process() -> MCPServer[Any]:
    """The same server without a process of its own."""
    return server(Tools(Library(load_settings(), LOGS, Thresholds())))


def test_an_unknown_argument_is_refused() -> None:
    """With the nearest one and all that the tool or the prompt has."""
    asked(in_process(), misspelled)


def test_prompts_name_the_tools_to_call() -> None:
    """For the questions that are asked most."""
    asked(in_process(), guided)


def test_an_assistant_asks_over_http(tmp_path: Path) -> None:
    """On the loopback; pages of other sites, which a browser would let ask, are refused."""
    with serving(tmp_path, str(LOGS), "--http", "0") as (process, address):
        assert address.startswith("http://127.0.0.1:")
        asked(address, explained)
        for header in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
            refused = httpx2.post(address, json={}, headers=header)
            assert refused.status_code in (403, 421), refused.text
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=patience(20))
        assert (process.returncode, "Traceback" in said) == (0, False), said


def test_the_end_of_standard_input_ends_the_server(tmp_path: Path) -> None:
    """With exit code 0, as at the end of the assistant."""
    environment = os.environ | {"SPARK_APP_HOME": str(tmp_path)}
    done = subprocess.run(
        command(), cwd=ROOT, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("kind", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_server(tmp_path: Path, kind: signal.Signals) -> None:
    """Also while it waits for a question."""
    environment = os.environ | {"SPARK_APP_HOME": str(tmp_path)}
    pipes: dict[str, Any] = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command(), cwd=ROOT, env=environment, text=True, bufsize=1, **pipes) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write('{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        assert '"id":1' in process.stdout.readline()
        process.send_signal(kind)
        assert (*process.communicate(timeout=patience(20)), process.returncode) == ("", "", 0)


def test_a_port_that_is_taken_exits_with_2(capsys: pytest.CaptureFixture[str]) -> None:
    """The message names it."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        assert run(["mcp", "--http", str(port)]) == 2
    assert f"cannot listen on 127.0.0.1:{port}" in capsys.readouterr().err


def test_a_folder_that_is_not_there_exits_with_3(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Before anything is served."""
    assert run(["mcp", str(tmp_path / "nothing")]) == 3
    assert "is no folder" in capsys.readouterr().err


def test_the_tools_and_prompts_are_documented() -> None:
    """Each in docs/reference.md, and no other."""
    section = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8").partition("## spark-app mcp\n")[2]
    items = [line for line in section.partition("\n## ")[0].splitlines() if line.startswith("- `")]
    assert {item.split("`")[1] for item in items} == TOOLS | PROMPTS


def test_a_missing_extra_is_an_error_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One line says what is missing and what to install."""
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert run(["mcp"]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "of which mcp is not installed here: install spark-app[mcp]" in line
