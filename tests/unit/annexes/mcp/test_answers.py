import pytest

from spark_app.annexes.mcp.answers import LEFT_OUT, MAX_CHARACTERS, Page, PagedRows, answer, encoded


def test_a_list_that_fits_is_whole_and_nothing_is_left_out() -> None:
    """An answer says only then that it lacks something."""
    assert answer({"stages": PagedRows([1, 2, 3])}, Page(3)) == {"stages": [1, 2, 3]}


@pytest.mark.parametrize(
    ("page", "shown", "said"),
    [
        (Page(2), [0, 1], "rows: 2 of 5 are here; 2 to 4 with offset=2"),
        (Page(2, 2), [2, 3], "rows: 2 of 5 are here; 4 to 4 with offset=4"),
        (Page(2, 4), [4], "rows: the first 4 of 5 were left out by the offset"),
        (Page(2, 9), [], "rows: there are 5, none after offset 9"),
    ],
)
def test_a_page_says_what_it_left_out_and_how_to_ask_for_it(page: Page, shown: list[int], said: str) -> None:
    """Also beyond the end of the list."""
    assert answer({"rows": PagedRows(range(5))}, page) == {"rows": shown, LEFT_OUT: [said]}


def test_all_rows_are_reached_by_following_the_offsets() -> None:
    """None twice and none never, whatever the size of the rows."""
    rows = [f"{number} {'x' * (number % 7) * 1500}" for number in range(60)]
    reached: list[str] = []
    while len(reached) < len(rows):
        found = answer({"rows": PagedRows(rows)}, Page(20, len(reached)))
        assert 0 < len(encoded(found)) <= MAX_CHARACTERS
        reached += found["rows"]
    assert reached == rows


def test_what_is_unknown_has_no_key() -> None:
    """In rows and in what they hold, too; 0 and an empty list are known."""
    document = {"a": None, "b": 0, "rows": PagedRows([{"c": None, "d": [{"e": None, "f": []}]}])}
    assert answer(document, Page(1)) == {"b": 0, "rows": [{"d": [{"f": []}]}]}


def test_a_list_may_say_in_its_own_words_how_to_go_on() -> None:
    """As one whose end is not known."""
    rows = PagedRows([7, 8, 9], ask=lambda shown: f"after={shown[-1]}")
    assert answer({"rows": rows}, Page(2))[LEFT_OUT] == ["rows: 2 are here; after=8"]
