import subprocess
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

import pytest

from spark_app.observe.event_log_injection import EventLogInjection, Launch
from spark_app.observe.stack_capture import StackCapture
from spark_app.spark.java_runtime import spark_home

PIPELINES: Final = "org.apache.spark.deploy.SparkPipelines"
SUBMIT: Final = "org.apache.spark.deploy.SparkSubmit"
# As Spark's own `spark-class` does it, up to the JVM.
START: Final = (
    '. "$SPARK_HOME/bin/load-spark-env.sh"; printf "%s\\n" "$SPARK_CONF_DIR" "$SPARK_SUBMIT_OPTS" "$#" "$@"; env'
)


class Started:
    """What Spark's script makes of an environment, before it starts a JVM."""

    def __init__(
        self,
        folder: Path,
        *arguments: str,
        name: str | None = None,
        settings: Mapping[str, str] = MappingProxyType({}),
        is_sampled: bool = False,
        is_shared: bool = False,
        **variables_of_user: str,
    ) -> None:
        events = folder / "a folder"
        events.mkdir()
        (folder / "scratch").mkdir()
        stacks = folder / "scratch" / "stacks"
        capture = StackCapture(stacks, 49, is_shared=is_shared) if is_sampled or is_shared else None
        switch = EventLogInjection(events, folder / "scratch", name, settings, profile=capture)
        variables = switch.variables({"PATH": "/usr/bin:/bin", "SPARK_HOME": str(spark_home())} | variables_of_user)
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
        self.conf, self.options, count, *rest = done.stdout.splitlines()
        self.arguments, self.environment = rest[: int(count)], rest[int(count) :]
        self.launches = switch.launches()


def conf(folder: Path, text: str = "", *, name: str = "spark-defaults.conf") -> str:
    """A configuration folder of original, with one file."""
    original = folder / "original"
    original.mkdir()
    (original / name).write_text(text, encoding="utf-8")
    return str(original)


def test_a_launch_has_its_event_log_enabled(tmp_path: Path) -> None:
    """In the folder of spark-app, uncompressed, in one file; the launch is recorded with its arguments."""
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
    assert launch.properties() == {"spark.app.name": "two words"}


def test_a_pipeline_has_its_event_log_enabled_by_its_defaults(tmp_path: Path) -> None:
    """Its JVM takes no options from the environment; what the original file says comes later, and counts."""
    original = conf(tmp_path, "spark.master local[3]\nspark.eventLog.compress true\n")
    Path(original, "log4j2.properties").write_text("theirs", encoding="utf-8")
    started = Started(tmp_path, PIPELINES, "cli.py", "run", SPARK_CONF_DIR=original)
    (launch,) = started.launches
    lines = Path(started.conf, "spark-defaults.conf").read_text(encoding="utf-8").splitlines()
    assert lines[:3] == [
        f"spark.observed.launch {launch.id}",
        "spark.eventLog.enabled true",
        f"spark.eventLog.dir {started.events.as_uri()}",
    ]
    assert lines[-2:] == ["spark.master local[3]", "spark.eventLog.compress true"]
    assert Path(started.conf, "log4j2.properties").read_text(encoding="utf-8") == "theirs"
    assert "spark.observed" not in started.options


def test_a_pipeline_without_a_configuration_has_its_event_log(tmp_path: Path) -> None:
    """Nothing is said of the folder that is not there; one that logs elsewhere keeps its own log."""
    started = Started(tmp_path, PIPELINES, "cli.py", "run")
    assert "spark.eventLog.enabled true" in Path(started.conf, "spark-defaults.conf").read_text(encoding="utf-8")
    (tmp_path / "own").mkdir()
    own = Started(tmp_path / "own", PIPELINES, "cli.py", "run", "--conf", "spark.eventLog.dir=/there")
    assert "eventLog" not in Path(own.conf, "spark-defaults.conf").read_text(encoding="utf-8")


def test_spark_reads_the_original_configuration_folder(tmp_path: Path) -> None:
    """Its spark-env.sh runs, and its options stay."""
    original = conf(tmp_path, "export FROM_THEIRS=1 SPARK_SUBMIT_OPTS=-Dx=1", name="spark-env.sh")
    started = Started(tmp_path, SUBMIT, SPARK_CONF_DIR=original)
    assert started.conf == original
    assert "FROM_THEIRS=1" in started.environment
    assert started.options.split()[0] == "-Dx=1"


def test_without_a_configuration_folder_spark_reads_its_own(tmp_path: Path) -> None:
    """`conf` of SPARK_HOME."""
    assert Started(tmp_path, SUBMIT).conf == f"{spark_home()}/conf"


