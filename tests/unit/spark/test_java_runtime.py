import os
import subprocess
import sys
from pathlib import Path

import pytest

from spark_app.errors import MachineError
from spark_app.spark.java_runtime import require_java, spark_home


def java_home(folder: Path, *, release: str | None = None, says: str = "") -> Path:
    """A Java that states its version in a file, as most do, or only when it is asked."""
    java = folder / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{says}\nEND\n")
    java.chmod(0o755)
    if release:
        (folder / "release").write_text(f'IMPLEMENTOR="X"\nJAVA_VERSION="{release}"\nJAVA_VERSION_DATE="2025-04-15"\n')
    return folder


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.2", "25"])
def test_a_java_that_fits_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """Java 17 and whatever is newer is taken from JAVA_HOME."""
    home = java_home(tmp_path, release=version)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert require_java() == home / "bin" / "java"


@pytest.mark.parametrize("version", ["11.0.2", "1.8.0_402"])
def test_too_old_a_java_is_refused_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    """The line names the version, where it is, and what to install; the exit code is 2."""
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, release=version)))
    with pytest.raises(MachineError) as caught:
        require_java()
    message = str(caught.value)
    assert caught.value.exit_code == 2
    assert version in message
    assert str(tmp_path) in message
    assert "install a Java 17 or 21" in message
    assert "\n" not in message


def test_a_java_without_a_release_file_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Some Javas state their version only when they are run."""
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, says='openjdk version "11.0.2" 2019-01-15')))
    with pytest.raises(MachineError, match=r"Java 11\.0\.2 .* is too old"):
        require_java()


def test_a_java_that_only_looks_like_one_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in such as that of macOS, which only says where to get Java, is not Java."""
    monkeypatch.setenv("JAVA_HOME", str(java_home(tmp_path, says="The operation couldn't be completed.")))
    with pytest.raises(MachineError, match="does not run: install a Java 17 or 21"):
        require_java()


def test_a_wrong_java_home_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark would start what JAVA_HOME names, so another Java on the PATH does not help."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(MachineError, match=f"no Java at JAVA_HOME={tmp_path}/nowhere: correct or unset it"):
        require_java()


def test_no_java_at_all_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAVA_HOME the PATH is searched, and the line says what to install."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MachineError, match=r"^no Java found: install a Java 17 or 21 .*$"):
        require_java()


def test_the_spark_of_this_environment_is_found() -> None:
    """It is the one whose jars are ours to change."""
    assert spark_home().is_relative_to(Path(sys.prefix).resolve())
    assert (spark_home() / "jars").is_dir()


def test_the_spark_of_another_environment_is_refused(tmp_path: Path) -> None:
    """As old guides tell to name it in PYTHONPATH; nothing of it is touched."""
    other = tmp_path / "pyspark" / "__init__.py"
    other.parent.mkdir()
    other.touch()
    start = [sys.executable, "-m", "spark_app.spark.jars"]
    environment = os.environ | {"PYTHONPATH": f"{tmp_path}:{Path(__file__).resolve().parents[3]}"}
    done = subprocess.run(start, capture_output=True, text=True, cwd=tmp_path, env=environment, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith(f"the PySpark at {other.parent} is not that of {sys.prefix}: unset PYTHONPATH")
    assert [path.name for path in other.parent.iterdir() if path.name != "__pycache__"] == ["__init__.py"]
