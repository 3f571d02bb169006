from app.models.registry import Action, Promotion, previous, withdrawn


def changes(*made: tuple[int, Action]) -> list[Promotion]:
    """Changes of what is in production, in their order."""
    return [Promotion(number, version, action) for number, (version, action) in enumerate(made, start=1)]


def test_a_rollback_leads_to_the_version_before_the_last_promotion() -> None:
    """A second rollback leads to the same one, since it only repeats the first."""
    assert previous([]) is None
    assert previous(changes((1, "promoted"))) is None
    assert previous(changes((1, "promoted"), (2, "promoted"))) == 1
    assert previous(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"))) == 1
    assert previous(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"), (3, "promoted"))) == 1


def test_a_version_that_was_rolled_back_is_withdrawn_until_it_is_promoted_again() -> None:
    """The others are not."""
    assert withdrawn(changes((1, "promoted"), (2, "promoted"))) == set()
    assert withdrawn(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"))) == {2}
    assert withdrawn(changes((1, "promoted"), (2, "promoted"), (1, "rolled_back"), (2, "promoted"))) == set()
