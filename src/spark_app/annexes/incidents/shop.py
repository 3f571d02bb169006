"""The project of the shop in the container of the master: its raw files and records, and the commands that run it."""

import datetime
import json
import random
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

from spark_app.annexes.incidents.planting import DATA, MASTER, Planting

PROJECT: Final = Path(__file__).parent / "project"
PACKAGE: Final = "incident_shop"
MARK: Final = f'[tool.spark-app]\npackage = "{PACKAGE}"\n'
DAY: Final = "2024-01-01"
RUN_SECONDS: Final = 300


def data(planting: Planting) -> str:
    """The folder of its tables, checkpoints, raw files and records."""
    return f"{DATA}/{planting.name}"


def is_installed(planting: Planting) -> bool:
    """Whether the project of this planting is there."""
    asked = planting.docker.shell(MASTER, 'test -e "$1" && echo yes || true', f"{planting.folder}/pyproject.toml")
    return asked == "yes"


def install(planting: Planting) -> None:
    """Copies the project, and writes its configuration: its environment has the name of the planting."""
    for path in sorted(PROJECT.glob(f"{PACKAGE}/**/*.py")):
        name = path.relative_to(PROJECT).as_posix()
        planting.docker.write(MASTER, f"{planting.folder}/{name}", path.read_bytes())
    planting.docker.write(MASTER, f"{planting.folder}/pyproject.toml", MARK.encode())
    settings = {
        "environment": planting.name,
        "raw": {"path": f"{data(planting)}/raw"},
        "stream": {"landing": f"{data(planting)}/landing"},
    }
    planting.docker.write(MASTER, f"{planting.folder}/config/app.yml", json.dumps(settings).encode())


def command(planting: Planting, *words: str) -> list[str]:
    """A command of spark-app for the project, whose home is a folder of its own and which reads files, not Kafka."""
    stack = ("SPARK_APP_KAFKA__SERVERS", "SPARK_APP_ENVIRONMENT")
    unset = [word for name in stack for word in ("--unset", name)]
    home = f"SPARK_APP_HOME={data(planting)}"
    return ["env", *unset, home, "spark-app", *words, "--config", f"{planting.folder}/config"]


def start(planting: Planting, *words: str) -> None:
    """Starts a command of spark-app for the project, and does not wait for it."""
    planting.run_command(*command(planting, *words))


def wait(planting: Planting) -> None:
    """Waits for the end of what was started.

    Raises:
        MachineError: It takes too long.
    """
    planting.wait_until(lambda: not planting.is_running(), "end of its programs", seconds=RUN_SECONDS)


def sales(day: str, *, rows: int = 4000, amount: float = 20.0, negative: float = 0.0) -> list[dict[str, Any]]:
    """Raw sales of a day.

    Args:
        day: The day.
        rows: How many.
        amount: Their mean amount, in EUR.
        negative: The share of those whose amount is not positive.
    """
    draws = random.Random(f"{day} {amount} {negative}")
    made = []
    for number in range(rows):
        price = round(draws.lognormvariate(0, 0.5) * amount, 2)
        is_bad = draws.random() < negative
        returned = draws.random() < min(0.9, price / (5 * amount))
        second = number * 86_000 // rows
        made.append(
            {
                "sale_id": f"{day}-{number}",
                "customer_id": f"c-{number % 500}",
                "amount": -price if is_bad else price + 0.01,
                "pieces": draws.randint(1, 5),
                "created_at": f"{day}T{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}Z",
                "is_returned": returned,
            }
        )
    return made


def deliver_day(planting: Planting, day: str, rows: Iterable[Mapping[str, Any]]) -> None:
    """Writes the raw file of a day."""
    path = f"{data(planting)}/raw/incident_sales/date={day}/sales.json"
    planting.docker.write(MASTER, path, _lines(json.dumps(row) for row in rows))


def deliver_records(planting: Planting, name: str, lines: Iterable[str]) -> None:
    """Writes a file of records of orders."""
    planting.docker.write(MASTER, f"{data(planting)}/landing/incident_orders/{name}.jsonl", _lines(lines))


def order(number: int, instant: float) -> str:
    """A record of an order at a Unix time."""
    at = (
        datetime.datetime.fromtimestamp(instant, datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    )
    return json.dumps({"order_id": f"o-{number}", "amount": 10.0, "timestamp": at})


def _lines(lines: Iterable[str]) -> bytes:
    return "".join(f"{line}\n" for line in lines).encode()
