"""The tools do what the documents say: targets, pins, preflight, and nothing that belongs to one machine."""

import ast
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).resolve().parents[2]
TARGETS: Final = {
    "help", "install", "install-dev", "archive", "format", "lint", "type-check", "test", "test-browser", "test-compare",
    "test-faults", "test-integration", "test-readme", "test-recipes", "test-stack", "test-streams", "test-wheel",
    "wheel", "release",
    "e2e", "e2e-long", "e2e-ha", "e2e-s3", "e2e-tls", "e2e-kubernetes", "check", "dev-check", "ci", "chaos", "record",
    "pictures",
    "bench", "bench-stack", "run-etl", "run-streaming", "run-ml",
    "docker-up", "docker-full-up", "docker-down", "docker-clean", "status", "logs", "requirements", "clean",
}  # fmt: skip
TIES: Final = {
    "a package registry's host": r"pypi\.org|pythonhosted\.org|repo1?\.maven\.|registry\.npmjs|maven\.org/maven2",
    "a folder of one machine": r"(?<![\w.}$*-])/(?:work|root|home|tmp|Users)/\w",
}
FORBIDDEN_IN_TESTS: Final = {
    "pytest.skip", "pytest.importorskip", "pytest.mark.skip", "pytest.mark.skipif", "pytest.mark.xfail", "time.sleep",
    "unittest.mock", "unittest.skip",
}  # fmt: skip
# The module that polls; programs that are slow on purpose; one that stops other programs before they end.
EXCEPTED: Final = {
    "tests/polling.py": {"time.sleep"},
    "tests/bench/what_if_program.py": {"time.sleep"},
    "tests/compare/job.py": {"time.sleep"},
    "tests/compare/runs.py": {"time.sleep"},
    "tests/eventlogs/clusters.py": {"time.sleep"},
    "tests/eventlogs/connect.py": {"time.sleep"},
    "tests/eventlogs/dying.py": {"time.sleep"},
    "tests/eventlogs/hard.py": {"time.sleep"},
    "tests/eventlogs/pods.py": {"time.sleep"},
    "tests/eventlogs/record_pods.py": {"time.sleep"},
    "tests/eventlogs/stages.py": {"time.sleep"},
    "tests/eventlogs/streams.py": {"time.sleep"},
    "tests/stranger/hold.py": {"unittest.mock"},
}
# What set-up uses besides bash before it has checked the machine: every machine has these.
PLAIN_TOOLS: Final = ("env", "bash", "cksum", "rm")
RUNNING: Final = ("etl", "streaming", "ml")
OLD_JAVAS: Final = {"1.8.0_402": "8", "11.0.2": "11", "16.0.1": "16"}


def project() -> dict[str, list[str]]:
    """The pins of pyproject.toml by group: run, the extras that run pipelines, dev, build."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {
        "run": content["project"]["dependencies"],
        **{extra: content["project"]["optional-dependencies"][extra] for extra in RUNNING},
        "dev": content["dependency-groups"]["dev"],
        "build": content["build-system"]["requires"],
    }


def normal(name: str) -> str:
    """A package's name as registries compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> dict[str, str]:
    """The versions of requirements.txt by package."""
    content = (ROOT / "requirements.txt").read_text(encoding="utf-8")
    pins = re.findall(r"^([\w.-]+)==([\w.]+)", content, flags=re.MULTILINE)
    return {normal(name): version for name, version in pins}


