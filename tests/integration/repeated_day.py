"""One day as it came first and as it came again, and what undisturbed runs make of both."""

import shutil
from collections.abc import Callable
from typing import Final

from tests.integration.home import Home, customer, sale
from tests.integration.processes import make_quick

ROWS: Final = 400


class RepeatedDay:
    """Homes in which the day was run never, once and twice, and the content after each run.

    Attributes:
        fresh: The first delivery, not run.
        once: The first delivery was run and the second one is there.
        twice: Both were run.
        first_content: All rows after the first run.
        content: All rows after the second run.
    """

    def __init__(self, new_home: Callable[[str], Home]) -> None:
        """Runs both deliveries, undisturbed."""
        self.fresh = new_home("fresh")
        self.fresh.forgive()
        make_quick(self.fresh)
        self.fresh.made(rows=ROWS)
        self.once = self.fresh.copied(self.fresh.folder.parent / "once")
        self.once.run()
        self.first_content = self.once.content()
        deliver_again(self.once)
        self.twice = self.once.copied(self.fresh.folder.parent / "twice")
        self.twice.run()
        self.content = self.twice.content()


def deliver_again(home: Home) -> None:
    """Delivers the day once more, with other sales of the same customers."""
    shutil.rmtree(home.folder / "raw")
    home.made(rows=ROWS)
    home.deliver("customers", [customer(1, segment="vip", updated_at="2024-01-01T05:00:00Z")], name="late.json")
    home.deliver("transactions", [sale(number, amount="77.77") for number in range(900_001, 900_021)], name="late.json")
