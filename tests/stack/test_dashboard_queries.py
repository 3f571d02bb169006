"""Prometheus evaluates the queries of dashboards over the series that finished runs leave behind: exactly, and soon."""

import json
import re
import socket
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from grafana.queries import INTERVAL, RANGE, added, grown
from spark_app.vocabulary import names, spark_names
from spark_app.vocabulary.names import Metric
from spark_app.vocabulary.prometheus_names import label
from tests.contract.dashboards import BOARDS, MAX_SERIES, Board, Query, is_of_others, queries
from tests.contract.metrics import catalogued, names_in, series
from tests.polling import poll_until

Samples = list[tuple[float, float]]


def grew(*steps: tuple[float, float, float]) -> Samples:
    """The samples of a series: seconds before the end of the data, a count, and a millisecond later the next count."""
    return [sample for before, old, new in steps for sample in ((END - before - 0.001, old), (END - before, new))]


HOUR: Final = 3_600
DAYS: Final = 30
DAY: Final = 86_400
END: Final = 1_766_000_000
HISTORIES: Final[dict[str, tuple[Samples, float | None]]] = {
    "a first run": (grew((900, 0, 100)), 100),
    "a run that began days before it counted": ([(END - 3 * DAY, 0), *grew((900, 0, 100))], 100),
    "two runs, most of an hour apart": (grew((3_000, 0, 100), (60, 100, 250)), 250),
    "a run before the time range": (grew((2 * DAY, 0, 100), (900, 100, 250)), 150),
    "the same day again after a restart of the collector": (grew((900, 0, 100), (300, 0, 100)), 200),
    "less than before, after a restart of the collector": (grew((900, 0, 500), (300, 0, 100)), 600),
    "an application that was forgotten, and ran again": (grew((5 * DAY, 0, 500), (300, 0, 7)), 7),
    "a long run that counts now and then": (grew((3_000, 0, 10), (1_500, 10, 20), (30, 20, 30)), 30),
    "nothing but a run long ago": (grew((DAY, 0, 100)), None),
}


SERIES: Final = 2_000
LOAD_SECONDS: Final = 2.0
READ: Final = series(names.READ)[0]
VALUES: Final[dict[str, list[str]]] = {
    label(names.PIPELINE): ["etl.daily_sales", "etl.customers", "etl.refunds"],
    label(names.APPLICATION): [f"application {number}" for number in range(18)],
    label(spark_names.STAGE_GROUP): ["scan", "join", "write"],
    label(names.OUTCOME): ["succeeded", "failed"],
}


def label_sets(metric: Metric) -> list[dict[str, str]]:
    """The labels of the series of a metric: of each application or pipeline, and two values of any other label."""
    own = [label(each) for each in metric.labels]
    wanted = [*own, *([label(names.APPLICATION)] if metric in spark_names.METRICS else [])]
    choices = [VALUES.get(name, [f"{name} 1", f"{name} 2"]) for name in wanted]
    environment = {label(names.ENVIRONMENT): "test"}
    return [environment | dict(zip(wanted, values, strict=True)) for values in product(*choices)]


def all_series() -> Iterator[tuple[str, bool]]:
    """Each series as OpenMetrics has it, and whether its program runs all the time and not for minutes a day."""
    for metric in (*names.METRICS, *spark_names.METRICS):
        bounds = [*(f"{bound:g}" for bound in metric.buckets), "+Inf"] if metric.buckets else []
        for labels in label_sets(metric):
            for name in series(metric):
                bucketed = [{"le": bound} for bound in bounds] if name.endswith("_bucket") else [dict[str, str]()]
                for le in bucketed:
                    text = ",".join(f'{key}="{value}"' for key, value in (labels | le).items())
                    yield f"{name}{{{text}}}", labels.get(label(names.APPLICATION)) == "application 0"


