from spark_app.eventlog.diagnoses import diagnose
from spark_app.settings import PROJECT


def test_every_rule_has_a_heading_and_every_heading_a_rule() -> None:
    """In docs/diagnoses.md, under its name, with a threshold."""
    every_rule = (
        *diagnose.STAGE_RULES,
        *diagnose.QUERY_RULES,
        *diagnose.STREAM_RULES,
        *diagnose.APPLICATION_RULES,
    )
    rules = {rule.__name__ for rule in every_rule}
    _, *texts = (PROJECT / "docs" / "diagnoses.md").read_text(encoding="utf-8").split("\n### ")
    assert sorted(text.partition("\n")[0] for text in texts) == sorted(rules)
    assert all("**Threshold**" in text and "**Change**" in text for text in texts)