def help_texts() -> dict[str, str]:
    """The targets that `make help` lists, with what it says of each."""
    shown = subprocess.run(["make", "-s", "help"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return dict(re.findall(r"^ +(\S+) +(\S.*)$", shown, flags=re.MULTILINE))


def repository_files() -> list[Path]:
    """The files that are committed, or would be."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    return [path for path in (ROOT / name for name in listed.split("\0") if name) if path.is_file()]


def dotted_names(tree: ast.AST) -> set[str]:
    """Every dotted name that a module uses or imports: `time.sleep`, also when written `from time import sleep`."""
    used = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    imported = {f"{node.module}.{alias.name}" for node in imports for alias in node.names}
    plain = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    return used | imported | plain | {node.module or "" for node in imports}


def test_make_has_the_promised_targets_and_explains_each() -> None:
    """`make help` lists every target, each with a text, and no other."""
    assert set(help_texts()) == TARGETS


def test_help_is_what_make_does_by_default() -> None:
    """`make` alone says what there is and changes nothing."""
    default = subprocess.run(["make", "-s"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    assert {line.split()[0] for line in default.splitlines()} == TARGETS


def test_run_etl_without_a_date_says_how_to_give_one() -> None:
    """`make run-etl` without DATE ends with 2 and an example, before anything is set up."""
    done = subprocess.run(["make", "-s", "run-etl", "DATE="], cwd=ROOT, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        2,
        "run-etl needs a date: make run-etl DATE=2024-01-01",
    )


def test_requirements_hold_the_pins_of_pyproject() -> None:
    """Every pin of pyproject.toml is exact, and requirements.txt has the same version."""
    pins = {
        (group, *pin.split("=="))
        for group, group_pins in project().items()
        for pin in group_pins
        if not pin.startswith("spark-app[")
    }
    assert {group for group, *_ in pins} == {"run", *RUNNING, "dev", "build"}
    assert [pin for pin in pins if len(pin) != 3 or locked().get(normal(pin[1])) != pin[2]] == []


def test_every_requirement_has_a_hash() -> None:
    """Nothing is installed whose content is not known: each requirement carries a SHA-256."""
    content = (ROOT / "requirements.txt").read_text(encoding="utf-8").replace("\\\n", " ")
    assert [line.split()[0] for line in content.splitlines() if "--hash=sha256:" not in line] == []


def test_no_file_is_tied_to_one_machine() -> None:
    """No committed file names a package registry's host or a folder of one machine."""
    contents = {path: path.read_text(encoding="utf-8", errors="replace") for path in repository_files()}
    ties = {
        f"{path.relative_to(ROOT)}: {kind}": match[0]
        for path, text in contents.items()
        for kind, pattern in TIES.items()
        if (match := re.search(pattern, text))
    }
    assert contents
    assert ties == {}


def test_no_test_skips_sleeps_or_mocks() -> None:
    """A test runs everywhere, waits for what it needs and tests the real thing; so does what tests are made of."""
    modules = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "tests").rglob("*.py")}
    forbidden = {
        path.relative_to(ROOT).as_posix(): dotted_names(tree) & FORBIDDEN_IN_TESTS for path, tree in modules.items()
    }
    assert {name: names for name, names in forbidden.items() if names} == EXCEPTED


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder `bin` with plain tools, no Java and no Python, beside a project that holds only the set-up script."""
    (tmp_path / "bin").mkdir()
    for tool in PLAIN_TOOLS:
        (tmp_path / "bin" / tool).symlink_to(shutil.which(tool) or pytest.fail(f"this machine has no {tool}"))
    (tmp_path / "project" / "scripts").mkdir(parents=True)
    shutil.copy(ROOT / "scripts" / "setup-dev.sh", tmp_path / "project" / "scripts")
    return tmp_path


def program(folder: Path, name: str, *lines: str) -> None:
    """Puts a shell script into a machine's `bin`."""
    path = folder / "bin" / name
    path.write_text("\n".join(["#!/usr/bin/env bash", *lines, ""]), encoding="utf-8")
    path.chmod(0o755)


def printed(folder: Path, command: str) -> str:
    """What a command prints after the functions of the set-up script are defined."""
    script = folder / "project" / "scripts" / "setup-dev.sh"
    functions = script.with_name("functions.sh")
    functions.write_text(script.read_text(encoding="utf-8").removesuffix("main\n") + f"{command}\n", encoding="utf-8")
    environment = {"PATH": str(folder / "bin")}
    return subprocess.run(["bash", functions], env=environment, capture_output=True, text=True, check=True).stdout


