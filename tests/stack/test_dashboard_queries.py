"""What Prometheus itself makes of the queries of dashboards, over the series that one-shot runs leave behind."""

import subprocess
from pathlib import Path
from typing import Final

import pytest
import yaml

from app.telemetry import names
from grafana.queries import INTERVAL, RANGE, added, grown

READ: Final = 'pipeline_rows_read_total{pipeline_name="etl.daily_sales"}'
# One value each 15 s; `_x9` is nine times none.
HISTORIES: Final = {
    "a first run": ("_x100 100 _x200", 100),
    "a first run that began at 0": ("_x100 0 _x3 100 _x200", 100),
    "two runs, most of an hour apart": ("_x100 100 _x180 250 _x200", 250),
    "a run before the time range": ("100 _x260 250 _x400", 150),
    "the same day again after a restart of the collector": ("_x100 100 _x50 0 _x3 100 _x200", 200),
    "less than before, after a restart of the collector": ("_x100 500 _x50 100 _x200", 600),
    "nothing but a run long ago": ("100 _x500", 0),
}


def judged(folder: Path, expression: str, values: str, expected: float) -> subprocess.CompletedProcess[str]:
    """What promtool says of an expression over an hour, 80 minutes after the values began."""
    expression = expression.replace(RANGE, "1h").replace(INTERVAL, "1h").replace("$pipeline", ".*")
    sample = {"labels": '{pipeline_name="etl.daily_sales"}', "value": expected}
    test = {
        "interval": "15s",
        "input_series": [{"series": READ, "values": values}],
        "promql_expr_test": [{"expr": expression, "eval_time": "80m", "exp_samples": [sample]}],
    }
    file = folder / "tests.yml"
    file.write_text(yaml.safe_dump({"evaluation_interval": "15s", "tests": [test]}), encoding="utf-8")
    return subprocess.run(["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False)


@pytest.mark.parametrize("history", HISTORIES)
@pytest.mark.parametrize("window", [RANGE, INTERVAL])
def test_each_row_is_counted_once(history: str, window: str, tmp_path: Path) -> None:
    """Runs are few and days apart, the collector may start anew: the sum is still what the runs counted, to the row."""
    values, expected = HISTORIES[history]
    expression = added(grown(names.READ, window), names.PIPELINE)
    assert judged(tmp_path, expression, values, expected).stderr == ""
    assert judged(tmp_path, expression, values, expected + 1).returncode != 0