def test_the_injected_folder_links_the_original_files(tmp_path: Path) -> None:
    """For programs that read SPARK_CONF_DIR before Spark starts."""
    started = Started(tmp_path, SUBMIT, SPARK_CONF_DIR=conf(tmp_path, "<configuration/>", name="hive-site.xml"))
    injected = Path(started.variables["SPARK_CONF_DIR"])
    assert (injected / "hive-site.xml").read_text(encoding="utf-8") == "<configuration/>"


def test_the_script_leaves_no_function_or_variable_behind(tmp_path: Path) -> None:
    """In the environment of the program."""
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
def test_in_deploy_mode_cluster_nothing_is_enabled(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    """A local folder would make the job fail; the launch is recorded."""
    started = Started(tmp_path, SUBMIT, *arguments, "job.py")
    assert started.options == ""
    assert [launch.is_cluster for launch in started.launches] == [True]


def test_the_deploy_mode_may_come_from_spark_defaults(tmp_path: Path) -> None:
    """An option overrides it."""
    for number, (options, is_cluster) in enumerate([([], True), (["--deploy-mode", "client"], False)]):
        folder = tmp_path / str(number)
        folder.mkdir()
        original = conf(folder, "spark.submit.deployMode   cluster\n")
        started = Started(folder, SUBMIT, *options, "job.py", SPARK_CONF_DIR=original)
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
def test_a_configured_event_log_is_kept(tmp_path: Path, arguments: tuple[str, ...], text: str) -> None:
    """Only the id of the launch is added."""
    started = Started(tmp_path, SUBMIT, *arguments, SPARK_CONF_DIR=conf(tmp_path, text))
    assert started.options.split() == [f"-Dspark.observed.launch={started.launches[0].id}"]


def test_a_properties_file_is_read_for_an_event_log(tmp_path: Path) -> None:
    """`--properties-file` replaces spark-defaults.conf."""
    file = tmp_path / "p.conf"
    file.write_text("spark.eventLog.dir=/logs\nspark.app.name  three\n", encoding="utf-8")
    started = Started(tmp_path, SUBMIT, "--properties-file", str(file), "job.py")
    assert started.options.split() == [f"-Dspark.observed.launch={started.launches[0].id}"]
    assert started.launches[0].properties() == {"spark.eventLog.dir": "/logs", "spark.app.name": "three"}


def test_spark_daemons_are_no_applications(tmp_path: Path) -> None:
    """Other classes that Spark's scripts start are neither changed nor recorded."""
    started = Started(tmp_path, "org.apache.spark.deploy.master.Master")
    assert (started.options, started.launches) == ("", [])


def test_arguments_override_files() -> None:
    """Both forms of an option are understood."""
    launch = Launch("1", False, Path("nowhere"), (SUBMIT, "-c", "a=1", "--conf=b=x=y", "--conf", "a=2"))
    assert launch.properties() == {"a": "2", "b": "x=y"}


def test_a_query_such_as_version_is_no_application() -> None:
    """`spark-submit --version` starts none."""
    assert Launch("1", False, Path("nowhere"), (SUBMIT, "--version")).is_query
    assert not Launch("1", False, Path("nowhere"), (SUBMIT, "job.py", "--version")).is_query


@pytest.mark.parametrize("own", [(), ("--conf", "spark.eventLog.enabled=true")])
def test_a_given_name_is_a_property_without_white_space(tmp_path: Path, own: tuple[str, ...]) -> None:
    """Spark's scripts split options at it, and a name runs no command; also where the program has its own event log."""
    started = Started(tmp_path, SUBMIT, *own, "job.py", name="nightly load; touch $(x) é")
    named = [option for option in started.options.split() if "observed.name" in option]
    assert named == ["-Dspark.observed.name=nightly%20load%3B%20touch%20%24%28x%29%20%C3%A9"]


def test_settings_of_a_trial_are_the_last_options_before_the_program(tmp_path: Path) -> None:
    """So they count more than those of the user; the options of the program stay its own."""
    given = ["--verbose", "--driver-memory", "1g", "--conf=spark.a=1", "--conf", "spark.b=-2", "job.py", "--conf", "c"]
    settings = {"spark.driver.memory": "2g", "spark.b": "two words"}
    started = Started(tmp_path, SUBMIT, *given, settings=settings)
    added = ["--conf", "spark.driver.memory=2g", "--conf", "spark.b=two words", "--driver-memory", "2g"]
    assert started.arguments == [SUBMIT, *given[:6], *added, *given[6:]]


def test_settings_of_a_trial_come_to_a_launch_without_options(tmp_path: Path) -> None:
    """As PySpark starts one, and a shell without a program."""
    started = Started(tmp_path, SUBMIT, "pyspark-shell", settings={"spark.b": "1"})
    assert started.arguments == [SUBMIT, "--conf", "spark.b=1", "pyspark-shell"]


def test_settings_of_a_trial_are_for_applications_only(tmp_path: Path) -> None:
    """Other programs of Spark have other arguments."""
    started = Started(tmp_path, "org.apache.spark.deploy.worker.Worker", "spark://host:7077", settings={"spark.b": "1"})
    assert started.arguments == ["org.apache.spark.deploy.worker.Worker", "spark://host:7077"]


def java_home(folder: Path, default: str) -> str:
    """The home of a Java whose Flight Recorder has some default settings."""
    file = folder / "java" / "lib" / "jfr" / "default.jfc"
    file.parent.mkdir(parents=True)
    file.write_text(default, encoding="utf-8")
    return str(folder / "java")


@pytest.mark.parametrize(
    ("default", "rates"),
    [
        ("jdk.ExecutionSample", {"jdk.ExecutionSample#period=20ms", "jdk.NativeMethodSample#period=20ms"}),
        ("jdk.CPUTimeSample", {"jdk.CPUTimeSample#throttle=20ms"}),
    ],
)
def test_a_driver_records_its_stacks(tmp_path: Path, default: str, rates: set[str]) -> None:
    """By the time on a processor where Java can; executors of other processes get no option."""
    started = Started(tmp_path, SUBMIT, "job.py", is_sampled=True, JAVA_HOME=java_home(tmp_path, default))
    folder = tmp_path / "scratch" / "stacks"
    recording, repository, silent = (word for word in started.options.split() if word.startswith("-X"))
    assert recording.startswith("-XX:StartFlightRecording=name=spark-app,settings=none,")
    assert {word[1:] for word in recording.split(",") if word.endswith("=20ms")} == rates
    assert f"filename={folder}/java,dumponexit=true" in recording
    assert f"repository={folder}/repository" in repository
    assert silent == "-Xlog:jfr+startup=off"
    assert "spark.executor.defaultJavaOptions" not in started.options


def test_executors_of_the_same_machine_record_theirs(tmp_path: Path) -> None:
    """Their options are one word of the launcher."""
    home = java_home(tmp_path, "")
    started = Started(tmp_path, SUBMIT, "--master", "local-cluster[2,1,512]", is_sampled=True, JAVA_HOME=home)
    assert '"-Dspark.executor.defaultJavaOptions=-XX:StartFlightRecording=name=spark-app,' in started.options
    assert started.options.endswith('-Xlog:jfr+startup=off"')


def test_executors_of_another_master_record_if_they_share_a_folder(tmp_path: Path) -> None:
    """The Java of the driver says nothing about theirs, so that they get the settings of every Java."""
    (tmp_path / "java").mkdir()
    home = str(tmp_path / "java")
    started = Started(tmp_path, SUBMIT, "--master", "spark://host:7077", is_shared=True, JAVA_HOME=home)
    folder = tmp_path / "scratch" / "stacks"
    assert started.options.endswith('-Xlog:jfr+startup=off"')
    assert f"repository={folder}/executors/{{{{APP_ID}}}}-{{{{EXECUTOR_ID}}}}" in started.options
    assert all(f"+jdk.{event}#enabled=true" in started.options for event in ("CPUTimeSample", "ExecutionSample"))
    assert started.options.count("StartFlightRecording") == 1
    assert f"SPARK_STACK_SAMPLES_HOOK={folder}/hook" in started.environment
    assert "import spark_app_python_sampler" in (folder / "hook" / "sitecustomize.py").read_text(encoding="utf-8")


def test_executors_keep_the_default_options_of_the_configuration(tmp_path: Path) -> None:
    """Properties of the launcher count less than those of the file, so that samples are in others."""
    given = conf(tmp_path, "spark.executor.defaultJavaOptions -Da=b\n")
    started = Started(tmp_path, SUBMIT, "job.py", is_shared=True, SPARK_CONF_DIR=given, JAVA_HOME=str(tmp_path))
    assert '"-Dspark.executor.extraJavaOptions=-XX:StartFlightRecording=name=spark-app,' in started.options


def test_a_java_without_the_flight_recorder_starts_as_before(tmp_path: Path) -> None:
    """It would not start with an option that it does not know."""
    (tmp_path / "java").mkdir()
    started = Started(tmp_path, SUBMIT, "job.py", is_sampled=True, JAVA_HOME=str(tmp_path / "java"))
    assert "-XX" not in started.options


def test_what_is_not_sampled_has_no_trace_of_it(tmp_path: Path) -> None:
    """No file, no variable, no option."""
    started = Started(tmp_path, SUBMIT, "job.py", JAVA_HOME=java_home(tmp_path, "jdk.ExecutionSample"))
    assert "-XX" not in started.options
    assert not any("STACK_SAMPLES" in line for line in started.environment)
    assert not any("sampler" in file.name for file in (tmp_path / "scratch").rglob("*"))
    hook = (tmp_path / "scratch" / "python" / "sitecustomize.py").read_text(encoding="utf-8")
    assert "sampler" not in hook
