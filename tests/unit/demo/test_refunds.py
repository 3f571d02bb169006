import datetime
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from sklearn.metrics import roc_auc_score

from app.demo import files, refunds, shop
from app.demo.ledger import Day
from app.demo.refunds import Refunds

DAY = datetime.date(2024, 1, 2)


def of_day(*, rows: int = 10_000, seed: int = 7) -> Refunds:
    """The refunds of the sales of a day."""
    return Refunds(Day(date=DAY, rows=rows, seed=seed))


@pytest.mark.parametrize("seed", [3, 7])
def test_refunds_are_rare_and_can_be_learned_but_not_known(seed: int) -> None:
    """A few in a hundred; the true probabilities rank far better than chance and far from perfectly."""
    truth = of_day(seed=seed).truth()
    assert 0.03 < truth.is_refunded.mean() < 0.06
    assert abs(truth.is_refunded.mean() - truth.probability.mean()) < 0.006
    assert 0.8 < roc_auc_score(truth.is_refunded, truth.probability) < 0.92


def test_a_refund_is_known_on_the_day_that_it_happens(tmp_path: Path) -> None:
    """The files of a day hold the refunds of that day, each of a sale that is published, later than the sale."""
    found = []
    for date in (DAY, DAY + datetime.timedelta(days=1)):
        ledger = shop.write_day(tmp_path, Day(date=date, rows=2_000))["refunds"]
        lines = (shop.day_folder(tmp_path, "refunds", date) / "part-00000.json").read_text(encoding="utf-8")
        records = [json.loads(line) for line in lines.splitlines()]
        assert {record["refunded_at"][:10] for record in records} == {date.isoformat()}
        assert (ledger.rows, ledger.parts["valid"]) == (len(records), len(records))
        found += records
    truth = of_day(rows=2_000).truth()
    created = dict(zip(truth.sold.number.tolist(), truth.sold.created.tolist(), strict=True))
    expected = {f"t-{DAY:%Y%m%d}-{number:07}" for number in truth.sold.number[truth.is_refunded].tolist()}
    of_the_day = [record for record in found if record["transaction_id"].startswith(f"t-{DAY:%Y%m%d}")]
    assert {record["transaction_id"] for record in of_the_day} == expected
    for record in of_the_day:
        at = np.datetime64(record["refunded_at"].rstrip("Z")).astype("datetime64[us]").astype(int)
        delay = at - created[int(record["transaction_id"][-7:])]
        assert files.HOUR_US <= delay <= refunds.LATEST_HOURS * files.HOUR_US


def test_refunds_do_not_depend_on_how_many_rows_are_made_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Memory is bounded by parts of a day; together they are the day."""
    interval = files.midnight(DAY), files.midnight(DAY) + files.DAY_US
    whole = pa.Table.from_batches(of_day(rows=1_000).between(*interval))
    monkeypatch.setattr(files, "CHUNK_ROWS", 170)
    parts = list(of_day(rows=1_000).between(*interval))
    assert len(parts) == 6
    assert pa.Table.from_batches(parts).combine_chunks().equals(whole)
    assert whole.num_rows > 0
