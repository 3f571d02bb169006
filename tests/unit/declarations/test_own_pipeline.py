"""A module that reads and writes by itself, as docs/recipes.md has it: it names what is its own, and nothing else."""

from pathlib import Path
from typing import Any, Final

import pytest

from spark_app.engine.code_location import DeclarationError
from spark_app.execution import pipelines
from spark_app.execution.run import load_jobs
from spark_app.settings import load_settings

RUN: Final = '"""Exports a day."""\n\n\ndef run(context, config):\n    context.append(config.schedule)\n'
QUERY: Final = '"""A query."""\n\n\ndef query(context, config):\n    return config.trigger\n'


def write(shop: Path, name: str, text: str) -> None:
    """Writes a module of the project."""
    (shop / f"{name}.py").write_text(text, encoding="utf-8")


def test_a_function_is_enough(shop: Path) -> None:
    """It reads and writes no table that is known, and its file of options may be missing."""
    write(shop, "etl/export", RUN)
    write(shop, "streaming/copy", QUERY)
    [job] = load_jobs(load_settings(), "etl", ["export"])
    assert (job.pipeline.reads, job.pipeline.writes, job.config.schedule) == ((), (), None)
    job.pipeline.run(context := list[object](), job.config)
    assert context == [None]
    [streaming] = load_jobs(load_settings(), "streaming", ["copy"])
    trigger: Any = streaming.pipeline.query(None, streaming.config)
    assert trigger == "5 seconds"


@pytest.mark.parametrize(
    ("module", "text", "message"),
    [
        (
            "etl/helpers",
            "def cleaned(rows):\n    return rows\n",
            r"helpers.py:1: etl.helpers is no pipeline: .*run\(",
        ),
        ("streaming/copy", RUN, r"streaming/copy.py:1: streaming.copy is no pipeline: .* define query\("),
        ("etl/export", f"{RUN}\n\nWRITES = ['exports']\n", r"etl/export.py:4: etl.export writes 'exports' .*Table"),
    ],
)
def test_what_is_no_pipeline_is_one_line_with_its_place(shop: Path, module: str, text: str, message: str) -> None:
    """Before Spark starts; a module that only helps others is named with an underscore."""
    write(shop, module, text)
    with pytest.raises(DeclarationError, match=message):
        pipelines.load(module.split("/", maxsplit=1)[0])
    (shop / f"{module}.py").rename(shop / f"{module.replace('/', '/_')}.py")
    assert pipelines.load(module.split("/", maxsplit=1)[0])
