"""Notes which sessions of Spark Connect a Python program has opened, on which servers.

The application and its event log are on the server, which has the id of the session, too. `spark-app observe` loads a
copy of this file into the programs of others, as it does with `call_sites`: so it imports nothing of this project, runs
on Python 3.8 and later, and raises nothing.
"""

from __future__ import annotations

import functools
import json
import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

FILE: Final = "connect-sessions.jsonl"
CLIENT: Final = "pyspark.sql.connect.client.core"


def note(when_imported: Callable[[str, Callable[[Any], None]], None], folder: str) -> None:
    """Notes the sessions of this process from now on, a line each.

    Args:
        when_imported: Has a module patched when it is imported (`call_sites.when_imported`).
        folder: Where the file is; programs of one command share it.
    """
    when_imported(CLIENT, functools.partial(_patch, folder=folder))


def _patch(module: Any, folder: str) -> None:
    original = module.SparkConnectClient.__init__

    @functools.wraps(original)
    def init(self: Any, *arguments: Any, **named: Any) -> None:
        original(self, *arguments, **named)
        with suppress(Exception):
            _write(self, folder)

    module.SparkConnectClient.__init__ = init


def _write(client: Any, folder: str) -> None:
    """Appends the session of a client, without the token of its address."""
    builder = client._builder
    server = getattr(builder, "endpoint", None) or builder.host
    session = {"server": server, "session": client._session_id, "user": client._user_id or ""}
    with open(os.path.join(folder, FILE), "a", encoding="utf-8") as file:
        file.write(json.dumps(session) + "\n")
