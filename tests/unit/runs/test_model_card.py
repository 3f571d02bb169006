from pathlib import Path

import pytest

from spark_app.runs import model_card
from spark_app.runs.model_card import ModelCard
from tests.unit.report.cards import card, evaluation


def test_a_card_that_is_written_can_be_read(tmp_path: Path) -> None:
    """From the folder of a run, and from a row of the registry."""
    model_card.write(tmp_path, card())
    assert model_card.read(tmp_path) == card()
    assert model_card.decode(model_card.encode(card()), ModelCard) == card()


def test_a_figure_that_is_no_number_is_refused_before_it_is_written(tmp_path: Path) -> None:
    """It would be written as null, and nobody could read the card any more; the message names the figure."""
    broken = card(evaluation=evaluation(drift={"country": float("nan")}))
    with pytest.raises(ValueError, match=r"ModelCard has a figure that is nan.*\$\.evaluation\.drift"):
        model_card.encode(broken)
    with pytest.raises(ValueError, match="nan"):
        model_card.write(tmp_path, broken)
    assert list(tmp_path.iterdir()) == []
