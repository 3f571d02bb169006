"""The files in .github are valid, and its workflow runs the script that developers run."""

import re
from pathlib import Path
from typing import Any, Final

import yaml

ROOT: Final = Path(__file__).resolve().parents[2]
FOLDER: Final = ROOT / ".github"


def read(name: str) -> Any:
    """The content of a YAML file. YAML 1.1 reads the key `on` as true."""
    return yaml.safe_load((FOLDER / name).read_text(encoding="utf-8"))


def test_every_file_is_valid_yaml() -> None:
    """Each is a mapping; GitHub ignores a file that it cannot read."""
    names = [path.relative_to(FOLDER).as_posix() for path in FOLDER.rglob("*.yml")]
    assert len(names) == 4
    assert [name for name in names if not isinstance(read(name), dict)] == []


def test_workflow_runs_the_script_of_developers_on_pinned_actions() -> None:
    """`.ci/run` and nothing beside it, on Java 17 and Python 3.11, with no more rights than to read."""
    workflow = read("workflows/ci.yml")
    assert workflow["permissions"] == {"contents": "read"}
    steps = workflow["jobs"]["ci"]["steps"]
    (command,) = [step["run"] for step in steps if "run" in step]
    assert command.rstrip().endswith("bash .ci/run")
    assert (ROOT / ".ci" / "run").is_file()
    used = {step["uses"]: step.get("with", {}) for step in steps if "uses" in step}
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@v\d+(\.\d+)*", action)] == []
    versions = {key: value for options in used.values() for key, value in options.items() if key.endswith("-version")}
    assert versions == {"java-version": "17", "python-version": "3.11"}


def test_dependabot_updates_every_kind_of_dependency_here() -> None:
    """Python packages, actions and the base image."""
    assert {update["package-ecosystem"] for update in read("dependabot.yml")["updates"]} == {
        "pip", "github-actions", "docker",
    }  # fmt: skip


def test_bug_form_asks_for_doctor_and_the_run_folder_and_warns_of_secrets() -> None:
    """Without them nobody can help; with secrets in them, nobody should see them."""
    fields = {field.get("id"): field for field in read("ISSUE_TEMPLATE/bug.yml")["body"]}
    assert "spark-app doctor" in fields["doctor"]["attributes"]["label"]
    assert "runs/<run id>/" in fields["run"]["attributes"]["description"]
    assert all(fields[name]["validations"]["required"] for name in ("what", "doctor", "run"))
    assert "secrets" in fields[None]["attributes"]["value"]


def test_security_policy_names_every_port() -> None:
    """The table of SECURITY.md has each port that the stack publishes."""
    files = [file.read_text(encoding="utf-8") for file in (ROOT / "compose").glob("*.yml")]
    ports = set(re.findall(r"_PORT:-(\d+)\}", "".join(files)))
    lines = (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines()
    table = "".join(line for line in lines if line.startswith("|"))
    assert [port for port in ports if not re.search(rf"\b{port}\b", table)] == []
