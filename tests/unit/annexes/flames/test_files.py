from pathlib import Path

from spark_app.annexes.flames import files
from tests.unit.stack_samples.test_stack_profile import profiled


def test_each_part_has_its_files(tmp_path: Path) -> None:
    """The application, its stages, the driver, and what is of no known stage; or only those that are asked for."""
    assert files.write(profiled(), tmp_path / "out") == 5
    written = [f"{name}.collapsed" for name in ("application", "driver", "stage-3-0", "stage-4-0", "unknown")]
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == written
    files.write(profiled(), tmp_path / "one", [(4, 0), (99, 0)])
    assert sorted(path.name for path in (tmp_path / "one").glob("*.collapsed")) == [
        "application.collapsed",
        "stage-4-0.collapsed",
    ]
