"""What the start script says of a machine on which it cannot run; tests/stack runs it with Docker."""

import importlib
import shutil
import subprocess
import sys
from collections import namedtuple
from pathlib import Path
from types import ModuleType
from typing import Final

import pytest

from tests.polling import patience

ROOT: Final = Path(__file__).resolve().parents[2]
SCRIPT: Final = ROOT / "scripts" / "start-full-stack.sh"
INFO: Final = {"ServerVersion": "20.10.24+dfsg1", "MemTotal": 16 * 10**9}
SMALL: Final = INFO | {"MemTotal": 4 * 10**9}


@pytest.fixture
def preflight(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of the script that looks at the machine."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    return importlib.import_module("preflight")


def run(folder: Path, *options: str, tools: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    """The script on a machine that has only these programs."""
    (folder / "bin").mkdir()
    for tool in tools:
        found = (
            Path(sys.executable).resolve() if tool == "python3" else shutil.which(tool)
        )  # no shim of a version manager
        (folder / "bin" / tool).symlink_to(found or pytest.fail(f"this machine has no {tool}"))
    return subprocess.run(
        [SCRIPT, *options],
        env={"PATH": str(folder / "bin")},
        capture_output=True,
        text=True,
        check=False,
        timeout=patience(60),
    )


def test_a_machine_without_docker_or_python_gets_one_line(tmp_path: Path) -> None:
    """It says what to install."""
    (tmp_path / "other").mkdir()
    no_docker = run(tmp_path, tools=("env", "bash", "python3"))
    assert (no_docker.returncode, no_docker.stdout) == (2, "")
    assert no_docker.stderr == "No Docker found: install Docker Engine and its Compose plugin.\n"
    no_python = run(tmp_path / "other", tools=("env", "bash"))
    assert (no_python.returncode, no_python.stdout, no_python.stderr.count("\n")) == (2, "", 1)
    assert no_python.stderr.startswith("No Python 3.9 or newer found as python3: install one")


def test_help_lists_every_option_without_docker(tmp_path: Path) -> None:
    """Nobody needs a working Docker to read it."""
    done = run(tmp_path, "--help", tools=("env", "bash", "python3"))
    options = ("--without", "--build", "--force", "--generate-passwords", "--no-sample", "--seconds")
    assert (done.returncode, [name for name in options if name not in done.stdout]) == (0, [])


def test_two_files_are_refused(tmp_path: Path) -> None:
    """The last one would win in silence: a stack that was to have TLS would have none."""
    files = ("--file", "docker-compose.tls.yml", "--file", "docker-compose.ha.yml")
    done = run(tmp_path, *files, tools=("env", "bash", "python3"))
    assert done.returncode == 2
    assert "--file can be given once: each file has the whole stack. docker-compose.ha-tls.yml has" in done.stderr


def test_links_are_https_where_the_stack_has_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """A service says so in its environment; others may have none."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("start_full_stack")
    assert not script.has_tls({"grafana": {"environment": {"STACK_SCHEME": "http"}}, "kafka": {"environment": None}})
    assert script.has_tls({"kafka": {}, "spark-master": {"environment": {"STACK_SCHEME": "https"}}})


def test_the_first_line_is_the_address_of_the_first_page(monkeypatch: pytest.MonkeyPatch) -> None:
    """At the port that `.env.local` sets; a stack without the page prints none."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts"))
    script = importlib.import_module("start_full_stack")
    services = {"reports": {"ports": [{"target": 8088, "published": "9000"}]}}
    assert list(script.first_page(services)) == ["everything is on one page: http://localhost:9000", ""]
    assert list(script.first_page({"kafka": {}})) == []
    assert not script.start_sample({"kafka": {}})


def test_a_version_that_is_too_old_is_named(preflight: ModuleType) -> None:
    """With the one that is needed; a suffix is none."""
    for least, version in ((preflight.ENGINE, "20.10.24+dfsg1"), (preflight.COMPOSE, "v2.24.0"), ((2, 24), "5.2.0")):
        preflight.require_version(least, version, program="It")
    with pytest.raises(
        preflight.StartError, match=r"^The Docker engine 19\.03\.8 is too old: 20\.10 or newer is needed\.$"
    ):
        preflight.require_version(preflight.ENGINE, "19.03.8", program="The Docker engine")
    with pytest.raises(preflight.StartError, match=r"^Docker Compose 2\.23\.3 is too old: 2\.24 or newer is needed\.$"):
        preflight.require_version(preflight.COMPOSE, "2.23.3", program="Docker Compose")


def test_a_shortage_stops_a_first_start_only(
    preflight: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stack that is up already has its memory, and --force knows better."""
    start = importlib.import_module("start_full_stack")
    monkeypatch.setattr(preflight, "DISK", 0)
    monkeypatch.setattr(preflight, "MAX_MAP_COUNT", 0)
    none_up = preflight.Ports({}, [{"Labels": "com.docker.compose.project=other"}], "spark-app")
    up = none_up._replace(containers=[{"Labels": "a=b,com.docker.compose.project=spark-app"}])
    start.check(INFO, none_up, is_forced=False)
    short = "Docker has 4.0 GB of memory; the stack needs 8 GB."
    with pytest.raises(preflight.StartError) as raised:
        start.check(SMALL, none_up, is_forced=False)
    assert str(raised.value) == f"{short} (--force starts it anyway)"
    start.check(SMALL, none_up, is_forced=True)
    start.check(SMALL, up, is_forced=False)
    assert capsys.readouterr().err == 2 * f"warning: {short}\n"


def test_disk_and_map_count_are_checked(preflight: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Disk space is that of Docker's folder, or of the project where Docker has a virtual machine."""
    usage = namedtuple("usage", "free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(3 * 10**9 if path == tmp_path else 10**12))
    short = [f"3.0 GB are free in {tmp_path}; the stack needs 10 GB for images and data."]
    assert list(preflight.shortages(INFO | {"DockerRootDir": str(tmp_path)}, ROOT)) == short
    assert list(preflight.shortages(INFO | {"DockerRootDir": "/no/such/folder"}, tmp_path)) == short
    assert list(preflight.shortages(INFO | {"DockerRootDir": str(ROOT)}, tmp_path)) == []
    monkeypatch.setattr(preflight, "MAX_MAP_COUNT_FILE", tmp_path / "max_map_count")
    warnings = []
    for count in ("65530\n", "262144\n", ""):
        (tmp_path / "max_map_count").write_text(count, encoding="ascii")
        warnings.append(list(preflight.map_count_warnings()))
    assert [len(lines) for lines in warnings] == [1, 0, 0]
    assert "sudo sysctl -w vm.max_map_count=262144" in warnings[0][0]
