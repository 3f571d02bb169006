"""Services without metrics of their own are asked whether they answer, and Prometheus reads what the probe writes."""

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from tests.polling import poll_until

ROOT: Final = Path(__file__).resolve().parents[2]
SCRIPT: Final = ROOT / "config" / "probe" / "probe.sh"
# The applets are those of the machine; nothing listens, and only one address answers.
BUSYBOX: Final = '#!/bin/sh\n[ "$1" = httpd ] || exec "$@"\n'
WGET: Final = '#!/bin/sh\ncase "$*" in *http://good*) exit 0;; esac\nexit 1\n'


def targets(file: str) -> dict[str, str]:
    """The services that the probe asks, by name, in a compose file."""
    content: Any = yaml.safe_load((ROOT / "compose" / file).read_text(encoding="utf-8"))
    pairs = content["services"]["otel-collector-ready"]["command"][2:]
    return dict(pair.split("=", maxsplit=1) for pair in pairs)


def test_every_service_without_metrics_is_asked() -> None:
    """In the full stack those of Spark as well; a name is that of the service, so that the runbook's commands work."""
    alone, full = targets("observability.yml"), targets("watch-spark-and-kafka.yml")
    assert set(alone) == {"elasticsearch", "kibana", "grafana"}
    assert set(full) == {*alone, "spark-history", "reports"}
    assert alone.items() <= full.items()
    assert [name for name, url in full.items() if not url.startswith(f"http://{name}:")] == []


def test_probe_says_who_answers(tmp_path: Path) -> None:
    """A gauge for each service, and when they were asked, in a file that is replaced as a whole."""
    for name, content in (("busybox", BUSYBOX), ("wget", WGET)):
        (tmp_path / name).write_text(content, encoding="utf-8")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "work").mkdir()
    variables = os.environ | {"PATH": f"{tmp_path}:{os.environ['PATH']}", "TMPDIR": str(tmp_path / "work")}
    with subprocess.Popen(["sh", str(SCRIPT), "a=http://good/x", "b=http://bad/x"], env=variables) as process:
        try:
            poll_until(lambda: bool(list(tmp_path.glob("work/*/metrics.txt"))), "the file")
        finally:
            process.kill()
    (file,) = tmp_path.glob("work/*/metrics.txt")
    lines = [line for line in file.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    assert lines[:2] == ['probe_success{target="a"} 1', 'probe_success{target="b"} 0']
    assert lines[2].startswith("probe_timestamp_seconds 1")
    assert [each.name for each in file.parent.glob("?.txt")] == ["a.txt"], "of who answers"


def test_other_programs_ask_and_serve_where_busybox_knows_no_tls(tmp_path: Path) -> None:
    """Beside an image that has no BusyBox at all."""
    serve = tmp_path / "serve"
    serve.write_text(f'#!/bin/sh\necho "$1 in $PWD" >{tmp_path / "served"}\n', encoding="utf-8")
    serve.chmod(0o755)
    tools = {name: shutil.which(name) for name in ("sh", "mktemp", "date", "mv", "rm", "sleep", "true")}
    (tmp_path / "bin").mkdir()
    for name, program in tools.items():
        (tmp_path / "bin" / name).symlink_to(str(program))
    variables = {"PATH": str(tmp_path / "bin"), "TMPDIR": str(tmp_path), "ASK": "true", "SERVE": f"{serve} 9115"}
    with subprocess.Popen(["/bin/sh", str(SCRIPT), "a=https://good/x"], env=variables) as process:
        try:
            poll_until(lambda: bool(list(tmp_path.glob("tmp*/metrics.txt"))), "the file")
            poll_until((tmp_path / "served").exists, "the server")
        finally:
            process.kill()
    (file,) = tmp_path.glob("tmp*/metrics.txt")
    assert 'probe_success{target="a"} 1' in file.read_text(encoding="utf-8")
    poll_until(lambda: (tmp_path / "served").read_text("utf-8") == f"9115 in {file.parent}\n", "its folder")
