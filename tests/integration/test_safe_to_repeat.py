"""The same day again, two at once, and killed at any moment: the content is that of one undisturbed run."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from app.errors import InputError, QualityGateError
from tests.integration.home import DAY, Home, customer, sale
from tests.integration.processes import PATIENCE_SECONDS, kill_when, left_behind, make_quick, started

PUBLISHED: Final = ("transactions", "daily_sales")
ROWS: Final = 400
FIRST: Final = "_delta_log/00000000000000000001.json"
SECOND: Final = "_delta_log/00000000000000000002.json"
# In the order in which they appear. At `transactions/` + commit the totals are not written yet.
IN_FIRST_RUN: Final = (
    "_savepoints/*.json",
    f"bronze/{FIRST}",
    f"transactions/{FIRST}",
)
IN_SECOND_RUN: Final = (
    f"customers/{SECOND}",
    f"transactions/{SECOND}",
    f"daily_sales/{SECOND}",
)


class Days:
    """One day as it came first and as it came again, and what an undisturbed run makes of each."""

    def __init__(self, new_home: Callable[[str], Home]) -> None:
        """Runs both, undisturbed."""
        self.fresh = new_home("fresh")
        self.fresh.forgive()
        make_quick(self.fresh)
        self.fresh.made(rows=ROWS)
        self.once = self.fresh.copied(self.fresh.folder.parent / "once")
        self.once.run()
        self.content = self.once.content()
        corrected(self.once)
        self.twice = self.once.copied(self.fresh.folder.parent / "twice")
        self.twice.run()
        self.corrected_content = self.twice.content()


def corrected(home: Home) -> None:
    """The day comes again, with other sales of the same customers."""
    shutil.rmtree(home.folder / "raw")
    home.made(rows=ROWS)
    home.deliver("customers", [customer(1, segment="vip", updated_at="2024-01-01T05:00:00Z")], name="late.json")
    home.deliver("transactions", [sale(number, amount="77.77") for number in range(900_001, 900_021)], name="late.json")


@pytest.fixture(scope="module")
def days(new_home: Callable[[str], Home]) -> Days:
    """The day, both times."""
    return Days(new_home)


def test_the_same_day_twice_gives_the_same_content(days: Days, tmp_path: Path) -> None:
    """A second run of the same files changes no row of any table; other files do."""
    home = days.twice.copied(tmp_path / "home")
    home.run()
    assert home.content() == days.corrected_content != days.content
    assert home.savepoints() == []


def test_two_runs_of_a_day_at_once_both_end_well(days: Days, tmp_path: Path) -> None:
    """Neither of two processes fails, and what they leave is what one would leave."""
    home = days.fresh.copied(tmp_path / "home")
    with started(home, stderr=tmp_path / "one") as one, started(home, stderr=tmp_path / "two") as two:
        codes = one.wait(PATIENCE_SECONDS), two.wait(PATIENCE_SECONDS)
    said = [(tmp_path / name).read_text(encoding="utf-8") for name in ("one", "two")]
    assert codes == (0, 0), said
    assert home.content() == days.content
    assert home.savepoints() == []


@pytest.fixture(scope="module")
def killed_in_first_run(days: Days, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What is left where the day was not published yet."""
    folder = tmp_path_factory.mktemp("first")
    return left_behind(days.fresh.copied(folder / "home"), IN_FIRST_RUN, folder)


@pytest.fixture(scope="module")
def killed_in_second_run(days: Days, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """What is left where another content of the day was published."""
    folder = tmp_path_factory.mktemp("second")
    return left_behind(days.once.copied(folder / "home"), IN_SECOND_RUN, folder)


@pytest.mark.parametrize("moment", IN_FIRST_RUN)
def test_killed_in_its_first_run_and_run_again(days: Days, killed_in_first_run: dict[str, Path], moment: str) -> None:
    """A killed process leaves a day that a rerun makes whole, whenever it was."""
    home = Home(killed_in_first_run[moment], days.fresh.spark)
    assert home.content("daily_sales") == []
    home.run()
    assert home.content() == days.content
    assert home.savepoints() == []


@pytest.mark.parametrize("moment", IN_SECOND_RUN)
def test_killed_in_its_second_run_and_run_again(days: Days, killed_in_second_run: dict[str, Path], moment: str) -> None:
    """So does one that was replacing a day that is published already."""
    home = Home(killed_in_second_run[moment], days.fresh.spark)
    home.run()
    assert home.content() == days.corrected_content
    assert home.savepoints() == []


def test_killed_before_it_put_a_bad_day_back(days: Days, tmp_path: Path) -> None:
    """The rerun of a killed run goes back to the last good content, not to the bad one, whatever stops it."""
    home = days.once.copied(tmp_path / "home")
    home.deliver("transactions", [sale(950_001, amount="99999.00")], name="outlier.json")
    home.configure("etl.daily_sales", limits={"outliers": 0.0})
    good = home.content(*PUBLISHED)
    kill_when(home, f"transactions/{SECOND}", stderr=tmp_path / "stderr")
    assert home.content("transactions") != [row for row in good if row[0] == "transactions"]

    earlier, missing = home.copied(tmp_path / "earlier"), home.copied(tmp_path / "missing")
    with pytest.raises(QualityGateError, match="outliers"):
        home.run(DAY)
    earlier.deliver("transactions", [sale(950_002, amount="-1.00")], name="negative.json")
    earlier.configure("etl.daily_sales", limits={"amount.range": 0.0})
    with pytest.raises(QualityGateError, match=r"amount\.range"):
        earlier.run(DAY)
    shutil.rmtree(missing.day_folder("transactions"))
    with pytest.raises(InputError, match="no raw data"):
        missing.run(DAY)
    for rerun in (home, earlier, missing):
        assert rerun.content(*PUBLISHED) == good
        assert rerun.savepoints() == []
