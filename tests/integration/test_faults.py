"""What goes wrong outside ends in an exit code and one line that names the thing; nothing is invented."""

import gzip
import re
from pathlib import Path

import pytest

from spark_app.commands.errors import Failure, failure
from spark_app.errors import SparkAppError
from spark_app.runs import run_record
from spark_app.settings import load_settings
from tests.integration.home import Home, customer, sale
from tests.integration.processes import ended, make_quick, without_java

PUBLISHED = ("customers", "transactions", "daily_sales")


def failure_of(home: Home) -> Failure:
    """How a run ends that cannot end well; always in one line."""
    with pytest.raises(SparkAppError) as raised:
        home.run()
    found = failure(raised.value)
    assert "\n" not in found.message
    assert "Traceback" not in found.message
    return found


def test_a_missing_day_is_named_and_nothing_is_invented(home: Home) -> None:
    """With a real source configured, a day that is not there ends in exit code 3 with its path."""
    found = failure_of(home)
    assert found.exit_code == 3
    assert str(home.day_folder("customers")) in found.message
    assert not (home.folder / "raw").exists()
    assert home.content() == []

    home.deliver("customers", [customer(1)])
    found = failure_of(home)
    assert found.exit_code == 3
    assert str(home.day_folder("transactions")) in found.message
    assert not home.day_folder("transactions").exists()
    assert home.content("bronze", "transactions", "daily_sales") == []


def test_a_missing_day_at_the_command_line(home: Home, tmp_path: Path) -> None:
    """The program itself says the same: one line of error and exit code 3."""
    make_quick(home)
    code, said = ended(home, stderr=tmp_path / "stderr")
    assert code == 3
    assert said.splitlines()[-1].startswith(f"error: no raw data at {home.day_folder('customers')}")
    assert said.count("error:") == 1
    assert "Traceback" not in said


def test_a_java_that_dies_in_mid_run_is_told(home: Home, tmp_path: Path) -> None:
    """Killed by the system, as for want of memory: exit code 2, one line with the log, a record of a failed run."""
    make_quick(home)
    home.deliver("customers", [customer(1)])
    code, said = without_java(home, "bronze_customers/_delta_log/*0.json", stderr=tmp_path / "stderr")
    assert code == 2, said
    [line] = [line for line in said.splitlines() if "error:" in line]
    assert line.startswith("error: Java ended in the middle of the work, killed or crashed: see the end of ")
    assert Path(line.rpartition(" ")[2]).is_file()
    assert "Traceback" not in said
    [record] = [run_record.read(folder) for folder in home.settings.runs_path.iterdir()]
    assert (record.outcome, record.error) == ("failed", line.replace("error:", "MachineError:"))


@pytest.mark.parametrize("source", ["customers", "transactions"])
def test_a_file_that_cannot_be_read_is_named(home: Home, source: str) -> None:
    """A compressed file that was cut off ends in exit code 3 with its name; nothing of it is published."""
    home.forgive()
    home.deliver("customers", [customer(1)])
    home.deliver("transactions", [sale(number) for number in range(1, 200)])
    whole = next((home.folder / "raw" / source).rglob("*.json"))
    cut = gzip.compress(whole.read_bytes() * 20)
    whole.with_name("cut.json.gz").write_bytes(cut[: len(cut) // 2])
    found = failure_of(home)
    assert found.exit_code == 3
    assert "cut.json.gz" in found.message
    assert home.content("transactions", "daily_sales") == []


def test_a_compressed_file_that_is_none_is_named(home: Home) -> None:
    """A CSV that is only called compressed ends in exit code 3 with its name."""
    home.reads("csv")
    home.deliver_text("customers", "customer_id,segment", name="junk.csv.gz")
    found = failure_of(home)
    assert found.exit_code == 3
    assert re.search(r"^cannot read \S*/junk\.csv\.gz: java\.io\.IOException: ", found.message)


def test_a_path_that_this_spark_cannot_read_is_told(home: Home) -> None:
    """A scheme without its jar is an error of configuration."""
    home.settings = home.settings.model_copy(update={"raw": home.settings.raw.model_copy(update={"path": "s4://b/r"})})
    found = failure_of(home)
    assert found.exit_code == 2
    assert re.search('^this Spark has no jar for such a path: \\S+: No FileSystem for scheme "s4"$', found.message)


@pytest.mark.parametrize("place", ["warehouse", "runs"])
def test_a_folder_that_cannot_be_made_is_named(home: Home, place: str) -> None:
    """A warehouse or a runs folder below a file ends in exit code 2 with the path."""
    home.deliver("customers", [customer(1)])
    home.deliver("transactions", [sale(1)])
    (home.folder / "file").write_text("in the way")
    home.settings = home.settings.model_copy(update={place: "file/below"})
    found = failure_of(home)
    assert found.exit_code == 2
    assert str(home.folder / "file") in found.message


def test_an_unknown_key_is_named_with_the_allowed_ones(home: Home) -> None:
    """A key that a pipeline does not know ends in exit code 2, with its file, its name and what is allowed."""
    home.deliver("customers", [customer(1)])
    home.deliver("transactions", [sale(1)])
    home.configure("etl.customers", colour="red")
    found = failure_of(home)
    assert found.exit_code == 2
    assert re.search(
        r"customers\.yml:\d+: unknown key 'colour'; allowed are checks, default_limit, limits", found.message
    )
    assert home.content() == []


def test_an_unknown_promise_is_named_with_the_allowed_ones(home: Home) -> None:
    """A limit of an expectation that there is not ends in exit code 2 and changes nothing."""
    home.deliver("customers", [customer(1)])
    home.deliver("transactions", [sale(1)])
    home.configure("etl.customers", limits={"segment.colour": 0.5})
    found = failure_of(home)
    assert found.exit_code == 2
    assert "customers.yml:7: limits: unknown expectation 'segment.colour'; do you mean segment." in found.message
    assert "? allowed are " in found.message
    assert "segment.allowed" in found.message
    assert home.content() == []


def test_an_unknown_setting_is_named_with_the_allowed_ones(home: Home) -> None:
    """The same holds of the settings of the whole program, at any depth."""
    path = home.settings.config / "app.yml"
    path.write_text(path.read_text(encoding="utf-8").replace("  customers: json", "  customers: json\n  colour: red"))
    with pytest.raises(SparkAppError, match=r"unknown key 'raw\.colour'; allowed are csv, formats, path"):
        load_settings(home.settings.config)
