"""The declared pairs: their ids tell nothing, and their programs exist."""

import ast
from typing import Final

import pytest

from truth import declared
from truth.declared import HERE, KINDS, Pair, pairs

FORMS: Final = {"dataframe", "sql", "rdd", "pandas", "streaming", "ml", "waiting"}


def test_an_id_is_of_one_run_and_does_not_tell_the_cause() -> None:
    """No two runs share one."""
    ids = [pair.run(kind) for pair in pairs().values() for kind in KINDS]
    assert len(ids) == len(set(ids)) >= 2 * len(pairs())
    assert all(set(run) <= set("0123456789abcdef") for run in ids)


def test_each_program_is_there_and_takes_its_parameters() -> None:
    """Of a form that is known."""
    functions = {
        f"{file.stem}.{node.name}": {argument.arg for argument in node.args.kwonlyargs}
        for file in (HERE / "programs").glob("*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
        if isinstance(node, ast.FunctionDef)
    }
    for pair in pairs().values():
        assert pair.form in FORMS, pair.name
        assert bool(pair.program) != bool(pair.recorded), pair.name
        if pair.program:
            needed = {"planted", *pair.parameters, *(["form"] if pair.needs_form else [])}
            assert needed <= functions[pair.program], pair.name
            assert pair.needs_form == ("form" in functions[pair.program]), pair.name


def test_whether_a_pair_is_sealed_depends_on_its_name_alone() -> None:
    """So it stays when the pair is recorded anew, or declared otherwise."""
    names = [f"pair-{number}" for number in range(300)]
    sealed = {name for name in names if Pair(name, ("spill",), "sql").is_sealed}
    assert 0.3 < len(sealed) / len(names) < 0.5
    assert sealed == {name for name in names if Pair(name, ("skew",), "rdd", spark="3.5.9").is_sealed}


def test_a_cause_that_the_vocabulary_lacks_is_an_error() -> None:
    """It names both."""
    with pytest.raises(ValueError, match=r"pair has causes that vocabulary\.toml lacks: nonsense"):
        declared._pair("pair", causes=["spill", "nonsense"], form="sql")
