"""What tests of pages of annexes share with those of the report."""

from tests.unit.report.conftest import reading, run_folder

__all__ = ["reading", "run_folder"]