def refused(folder: Path, *, java_home: str | None = None) -> str:
    """The line that set-up prints on a machine that lacks something; the exit code is 2 and no file changes."""
    environment = {"PATH": str(folder / "bin")} | ({} if java_home is None else {"JAVA_HOME": java_home})
    before = set(folder.rglob("*"))
    command = [folder / "project" / "scripts" / "setup-dev.sh"]
    done = subprocess.run(command, env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert set(folder.rglob("*")) == before
    return done.stderr


def test_set_up_without_java_says_what_to_install(machine: Path) -> None:
    """No Java: one line that names it, before anything is downloaded."""
    assert refused(machine).startswith("No Java found: install a Java 17 or 21 runtime")


def test_set_up_with_an_old_java_says_so(machine: Path) -> None:
    """Too old a Java: one line that names its version and the one that is needed."""
    messages = {}
    for version, major in OLD_JAVAS.items():
        program(machine, "java", f"""echo 'openjdk version "{version}" 2019-01-15' >&2""")
        messages[major] = refused(machine).partition(":")[0]
    assert messages == {major: f"Java {major} is too old for Spark 4.2" for major in OLD_JAVAS.values()}


def test_set_up_with_a_wrong_java_home_names_it(machine: Path) -> None:
    """Spark follows JAVA_HOME; so does the check, even when a good Java is on PATH."""
    program(machine, "java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    assert refused(machine, java_home="nowhere").startswith("No Java runs at JAVA_HOME=nowhere: correct or unset")


def test_set_up_passes_over_pythons_that_do_not_run_or_fit(machine: Path) -> None:
    """A shim without a Python behind it and too old a Python count as none: one line says what to install."""
    program(machine, "java", """echo 'openjdk version "21.0.4" 2024-07-16 LTS' >&2""")
    program(machine, "python3.13", "exit 127")
    program(machine, "python3", "exit 1")
    assert refused(machine).startswith("No Python 3.11, 3.12 or 3.13 found: install one")


def test_set_up_with_a_python_without_venv_says_so(machine: Path) -> None:
    """Debian's Python comes without venv: one line says which package has it."""
    program(machine, "java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    program(machine, "python3.12", """[[ "$2" != *ensurepip* ]]""")
    python = machine / "bin" / "python3.12"
    assert refused(machine).startswith(f"{python} cannot make environments: install its venv module")


def test_set_up_runs_for_another_python(machine: Path) -> None:
    """When the machine's Python is replaced or deleted, the environment is set up again, though its files exist."""
    program(machine, "java", """echo 'openjdk version "17.0.15" 2025-04-15' >&2""")
    program(machine, "spark-app")
    program(machine, "python", '[[ "$2" != *print* ]] || echo 3.12.1', '[[ "$2" != *ensurepip* ]]')
    project, script = machine / "project", machine / "project" / "scripts" / "setup-dev.sh"
    (project / ".venv").mkdir()
    (machine / "bin" / "python").rename(machine / "python")
    for name in ("requirements.txt", "pyproject.toml", "config/spark/jars.ivy.xml", "config/spark/jars.sha256"):
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).touch()
    commands = project / ".venv" / "bin"
    commands.mkdir()
    (machine / "bin" / "spark-app").rename(commands / "spark-app")
    (commands / "python").symlink_to(machine / "python")
    (project / ".venv" / "set-up").write_text(printed(machine, "wanted"), encoding="utf-8")

    environment = {"PATH": str(machine / "bin")}
    done = subprocess.run([script], env=environment, check=False, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    replaced = (machine / "python").read_text(encoding="utf-8").replace("3.12.1", "3.13.0")
    (machine / "python").write_text(replaced, encoding="utf-8")
    assert "cannot make environments" in refused(machine)
    (machine / "python").unlink()
    assert refused(machine).startswith("No Python 3.11, 3.12 or 3.13 found")


def test_uv_gets_the_configuration_of_pip(machine: Path) -> None:
    """Packages come from where pip would take them: the environment wins over files, `install` over `global`."""
    python = machine / "project" / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    program(
        machine,
        "python",
        r"""cat <<'END'
:env:.find-links='wheels more'
global.cert='ca.pem'
global.extra-index-url='\nhttps://second\nhttps://third'
global.index-url='https://global'
install.index-url="https://install"
END""",
    )
    (machine / "bin" / "python").rename(python)
    (machine / "bin" / "cat").symlink_to(shutil.which("cat") or pytest.fail("this machine has no cat"))
    variables = printed(machine, "use_pip_configuration; export -p")
    assert dict(re.findall(r'(?:UV_|SSL_)(\w+)="(.*)"', variables)) == {
        "DEFAULT_INDEX": "https://install",
        "INDEX": "https://second https://third",
        "INDEX_STRATEGY": "unsafe-best-match",
        "FIND_LINKS": "wheels,more",
        "CERT_FILE": "ca.pem",
        "SYSTEM_CERTS": "1",
    }


def test_each_target_sets_up_what_it_needs() -> None:
    """A fresh clone needs no other command first: what uses the environment calls the set-up before."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    rules = re.findall(r"^([a-z0-9-]+):[^=\n]*##.*\n((?:\t.*\n)*)", makefile, re.MULTILINE)
    using = [target for target, recipe in rules if "$(VENV)" in recipe or "$(PYTHON)" in recipe]
    assert {"test", "check", "run-etl", "lint"} <= set(using)
    for target in using:
        command = ["make", "--dry-run", "--always-make", "--no-print-directory", target, "DATE=2024-01-01"]
        done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
        before, uses, _ = done.stdout.partition(".venv/bin/")
        assert uses, target
        assert "scripts/setup-dev.sh" in before, target


def test_each_folder_of_tests_belongs_to_a_target() -> None:
    """No test is left out: `make test` runs its folder, or a target of its own does."""
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    targets = re.findall(r"-m pytest .*?(\S+)$", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    run = {*content["tool"]["pytest"]["ini_options"]["testpaths"], *targets}
    folders = {"/".join(path.relative_to(ROOT).parts[:2]) for path in (ROOT / "tests").rglob("test_*.py")}
    assert "tests/unit" in folders
    assert sorted(folders - run) == []


def test_scripts_can_be_run() -> None:
    """A script that the documents name is executable."""
    scripts = [ROOT / ".ci" / "run", *(ROOT / "scripts").glob("*.sh")]
    assert [path.name for path in scripts if not os.access(path, os.X_OK)] == []
