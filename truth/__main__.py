"""`python -m truth`: records labelled runs, and says how often a tool is right about them."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from truth import declared

cli = typer.Typer(help="Labelled runs of Spark, and how often a tool is right about them.", add_completion=False)


@cli.command()
def record(
    only: Annotated[list[str] | None, typer.Option(help="The name of a pair; may be repeated.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often each pair is run, those before included.")] = 3,
    *,
    calm: Annotated[bool, typer.Option("--calm", help="Count rounds on a calm machine only, and wait for it.")] = False,
    again: Annotated[bool, typer.Option("--again", help="Forget the rounds of the pairs of --only first.")] = False,
) -> None:
    """Run what is declared and not recorded yet, one run at a time."""
    from truth import answers, recorder

    if again and not only:
        raise typer.BadParameter("--again needs --only: what is recorded is recorded anew by its name only")
    for pair in _chosen(only):
        if again:
            answers.forget(pair)
        for line in recorder.record(pair, rounds, calm=calm):
            sys.stdout.write(f"{line}\n")
            sys.stdout.flush()


@cli.command()
def judge(output: Annotated[Path, typer.Argument(help="Where to write what is found.")]) -> None:
    """Write what spark-app finds in the runs, in the format that score reads."""
    from truth import judge as ours

    output.write_bytes(ours.output())


@cli.command()
def score(output: Annotated[Path, typer.Argument(help="What a tool has found, as truth/README.md says.")]) -> None:
    """Say how often a tool is right."""
    from msgspec import MsgspecError

    from truth import scores

    try:
        found = scores.read(output.read_bytes())
    except (OSError, MsgspecError, LookupError) as error:
        raise typer.BadParameter(f"{output}: {error}") from error
    sys.stdout.write(scores.text(found))


@cli.command()
def accuracy() -> None:
    """Write docs/accuracy.md: how often spark-app is right."""
    from truth import judge as ours
    from truth import page, scores

    page.PAGE.write_text(page.markdown(scores.read(ours.output())), encoding="utf-8")


def _chosen(only: list[str] | None) -> list[declared.Pair]:
    unknown = set(only or ()) - declared.pairs().keys()
    if unknown:
        raise typer.BadParameter(f"runs.toml has no {', '.join(sorted(unknown))}")
    return [declared.pairs()[name] for name in only or declared.pairs()]


if __name__ == "__main__":
    cli()
