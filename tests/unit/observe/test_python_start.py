"""What the start-up hook does in the programs of others: tried with packages that stand for Py4J and PySpark."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Final

import pytest

from spark_app.observe.python_start import with_hook
from spark_app.settings import PREFIX

GATEWAY: Final = """
properties = {}


class Py4JNetworkError(Exception):
    pass


class JavaMember:
    def __init__(self, name, target_id="o1"):
        self.name, self.target_id = name, target_id

    def __call__(self, *arguments):
        print(self.name, properties.get("callSite.short"))
        if arguments and arguments[0] == "fail":
            raise ValueError("as without the hook")
        if arguments and arguments[0] == "die":
            raise Py4JNetworkError("gone")
        return arguments
"""
PYSPARK: Final = """
from py4j.java_gateway import JavaMember, properties


class ClientServer:
    pass


class JavaContext:
    def getLocalProperty(self, name):
        return properties.get(name)

    def setLocalProperty(self, name, value):
        properties[name] = value


class SparkContext:
    class _active_spark_context:
        _gateway, _jsc = ClientServer(), JavaContext()


def show(*arguments):
    return (lambda: JavaMember("showString")(*arguments))()


def lit(*arguments):
    return JavaMember("count", "z:org.apache.spark.sql.functions")(*arguments)
"""
PROGRAM: Final = """
from pyspark import properties, lit, show

assert show(1, 2) == (1, 2)
lit()
print(sorted(set(properties.values()), key=str))
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A folder with packages that stand for Py4J and PySpark, and a program."""
    for name, text in (("py4j/__init__", ""), ("py4j/java_gateway", GATEWAY), ("pyspark/__init__", PYSPARK)):
        file = tmp_path / "path" / f"{name}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    return tmp_path / "path"


def run(path: Path, program: str, *arguments: str, entry: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A program after it ran with the hook, in its own folder."""
    home = path.parent / "home"
    home.mkdir()
    (home / "job.py").write_text(program, encoding="utf-8")
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(entry or path)}
    environment = with_hook(variables, path.parent / "hook", path.parent / "logs")
    command = [sys.executable, *(arguments or ("job.py",))]
    return subprocess.run(command, cwd=home, env=environment, capture_output=True, text=True, check=False)


def test_an_action_of_a_strangers_program_has_its_line(path: Path) -> None:
    """A static method of the same name is no action; nothing is left afterwards."""
    done = run(path, PROGRAM)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines() == ["showString show at job.py:4", "count None", "[None]"]


def test_the_hook_can_be_written_for_good(path: Path) -> None:
    """As the image of the stack has it, for programs that nobody observes."""
    hook, job = path.parent / "hook", path.parent / "job.py"
    subprocess.run([sys.executable, "-m", "spark_app.observe.python_start", str(hook)], check=True)
    job.write_text(PROGRAM, encoding="utf-8")
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": f"{hook}{os.pathsep}{path}"}
    command = [sys.executable, job.name]
    done = subprocess.run(command, cwd=path.parent, env=variables, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[0] == "showString show at job.py:4"


def test_packages_in_an_archive_are_named_too(path: Path) -> None:
    """As those of Spark's own distribution, which `spark-submit` puts on the path."""
    archive = path.parent / "python.zip"
    with zipfile.ZipFile(archive, "w") as packed:
        for file in path.rglob("*.py"):
            packed.write(file, file.relative_to(path))
    assert run(path, PROGRAM, entry=archive).stdout.splitlines()[0] == "showString show at job.py:4"


def test_an_error_is_the_same(path: Path) -> None:
    """Its type, its text, and the exit code of the program; the properties are gone."""
    program = (
        "from pyspark import properties, show\ntry:\n    show('fail')\nfinally:\n    print(set(properties.values()))\n"
    )
    done = run(path, program)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "{None}")
    assert done.stderr.splitlines()[-1] == "ValueError: as without the hook"


def test_a_lost_jvm_is_not_spoken_to(path: Path) -> None:
    """It would take time, and log an error."""
    done = run(
        path, "from pyspark import properties, show\ntry:\n    show('die')\nfinally:\n    print(len(properties))\n"
    )
    assert done.stdout.splitlines()[-1] == "2"
    assert done.stderr.splitlines()[-1] == "py4j.java_gateway.Py4JNetworkError: gone"


@pytest.mark.parametrize(
    "harm",
    [
        "pyspark.ClientServer.__name__ = 'JavaGateway'",
        "pyspark.SparkContext._active_spark_context = None",
        "pyspark.SparkContext._active_spark_context._jsc = None",
        "pyspark.properties['callSite.short'] = 'mine'",
        "del pyspark.SparkContext",
        "import os; os.getcwd = None",
    ],
)
def test_without_its_conditions_a_call_is_as_before(path: Path, harm: str) -> None:
    """Threads that are not those of the JVM, no context, a call site of the program, another PySpark."""
    done = run(path, f"import pyspark\n{harm}\nprint(pyspark.show(7))\n")
    assert (done.returncode, done.stderr, done.stdout.splitlines()[-1]) == (0, "", "(7,)")
    assert "show at" not in done.stdout


def test_a_sitecustomize_of_the_program_runs_too(path: Path) -> None:
    """And is what the program imports; the folder of the hook is not on its path."""
    (path / "sitecustomize.py").write_text("print('theirs')\n", encoding="utf-8")
    program = "import sitecustomize, sys\nprint(sitecustomize.__file__, [x for x in sys.path if x.endswith('hook')])\n"
    done = run(path, program + PROGRAM)
    assert done.stdout.splitlines()[:2] == ["theirs", f"{path / 'sitecustomize.py'} []"]
    assert done.stdout.splitlines()[2].startswith("showString show at job.py:")


def test_an_error_in_a_sitecustomize_of_the_program_is_told_by_python(path: Path) -> None:
    """As without the hook: the program goes on."""
    (path / "sitecustomize.py").write_text("raise OSError('theirs')\n", encoding="utf-8")
    done = run(path, PROGRAM)
    assert "OSError: theirs" in done.stderr
    assert done.stdout.splitlines()[0] == "showString show at job.py:4"


def test_a_worker_of_spark_is_left_alone(path: Path) -> None:
    """It starts no jobs."""
    (path / "pyspark" / "daemon.py").write_text("import sys\nprint('spark_app_call_sites' in sys.modules)\n")
    assert run(path, "", "-m", "pyspark.daemon").stdout == "False\n"


def test_a_program_without_spark_imports_nothing_of_it(path: Path) -> None:
    """The hook waits for Py4J."""
    program = "import sys\nprint([name for name in sys.modules if name.startswith(('py4j', 'pyspark'))])\n"
    assert run(path, program).stdout == "[]\n"


def test_the_path_of_the_program_is_kept(tmp_path: Path) -> None:
    """The hook comes first; without a path of its own there is no empty entry, which is the working folder."""
    logs = {"SPARK_PYTHON_LOGS": "logs"}
    assert with_hook({"A": "1"}, tmp_path / "one", Path("logs")) == logs | {
        "A": "1",
        "PYTHONPATH": str(tmp_path / "one"),
    }
    assert not any(name.startswith(PREFIX) for name in logs), "spark-app refuses settings it does not know"
    path = f"{tmp_path / 'two'}:x:y"
    assert with_hook({"PYTHONPATH": "x:y"}, tmp_path / "two", Path("logs")) == logs | {"PYTHONPATH": path}
