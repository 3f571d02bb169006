"""What a live page says of the samples of the last seconds: of each stage that runs, and of the driver."""

import json

from spark_app.report.page import environment
from spark_app.report.scope import scope
from spark_app.report.sections.now import RunningStage
from spark_app.report.sections.stacks_now import MOST_STAGES, StacksNow, Window, stacks_now
from spark_app.stack_samples.stack_profile import profile
from tests.unit.eventlog import log
from tests.unit.stack_samples.made import TASK, Taken, run


def running(*numbers: int) -> list[RunningStage]:
    """Stages that the driver says run."""
    return [RunningStage(number, 0, "count at <b>job.py</b>:7", 2000, done=0, running=1, total=2) for number in numbers]


def taken() -> Taken:
    """A sort and a UDF in stage 3, four looks at stage 4, and the driver at work."""
    found = Taken()
    executor, worker = found.process(), found.process("python_worker", "1")
    driver = found.process("python_driver", None)
    found.add(2200, TASK, "a.Sort.next", process=executor, times=10)
    found.add(2200, "main@worker.py:9", "score@job.py:3!", "dot@numpy.py:8", process=worker, task=7, times=30)
    found.add(2400, "main@worker.py:9", "other@job.py:5!", process=worker, task=8, times=4)
    found.add(2200, "<module>@job.py:20!", process=driver, times=6)
    return found


def at(samples: Taken, *stages: int, is_behind: bool = False) -> StacksNow:
    """The moment of some samples."""
    window = Window(2000, 3000, profile(samples.done(), [run(7, 3, 2100, 2300), run(8, 4, 2350, 2500)]), is_behind)
    found = stacks_now(scope(log.application([log.started()]), None), running(*stages), window)
    assert found is not None
    return found


def page(moment: StacksNow) -> str:
    """The section as HTML."""
    return environment().get_template("stacks_now.html.j2").render(doing=moment)


def test_a_stage_has_its_hot_lines_and_what_its_threads_did() -> None:
    """The user's function by its line, and those of others; then the driver."""
    stage, driver = at(taken(), 3).doing
    assert (stage.stage, stage.row.part.total.samples) == ("3", 40)
    assert (stage.row.share("jvm"), stage.row.share("python")) == (0.25, 0.75)
    (hot,) = stage.functions
    assert (hot.function.name, hot.function.file, hot.time.line, hot.share) == ("score", "job.py", 3, 0.75)
    assert [(each.label.function, each.share) for each in stage.endings] == [("dot", 0.75), ("a.Sort.next", 0.25)]
    assert (driver.stage, driver.row.name, driver.functions[0].function.name) == ("", "driver", "<module>")
    assert driver.endings == []


def test_every_kind_of_work_and_wait_is_shown() -> None:
    """As in the table of a report."""
    samples = taken()
    samples.add(2200, TASK, "a.Cache.get", state="locked", times=10)
    samples.add(2200, TASK, "java.io.FileInputStream.readBytes", state="native", times=10)
    html = page(at(samples, 3))
    assert "waits for a lock <b>17 %" in html
    assert "reads and writes <b>17 %" in html


def test_nothing_is_said_of_few_samples() -> None:
    """And that there is none, is."""
    html = page(at(taken(), 3, 4, 5))
    assert html.count("So few samples do not say what it does.") == 1
    assert html.count("No stack of it was sampled in this time.") == 1
    assert '<code class="foreign">other' not in html
    mixed = taken()
    mixed.add(2400, TASK, "a.Sort.next", process=0, times=3)  # seven samples, of two kinds
    assert page(at(mixed, 4)).count("So few samples do not say what it does.") == 1
    assert "No stack was sampled in this time." in page(at(Taken()))
    assert "&lt;b&gt;job.py" in html


def test_only_some_stages_are_listed() -> None:
    """Those with the most samples."""
    moment = at(taken(), *range(1, 10))
    assert [each.stage for each in moment.doing][:2] == ["3", "4"]
    assert (len(moment.doing), moment.left_out) == (MOST_STAGES + 1, 3)
    assert "3 more stages" in page(moment)


def test_without_the_driver_the_open_stages_of_the_log_are_meant() -> None:
    """Samples of tasks of others have no stage that runs."""
    window = Window(2000, 3000, profile(taken().done(), []), is_behind=True)
    moment = stacks_now(scope(log.application([log.started(), log.stage(3, end=None)]), None), [], window)
    assert moment is not None
    assert [(each.stage, each.row.place) for each in moment.doing] == [("3", (3, 0)), ("", "driver"), ("", "unknown")]
    assert "is still being read" in page(moment)
    assert stacks_now(scope(log.application([log.started()]), None), [], None) is None


def test_the_picture_is_of_all_and_of_each_with_enough_samples() -> None:
    """The driver's six are few, and those of a stage that has ended are not in it."""
    moment = at(taken(), 3)
    data = json.loads(moment.data)
    assert [(name.partition(":")[0], parts) for name, parts in data["views"]] == [("all of it", None), ("stage 3", [0])]
    assert [sum(counts) for _, counts, _ in data["parts"]] == [40, 6]
    assert {label[1] for label in data["labels"]} >= {"score", "dot", "a.Sort.next", "<module>"}
    assert "other" not in {label[1] for label in data["labels"]}
    assert json.loads(at(Taken()).data)["views"] == [["all of it", None]]


def test_the_section_of_the_picture_is_the_same_at_each_moment() -> None:
    """A live page replaces what has changed: what a person does in the picture would be lost. The data is outside."""
    html = [page(at(samples, stage, is_behind=bool(stage % 2))) for samples, stage in ((taken(), 3), (Taken(), 4))]
    sections = [each[each.index('<section id="flame-now">') :] for each in html]
    assert sections[0] == sections[1]
    assert "data-flame" in sections[0]
    assert "stack-data" not in sections[0]
    assert html[0] != html[1]
    assert 'data-when="00:00:02 to 00:00:03 UTC"' in html[0]


def test_hostile_names_end_no_element_of_the_page() -> None:
    """The data is in a script element, which `</script>` would end."""
    samples = Taken()
    samples.add(2200, TASK, "a.</script><b>.next", process=samples.process(), times=30)
    html = page(at(samples, 3))
    assert (html.count("<script"), html.count("</script>")) == (1, 1)
