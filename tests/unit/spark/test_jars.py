import hashlib
import threading
from collections.abc import Mapping
from pathlib import Path

import pytest

from spark_app.errors import MachineError
from spark_app.spark import jars
from spark_app.spark.jars import Note, ensure_jars


class Repository:
    """Serves jars from memory in place of Ivy, and counts how often it is asked."""

    def __init__(self, jars: Mapping[str, bytes]) -> None:
        self.jars = jars
        self.asked = 0

    def fetch(self, target: Path, note: Note) -> None:
        """What Ivy would do."""
        self.asked += 1
        for name, content in self.jars.items():
            (target / name).write_bytes(content)
            note(f"fetched {name}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Spark's folder of jars, with one of its own in it."""
    folder = tmp_path / "jars"
    folder.mkdir()
    (folder / "spark-core.jar").write_bytes(b"spark")
    return folder


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """The two lists that ask for delta.jar and kafka.jar."""
    return listed(tmp_path / "config", {"delta.jar": b"delta", "kafka.jar": b"kafka"})


def listed(config: Path, jars: Mapping[str, bytes], name: str = "jars") -> Path:
    """A folder with the two files of a list that asks for these jars."""
    config.mkdir(exist_ok=True)
    sums = [f"{hashlib.sha256(content).hexdigest()}  {name}\n" for name, content in jars.items()]
    (config / f"{name}.sha256").write_text("".join(sums))
    (config / f"{name}.ivy.xml").write_text("<ivy-module/>")
    return config


def ignore(_: str) -> None:
    """Not all tests care for what is printed."""


def jars_in(folder: Path) -> dict[str, bytes]:
    """The content of each jar by its name."""
    return {file.name: file.read_bytes() for file in folder.glob("*.jar")}


def test_jars_are_fetched_once(folder: Path, config: Path) -> None:
    """The first call fetches and tells; the second finds everything in place, and says and fetches nothing."""
    repository, notes = Repository({"delta.jar": b"delta", "kafka.jar": b"kafka"}), list[str]()
    ensure_jars(note=notes.append, folder=folder, config=config, fetch=repository.fetch)
    assert jars_in(folder) == {"delta.jar": b"delta", "kafka.jar": b"kafka", "spark-core.jar": b"spark"}
    assert notes == ["fetched delta.jar", "fetched kafka.jar"]
    ensure_jars(note=notes.append, folder=folder, config=config, fetch=repository.fetch)
    assert repository.asked == 1
    assert len(notes) == 2


def test_jars_that_are_there_already_are_recognised_by_their_content(folder: Path, config: Path) -> None:
    """An image or a copied environment needs no network, only to be looked at."""
    (folder / "delta.jar").write_bytes(b"delta")
    (folder / "kafka.jar").write_bytes(b"kafka")
    repository = Repository({})
    ensure_jars(note=pytest.fail, folder=folder, config=config, fetch=repository.fetch)
    assert repository.asked == 0


def test_a_lost_jar_is_fetched_again(folder: Path, config: Path) -> None:
    """A list that was once complete is not taken for a jar."""
    repository = Repository({"delta.jar": b"delta", "kafka.jar": b"kafka"})
    ensure_jars(note=ignore, folder=folder, config=config, fetch=repository.fetch)
    (folder / "delta.jar").unlink()
    ensure_jars(note=ignore, folder=folder, config=config, fetch=repository.fetch)
    assert repository.asked == 2
    assert jars_in(folder)["delta.jar"] == b"delta"


def test_jars_of_an_older_list_go(folder: Path, config: Path) -> None:
    """Two versions of Delta beside each other would be chosen from by chance; Spark's own jars stay."""
    ensure_jars(
        note=ignore,
        folder=folder,
        config=config,
        fetch=Repository({"delta.jar": b"delta", "kafka.jar": b"kafka"}).fetch,
    )
    listed(config, {"delta-2.jar": b"newer", "kafka.jar": b"kafka"})
    ensure_jars(note=ignore, folder=folder, config=config, fetch=Repository({"delta-2.jar": b"newer"}).fetch)
    assert jars_in(folder) == {"delta-2.jar": b"newer", "kafka.jar": b"kafka", "spark-core.jar": b"spark"}


def test_jars_of_another_list_stay(folder: Path, config: Path) -> None:
    """Those of S3 are beside those of Delta, whichever comes first, and are replaced on their own."""
    repository = Repository({"delta.jar": b"delta", "kafka.jar": b"kafka"})
    for name in ("hadoop-aws-1.jar", "hadoop-aws-2.jar"):
        s3 = Repository({name: b"aws"})
        listed(config, s3.jars, "jars-s3")
        ensure_jars(note=ignore, name="jars-s3", folder=folder, config=config, fetch=s3.fetch)
        ensure_jars(note=ignore, folder=folder, config=config, fetch=repository.fetch)
        assert set(jars_in(folder)) == {name, "delta.jar", "kafka.jar", "spark-core.jar"}
    assert repository.asked == 1


def test_a_jar_that_comes_with_the_program_is_not_fetched(folder: Path, config: Path) -> None:
    """Delta's log store for S3, which no repository has; it is verified as the others are, and needs no network."""
    content = (jars.OWN / "spark-app-s3-log-store.jar").read_bytes()
    listed(config, {"hadoop-aws.jar": b"aws", "spark-app-s3-log-store.jar": content}, "jars-s3")
    fetch = Repository({"hadoop-aws.jar": b"aws"}).fetch
    ensure_jars(note=ignore, name="jars-s3", folder=folder, config=config, fetch=fetch)
    assert jars_in(folder)["spark-app-s3-log-store.jar"] == content
    (folder / "spark-app-s3-log-store.jar").unlink()
    ensure_jars(note=ignore, name="jars-s3", folder=folder, config=config, fetch=None)
    assert jars_in(folder)["spark-app-s3-log-store.jar"] == content
    listed(config, {"hadoop-aws.jar": b"aws", "spark-app-s3-log-store.jar": b"another"}, "jars-s3")
    with pytest.raises(MachineError, match=r"^spark-app-s3-log-store\.jar is not the file that was verified"):
        ensure_jars(note=ignore, name="jars-s3", folder=folder, config=config, fetch=fetch)


def test_an_unknown_list_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing is fetched."""
    assert jars.main(["s4"]) == 2
    assert capsys.readouterr().err == "there is no list jars-s4.ivy.xml in config/spark: give no argument, s3 or jdbc\n"


def test_a_jar_that_is_not_the_verified_one_is_named_and_nothing_is_installed(folder: Path, config: Path) -> None:
    """All are verified before the first is moved; the line names the jar; nothing half done is left."""
    repository = Repository({"delta.jar": b"delta", "kafka.jar": b"something else"})
    with pytest.raises(
        MachineError, match=r"^kafka\.jar is not the file that was verified.*run the command again$"
    ) as caught:
        ensure_jars(note=ignore, folder=folder, config=config, fetch=repository.fetch)
    assert caught.value.exit_code == 2
    assert jars_in(folder) == {"spark-core.jar": b"spark"}
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_a_jar_that_the_lists_disagree_on_is_named(folder: Path, config: Path) -> None:
    """A version raised in one list and not in the other is reported as that."""
    with pytest.raises(
        MachineError, match=r"^kafka\.jar was not fetched: is it in config/spark/jars\.ivy\.xml, in this version\?$"
    ):
        ensure_jars(note=ignore, folder=folder, config=config, fetch=Repository({"delta.jar": b"delta"}).fetch)


def test_what_a_killed_set_up_left_is_cleared_away(folder: Path, config: Path) -> None:
    """Downloads are megabytes; nobody else would ever remove them."""
    (folder / ".spark-app-unfinished-abc" / "cache").mkdir(parents=True)
    repository = Repository({"delta.jar": b"delta", "kafka.jar": b"kafka"})
    ensure_jars(note=ignore, folder=folder, config=config, fetch=repository.fetch)
    assert not [path for path in folder.iterdir() if path.is_dir()]


def test_two_at_once_fetch_once(folder: Path, config: Path) -> None:
    """The second waits for the first and finds its jars."""
    second_started = threading.Event()

    class Slow(Repository):
        def fetch(self, target: Path, note: Note) -> None:
            """Nothing comes before the second has started."""
            assert second_started.wait(60)
            super().fetch(target, note)

    repository = Slow({"delta.jar": b"delta", "kafka.jar": b"kafka"})

    def work() -> None:
        ensure_jars(note=ignore, folder=folder, config=config, fetch=repository.fetch)

    first, second = threading.Thread(target=work), threading.Thread(target=work)
    first.start()
    second.start()
    second_started.set()
    first.join(60)
    second.join(60)
    assert repository.asked == 1
    assert set(jars_in(folder)) == {"delta.jar", "kafka.jar", "spark-core.jar"}


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path, config: Path) -> None:
    """The line names the folder and what is wrong with it."""
    (tmp_path / "file").write_text("")
    with pytest.raises(MachineError, match=rf"^cannot create folder {tmp_path}/file/jars: Not a directory"):
        ensure_jars(note=ignore, folder=tmp_path / "file" / "jars", config=config, fetch=Repository({}).fetch)


def test_no_network_is_said_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's own Ivy behind a proxy that refuses: which jar, why, and what to do, and none of Ivy's noise."""
    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    notes = list[str]()
    with pytest.raises(MachineError) as caught:
        ensure_jars(note=notes.append, folder=folder)
    assert str(caught.value).startswith(
        "cannot fetch spark-sql-kafka-0-10_2.13 4.2.0: ConnectException: Connection refused;"
    )
    assert "check the network" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert notes == ["fetching 6 jars of Delta and Kafka, once"]
    assert jars_in(folder) == {"spark-core.jar": b"spark"}


def test_a_jar_that_spark_puts_first_is_not_among_all_the_others_again(folder: Path, config: Path) -> None:
    """Java 21 refuses an archive of classes for a class path with a jar twice; also after Spark was installed anew.

    Each class path `jars/*` has it, such as that of executors on Kubernetes; older versions had called it a .zip.
    """
    (folder / "slf4j-api-2.0.16.zip").write_bytes(b"older")
    for content in (b"old", b"new"):
        (folder / "slf4j-api-2.0.17.jar").write_bytes(content)
        ensure_jars(
            note=ignore,
            folder=folder,
            config=config,
            fetch=Repository({"delta.jar": b"delta", "kafka.jar": b"kafka"}).fetch,
        )
        found = {file.name: file.read_bytes() for file in folder.glob("*slf4j*")}
        assert found == {"org.slf4j_slf4j-api-2.0.17.jar": content}
