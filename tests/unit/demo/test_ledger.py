from pathlib import Path

import pytest

from app.demo.ledger import Ledger, read_ledger
from spark_app.errors import InputError


def test_a_file_that_is_no_ledger_is_named(tmp_path: Path) -> None:
    """One line says which."""
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(InputError, match=r"x\.json is not a ledger"):
        read_ledger(tmp_path / "x.json", Ledger)
    with pytest.raises(InputError, match=r"cannot read ledger .*y\.json: No such file"):
        read_ledger(tmp_path / "y.json", Ledger)