def samples(*, is_endless: bool) -> Samples:
    """When a series has which value: the base just before each run, and a sample each 30 s of its five minutes."""
    if is_endless:
        return [(at, float(at - END + DAYS * DAY)) for at in range(END - DAYS * DAY, END, 600)]
    found, value = list[tuple[float, float]](), 0.0
    for begin in range(END - DAYS * DAY + DAY // 2, END, DAY):
        found += [(begin - 1, value), *((begin + 30 * number, value + number + 1) for number in range(10))]
        value += 10
    return found


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus with a month of data; yields its address."""
    folder = tmp_path_factory.mktemp("prometheus")
    text, known = folder / "samples.txt", list(all_series())
    assert len(known) >= SERIES
    patterns = {is_endless: samples(is_endless=is_endless) for is_endless in (True, False)}
    with text.open("w", encoding="utf-8") as file:
        for name, is_endless in known:
            file.writelines(f"{name} {value:g} {at}\n" for at, value in patterns[is_endless])
        for name, (history, _) in HISTORIES.items():
            series_of_case = f'{READ}{{{label(names.PIPELINE)}="{name}"}}'
            file.writelines(f"{series_of_case} {value:g} {at:.3f}\n" for at, value in history)
        file.write("# EOF\n")
    fill = ["promtool", "tsdb", "create-blocks-from", "--max-block-duration=1000h", "openmetrics"]
    subprocess.run([*fill, str(text), str(folder / "data")], check=True, capture_output=True)
    text.unlink()
    (folder / "prometheus.yml").write_text("global: {}\n", encoding="utf-8")
    with running(folder) as address:
        yield address


@contextmanager
def running(folder: Path) -> Iterator[str]:
    """Prometheus with the features of the stack."""
    services = yaml.safe_load(Path("compose/observability.yml").read_text(encoding="utf-8"))["services"]
    features = [each for each in services["prometheus"]["command"] if each.startswith("--enable-feature=")]
    address = f"127.0.0.1:{free_port()}"
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    options += ["--storage.tsdb.retention.time=10y", f"--web.listen-address={address}", "--log.level=error"]
    process = subprocess.Popen(["prometheus", *options, *features])
    try:
        poll_until(lambda: is_ready(address), f"an answer of Prometheus at {address}")
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(30)


def free_port() -> int:
    """A port of the loopback that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def is_ready(address: str) -> bool:
    """Whether Prometheus answers queries."""
    try:
        with urllib.request.urlopen(f"http://{address}/-/ready", timeout=1) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def asked(address: str, query: Query, *, seconds: int) -> list[Any]:
    """What a panel gets for a time range that ends with the data, in at most 1,000 points."""
    step = max(60, seconds // 1_000)
    expression: str = query.content["expr"].replace(RANGE, f"{seconds}s").replace(INTERVAL, f"{step}s")
    expression = expression.replace("$__rate_interval", f"{step}s")
    expression = re.sub(r"\$(pipeline|application|namespace)\b", ".*", expression)
    if query.content.get("instant"):
        return answered(address, "query", query=expression, time=str(END))
    times = {"start": str(END - seconds), "end": str(END), "step": str(step)}
    return answered(address, "query_range", query=expression, **times)


def test_each_row_is_counted_once(prometheus: str) -> None:
    """Runs are few and days apart, and the collector may restart: the sum is still what the runs counted, exactly."""
    for window in (RANGE, INTERVAL):
        expression = added(grown(names.READ, window), names.PIPELINE).replace(window, f"{HOUR}s")
        found = {
            each["metric"][label(names.PIPELINE)]: float(each["value"][1]) for each in instant(prometheus, expression)
        }
        counted = {name: found.get(name) for name in HISTORIES}
        assert counted == {name: expected for name, (_, expected) in HISTORIES.items()}


def instant(address: str, expression: str) -> list[Any]:
    """The answer to an expression at the end of the data."""
    return answered(address, "query", query=expression.replace("$pipeline", ".*"), time=str(END))


def answered(address: str, path: str, **parameters: str) -> list[Any]:
    """The answer of Prometheus."""
    url = f"{address}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
    with urllib.request.urlopen(url, timeout=60) as answer:
        result: list[Any] = json.load(answer)["data"]["result"]
    return result


@pytest.mark.parametrize("days", [1, DAYS])
def test_every_dashboard_loads_soon_after_a_month(prometheus: str, days: int) -> None:
    """Each dashboard sends its queries at once, as Grafana does, for a day and for all the data."""
    took = {str(board): loading(prometheus, board, seconds=days * DAY) for board in BOARDS}
    assert {board: seconds for board, seconds in took.items() if seconds > LOAD_SECONDS} == {}


def test_every_panel_can_be_read_after_a_month(prometheus: str) -> None:
    """A tile has at most six values, and bars and legends ten series: the rest is one of them, the others."""
    found: dict[str, int] = {}
    for query in queries():
        if query.kind == "prometheus" and query.panel["type"] in MAX_SERIES:
            panel = f"{query.board}: {query.panel['title']} ({query.panel['type']})"
            found[panel] = found.get(panel, 0) + len(asked(prometheus, query, seconds=DAYS * DAY))
    too_many = {
        panel: series for panel, series in found.items() if series > MAX_SERIES[panel.rpartition("(")[2].rstrip(")")]
    }
    assert too_many == {}
    assert max(found.values()) == max(MAX_SERIES.values())


def loading(address: str, board: Board, *, seconds: int) -> float:
    """How many seconds all queries of a dashboard take."""
    own = [query for query in queries() if query.board == board and query.kind == "prometheus"]
    began = time.monotonic()
    with ThreadPoolExecutor(6) as pool:  # connections that a browser opens to one server
        answers = list(pool.map(lambda query: asked(address, query, seconds=seconds), own))
    took = time.monotonic() - began
    if str(board) == "spark-performance":
        of_applications = [
            query for query in own if names_in(query.expression()) <= catalogued() and not is_of_others(query)
        ]
        empty = [query for query, answer in zip(own, answers, strict=True) if not answer]
        assert [str(query) for query in of_applications if query in empty] == []
    return took
