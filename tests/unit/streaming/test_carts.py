import itertools
import subprocess
import sys
from pathlib import Path
from typing import Final

from pyspark import cloudpickle
from pyspark.sql import SparkSession

from app.streaming import carts
from app.streaming.carts import Cart, LeftCarts, Step, left_carts
from spark_app.execution import pipelines
from tests.unit.streaming.drained import Drained, dropped, event

AFTER: Final = 10
UNPICKLED: Final = """
import pickle, sys
sys.modules["app"] = sys.modules["spark_app"] = None
print(type(pickle.loads(bytes.fromhex(sys.argv[1]))).__name__)
"""


def steps(*told: tuple[int, str, str]) -> list[Step]:
    """Steps, given by the first letter of what the user did: add, remove or purchase."""
    names = {"a": carts.ADD, "r": carts.REMOVE, "p": carts.PURCHASE}
    return [Step(at, names[kind], product) for at, kind, product in told]


def left(given: list[Step], until: int) -> list[Cart]:
    """The carts that were left until an instant."""
    return left_carts(given, after_ms=AFTER, until_ms=until)[0]


def test_a_cart_is_left_when_nothing_was_purchased_in_time() -> None:
    """Time starts anew with each product; a purchase at the last instant is in time."""
    filled = steps((0, "a", "x"), (4, "a", "y"))
    assert left(filled, 13) == []
    assert left(filled, 14) == [Cart(0, 4, ("x", "y"))]
    assert left([*filled, *steps((14, "p", "x"))], 14) == []
    assert left([*filled, *steps((15, "p", "x"))], 15) == [Cart(0, 4, ("x", "y"))]


def test_a_cart_that_was_emptied_is_not_left() -> None:
    """What was removed is not in a cart that is left."""
    filled = steps((0, "a", "x"), (1, "a", "y"), (2, "r", "x"))
    assert left(filled, 11) == [Cart(0, 1, ("y",))]
    assert left([*filled, *steps((3, "r", "y"))], 20) == []


def test_a_purchase_ends_only_what_was_added_before() -> None:
    """The next product begins another cart."""
    assert left(steps((0, "a", "x"), (1, "p", "x"), (2, "a", "y")), 30) == [Cart(2, 2, ("y",))]


def test_order_repetition_and_pauses_do_not_matter() -> None:
    """Steps that come in any order, twice, and with decisions in between give the same carts."""
    given = steps((0, "a", "x"), (3, "p", "x"), (5, "a", "y"), (30, "a", "z"), (32, "r", "z"), (33, "a", "y"))
    whole = left(given, 100)
    assert whole == [Cart(5, 5, ("y",)), Cart(33, 33, ("y",))]
    for order in itertools.permutations(given):
        assert left([*order, *order[:3]], 100) == whole
    found, kept = [], given
    for until in range(100):
        more, kept = left_carts(kept, after_ms=AFTER, until_ms=until)
        found += more
    assert (found, kept) == (whole, [])


def test_workers_need_not_have_the_program() -> None:
    """The processor travels by value."""
    pipelines.load("streaming")
    pickled = cloudpickle.dumps(LeftCarts(1))
    done = subprocess.run([sys.executable, "-c", UNPICKLED, pickled.hex()], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "LeftCarts"


def test_an_abandoned_cart_comes_out_when_no_purchase_can_come(tmp_path: Path, spark: SparkSession) -> None:
    """A purchase may be read before the product was added; the watermark moves on with events of any type."""
    query = Drained(tmp_path, spark, carts, watermark="20 minutes", abandoned_after="10 minutes")
    bought, added = event(1, 5, "purchase", 1, product_id="p-1"), event(2, 0, "add_to_cart", 1, product_id="p-1")
    query.deliver("user_events", bought, event(3, 6, "add_to_cart", 2, product_id="p-2"), event(4, 15))
    query.drain()
    query.deliver("user_events", added, added, event(5, 60))
    query.drain()
    columns = ["user_id", "minute(started_at)", "minute(last_added_at)", "minute(abandoned_at)", "product_ids[0]"]
    assert query.rows("abandoned_carts", *columns) == [("c-0000002", 6, 6, 16, "p-2")]
    query.deliver("user_events", event(6, 7, "add_to_cart", 3, product_id="p-3"))
    assert dropped(query.drain()) == 1
