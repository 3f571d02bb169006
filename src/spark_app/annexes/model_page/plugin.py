"""What this annex adds: the section of a report about the model that a run trained, judged or promoted."""

from typing import TYPE_CHECKING, Final

from spark_app.report.section import Section, Subject

if TYPE_CHECKING:
    from spark_app.annexes.model_page.model import Model


def _model(about: Subject) -> "Model | None":
    from spark_app.annexes.model_page import model

    return model.model(about.scope, about.limits)


ADDS: Final = (Section("model", _model, "Model"),)
