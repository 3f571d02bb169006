from pathlib import Path
from types import SimpleNamespace
from typing import Any, Final

import pytest

from spark_app.errors import UsageError
from spark_app.execution import stream_reset
from spark_app.execution.run import locked
from spark_app.local_files import try_lock
from spark_app.warehouse.tables import Warehouse

NAME: Final = "streaming.copy"
CONTEXT: Final[Any] = SimpleNamespace(telemetry=SimpleNamespace(identity=SimpleNamespace(pipeline=NAME)), slice="")


def test_a_query_starts_over_only_while_it_is_stopped(tmp_path: Path) -> None:
    """One that runs is left alone, also before it writes its status; one that is started meanwhile waits."""
    no_session: Any = None
    warehouse = Warehouse(no_session, str(tmp_path), [])
    application: Any = SimpleNamespace(warehouse=warehouse)
    with (
        locked(application, CONTEXT),
        pytest.raises(UsageError, match=r"streaming\.copy runs: stop it first"),
        stream_reset.stopped(warehouse, ["streaming.other", NAME]),
    ):
        pass
    with stream_reset.stopped(warehouse, [NAME]), try_lock(tmp_path / "_locks" / f"{NAME}.lock") as is_free:
        assert not is_free
    with locked(application, CONTEXT):  # the lock is free again
        pass
