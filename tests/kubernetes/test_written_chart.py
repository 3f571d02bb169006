"""Helm and the cluster take the chart that `spark-app init --stack` writes into a project."""

import shutil
from pathlib import Path
from typing import Final

from spark_app.commands import stack
from spark_app.commands.init import write
from tests.kubernetes.cluster import ROOT, rendered, run

SETTINGS: Final = (
    "eventLogs.location=s3://events/logs", "pipelines.enabled=true", "pipelines.claim=shop",
    "pipelines.queries.enabled=true", "pipelines.training.enabled=true",
)  # fmt: skip


def test_the_pipelines_of_a_project_run_in_its_image(tmp_path: Path) -> None:
    """Each in the folder where the project is; everything else in the image of spark-app under the project's name."""
    carried = tmp_path / "carried"  # as in a wheel, which has files in the place of links
    shutil.copytree(ROOT / "charts", carried / "charts")
    shutil.copy(ROOT / ".env", carried)
    files = stack.contents("shop", "wheels/a.whl", carried=carried, config=ROOT / "config")
    write({name: text for name, text in files.items() if name.startswith("stack/charts/")}, tmp_path)
    chart = tmp_path / "stack" / "charts" / "spark-app"
    settings = [argument for value in SETTINGS for argument in ("--set", value)]
    manifests = tmp_path / "manifests.yaml"
    manifests.write_text(rendered("shop", *settings, chart=chart), encoding="utf-8")
    run("kubectl", "apply", "--dry-run=server", "--validate=strict", "-f", manifests)
    text = manifests.read_text(encoding="utf-8")
    assert text.count(f"image: {stack.image('shop')}-project\n") == text.count("workingDir: /project\n") == 3
    assert f"image: {stack.image('shop')}\n" in text
