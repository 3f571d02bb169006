import subprocess
from pathlib import Path
from typing import Final

import pytest

from app.java.runtime import spark_home
from app.observe.launches import Launch, Switch

SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
# As Spark's own `spark-class` does it, up to the JVM.
START: Final = '. "$SPARK_HOME/bin/load-spark-env.sh"; printf "%s\\n" "$SPARK_CONF_DIR" "$SPARK_SUBMIT_OPTS"; env'


class Started:
    """What Spark's script makes of an environment of ours, before it starts a JVM."""

    def __init__(self, folder: Path, *arguments: str, **theirs: str) -> None:
        events = folder / "a folder"
        events.mkdir()
        (folder / "scratch").mkdir()
        switch = Switch(events, folder / "scratch")
        variables = switch.variables({"PATH": "/usr/bin:/bin", "SPARK_HOME": str(spark_home())} | theirs)
        done = subprocess.run(
            ["bash", "-c", START, "spark-class", *arguments],
            env=variables,
            check=True,
            capture_output=True,
            text=True,
        )
        assert done.stderr == ""
        self.variables = variables
        self.events = events
        self.conf, self.options, *self.environment = done.stdout.splitlines()
        self.launches = switch.launches()


def conf(folder: Path, text: str = "", *, name: str = "spark-defaults.conf") -> str:
    """A configuration folder of theirs, with one file."""
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / name).write_text(text, encoding="utf-8")
    return str(theirs)


def test_the_event_log_goes_to_our_folder(tmp_path: Path) -> None:
    """A plain launch has it on, in our folder, not compressed and in one file, and is noted with its arguments."""
    started = Started(tmp_path, SUBMIT, "--conf", "spark.app.name=two words", "pyspark-shell")
    (launch,) = started.launches
    assert set(started.options.split()) == {
        f"-Dspark.observed.launch={launch.id}",
        "-Dspark.eventLog.enabled=true",
        f"-Dspark.eventLog.dir={started.events.as_uri()}",
        "-Dspark.eventLog.compress=false",
        "-Dspark.eventLog.rolling.enabled=false",
        "-Dspark.eventLog.overwrite=true",
    }
    assert launch.arguments == (SUBMIT, "--conf", "spark.app.name=two words", "pyspark-shell")
    assert launch.stated() == {"spark.app.name": "two words"}


def test_their_configuration_folder_is_the_one_that_spark_reads(tmp_path: Path) -> None:
    """The JVM has their folder, with their spark-env.sh done and their options kept."""
    theirs = conf(tmp_path, "export FROM_THEIRS=1 SPARK_SUBMIT_OPTS=-Dx=1", name="spark-env.sh")
    started = Started(tmp_path, SUBMIT, SPARK_CONF_DIR=theirs)
    assert started.conf == theirs
    assert "FROM_THEIRS=1" in started.environment
    assert started.options.split()[0] == "-Dx=1"


def test_without_a_folder_of_theirs_spark_reads_its_own(tmp_path: Path) -> None:
    """No SPARK_CONF_DIR means `conf` of their Spark, whichever that is."""
    assert Started(tmp_path, SUBMIT).conf == f"{spark_home()}/conf"


def test_a_program_finds_their_files_where_the_variable_leads(tmp_path: Path) -> None:
    """Before Spark starts, SPARK_CONF_DIR names our folder; all files of theirs are in it."""
    started = Started(tmp_path, SUBMIT, SPARK_CONF_DIR=conf(tmp_path, "<configuration/>", name="hive-site.xml"))
    ours = Path(started.variables["SPARK_CONF_DIR"])
    assert (ours / "hive-site.xml").read_text(encoding="utf-8") == "<configuration/>"


def test_nothing_of_ours_is_left_in_the_environment(tmp_path: Path) -> None:
    """What runs below the script sees no function and no helper variable of ours."""
    names = {line.partition("=")[0] for line in Started(tmp_path, SUBMIT, "--master", "local").environment}
    assert [name for name in names if "observe" in name or name in ("mode", "word", "files", "before")] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ("--deploy-mode", "cluster"),
        ("--deploy-mode=cluster",),
        ("--conf", "spark.submit.deployMode=cluster"),
    ],
)
def test_a_driver_elsewhere_is_left_alone(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """In cluster mode a folder of this machine would make the job fail: nothing is set, and it is noted."""
    started = Started(tmp_path, SUBMIT, *arguments, "job.py")
    assert started.options == ""
    assert [launch.is_cluster for launch in started.launches] == [True]


def test_the_deploy_mode_of_their_defaults_counts(tmp_path: Path) -> None:
    """Cluster mode is also known from spark-defaults.conf; an option wins over it."""
    for number, (options, is_cluster) in enumerate([([], True), (["--deploy-mode", "client"], False)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        theirs = conf(folder, "spark.submit.deployMode   cluster\n")
        started = Started(folder, SUBMIT, *options, "job.py", SPARK_CONF_DIR=theirs)
        assert [launch.is_cluster for launch in started.launches] == [is_cluster]
        assert ("spark.eventLog.enabled" in started.options) is not is_cluster


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--conf", "spark.eventLog.enabled=false"), ""),
        (("--conf", "spark.eventLog.dir=hdfs://there/logs"), ""),
        ((), "spark.eventLog.enabled true\n"),
    ],
)
def test_an_event_log_of_theirs_is_left_as_it_is(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    """Who says something of the event log gets just that; only the id of the launch is added."""
    started = Started(tmp_path, SUBMIT, *arguments, SPARK_CONF_DIR=conf(tmp_path, text))
    assert started.options.split() == [f"-Dspark.observed.launch={started.launches[0].id}"]


def test_a_properties_file_of_theirs_is_looked_into(tmp_path: Path) -> None:
    """`--properties-file` replaces spark-defaults.conf; an event log that it sets is seen in it."""
    file = tmp_path / "p.conf"
    file.write_text("spark.eventLog.dir=/logs\nspark.app.name  three\n", encoding="utf-8")
    started = Started(tmp_path, SUBMIT, "--properties-file", str(file), "job.py")
    assert started.options.split() == [f"-Dspark.observed.launch={started.launches[0].id}"]
    assert started.launches[0].stated() == {"spark.eventLog.dir": "/logs", "spark.app.name": "three"}


def test_a_master_is_no_application(tmp_path: Path) -> None:
    """Other classes that Spark's scripts start are not touched and not noted."""
    started = Started(tmp_path, "org.apache.spark.deploy.master.Master")
    assert (started.options, started.launches) == ("", [])


def test_what_is_said_last_counts() -> None:
    """Arguments win over files, and both forms of an option are understood."""
    launch = Launch("1", False, Path("nowhere"), (SUBMIT, "-c", "a=1", "--conf=b=x=y", "--conf", "a=2"))
    assert launch.stated() == {"a": "2", "b": "x=y"}


def test_a_question_is_no_application() -> None:
    """`spark-submit --version` starts none."""
    assert Launch("1", False, Path("nowhere"), (SUBMIT, "--version")).is_question
    assert not Launch("1", False, Path("nowhere"), (SUBMIT, "job.py", "--version")).is_question
