import importlib.metadata
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from spark_app import __main__ as program
from spark_app.errors import UsageError

ROOT = Path(__file__).resolve().parents[2]
# Stands in for a command that takes long and one that fails in a way nobody thought of.
SLOW = """
import sys, threading
from spark_app import __main__ as program
def etl() -> None:
    print("at work", flush=True)
    threading.Event().wait()
(command,) = (each for each in program.program.registered_commands if each.callback is program.etl)
command.callback = etl
sys.argv = ["spark-app", "etl"]
program.main()
"""


def spark_app(
    *arguments: str, start: tuple[str, ...] = ("-m", "spark_app"), folder: Path = ROOT
) -> tuple[int, str, str]:
    """The exit code, standard output and standard error of the program in a process of its own."""
    environment = {key: value for key, value in os.environ.items() if key not in {"GITHUB_ACTIONS", "FORCE_COLOR"}}
    done = subprocess.run(
        [sys.executable, *start, *arguments], capture_output=True, text=True, cwd=folder, env=environment, check=False
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("start", [("-m", "spark_app"), ("-m", "app"), ("app/__main__.py",), ("app",)])
def test_the_program_starts_in_each_way(start: tuple[str, ...]) -> None:
    """As a module, as the file of the project that spark-submit is given, and as its folder."""
    code, out, err = spark_app("--help", start=start)
    assert (code, err) == (0, "")
    assert "Usage: spark-app" in out


def test_started_as_a_file_its_modules_shadow_no_others(tmp_path: Path) -> None:
    """From any folder `spark_app` is found, and `tables`, `errors` and the like are not names of the top level."""
    code, out, _ = spark_app("-c", _probe(), start=(), folder=tmp_path)
    assert (code, out) == (0, "spark_app.errors None None\n")


def _probe() -> str:
    names = (
        "import spark_app.errors as errors, importlib.util as u; "
        "print(errors.__name__, u.find_spec('tables'), u.find_spec('jars'))"
    )
    package = ROOT / "src" / "spark_app"
    return (
        f"import sys, runpy; sys.path.insert(0, {str(package)!r}); "
        f"runpy.run_path({str(package / '__main__.py')!r}, run_name='probe'); {names}"
    )


def test_a_package_named_app_of_somebody_else_hinders_no_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With `PYTHONPATH=.`, in a project whose own package is `app`."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "__init__.py").write_text("raise ImportError('theirs')\n", encoding="utf-8")
    monkeypatch.setenv("PYTHONPATH", ".")
    assert spark_app("report", "--help", folder=tmp_path)[0] == 0
    assert spark_app("tables", "--help", folder=tmp_path)[0] == 0


def test_without_arguments_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    """A command line without a command gets the help."""
    assert program.run([]) == 0
    assert "Usage: spark-app" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["etl"], "--date"),
        (["etl", "--date", "2024-1-1"], "'2024-1-1'"),
        (["etl", "--date", "2024-02-30"], "2024-02-30"),
        (["etl", "--date", "2024-01-01", "--to", "2024-01-02"], "not both"),
        (["etl", "--from", "2024-01-02", "--to", "2024-01-01"], "after"),
        (["etl", "--date"], "--date"),
        (["data", "--date", "2024-01-01", "--rows", "0"], "--rows"),
        (["tables", "--vacuum", "--retain-days", "6"], "--retain-days"),
        (["tables", "--retain-days", "8"], "--vacuum"),
        (["show"], "TABLE"),
        (["show", "bronz"], "no table 'bronz'"),
        (["show", "bronze", "--version", "1", "--as-of", "2024-01-01"], "--version"),
        (["etl", "--date", "2024-01-01", "--config", "nowhere"], "nowhere/app.yml"),
        (["--mode", "ml", "score"], "--date"),
        (["ml", "rollback", "3"], "take a version"),
        (["ml", "evaluate", "3", "--date", "2024-01-01"], "evaluate takes a version, or the --date"),
        (["ml", "list", "--date", "2024-01-01"], "--date"),
        (["ml", "nonsense"], "nonsense"),
        (["streaming", "--for", "5"], "90s"),
        (["streaming", "no"], "no pipeline"),
        (["streaming", "--status"], "--status is a command now: spark-app streaming status"),
        (["streaming", "--reset=events"], "--reset is a command now: spark-app streaming reset NAME"),
        (["streaming", "events", "--from", "a:0:1"], "--from is a command now: spark-app streaming seek NAME"),
        (["--mode", "streaming", "--status"], "--status is a command now: spark-app streaming status"),
        (["streaming", "skip", "events"], "Missing argument 'RECORD'"),
        (["streaming", "run", "replay"], "no pipeline"),
        (["--mode", "x"], "'x'"),
        (["--mode"], "--mode"),
        (["--mode", "etl"], "--date"),
        (["nonsense"], "nonsense"),
        (["--nonsense"], "--nonsense"),
    ],
    ids=" ".join,
)
def test_wrong_usage_is_one_line_and_exit_code_2(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The line names the thing; there is no traceback."""
    assert program.run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith("error: ")
    assert named in err


@pytest.mark.parametrize(
    "arguments",
    [
        ["etl", "--json"],
        ["etl", "--date", "x", "--json"],
        ["etl", "--nonsense", "--json"],
        ["show", "bronz", "--json"],
        ["--mode", "ml", "score", "--json"],
        ["--mode=etl", "--json"],
        ["nonsense", "--json"],
    ],
    ids=" ".join,
)
def test_wrong_usage_is_json_if_that_was_asked_for(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """A script reads one document, whatever went wrong."""
    assert program.run(arguments) == 2
    ended = json.loads(capsys.readouterr().out)
    assert (ended["exit_code"], ended["error"]["type"]) == (2, "UsageError")


@pytest.mark.parametrize(
    "arguments",
    [
        ["observe", "--keep", "/proc/x", "--", "echo", "--json", "--debug"],
        ["observe", "--keep", "/proc/x", "echo", "--json", "--debug"],
        ["observe", "--nonsense", "echo", "--json", "--debug"],
        ["etl", "--", "--json", "--debug"],
        ["show", "bronze", "--where", "--json", "--version", "1", "--as-of", "2024-01-01"],
    ],
    ids=" ".join,
)
def test_words_that_are_no_options_of_ours_ask_for_nothing(
    arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """What belongs to another command, or is the value of an option, brings neither a document nor a traceback."""
    assert program.run(arguments) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)


@pytest.mark.parametrize("verb", sorted({*program.command_line().commands} - {"init"}))  # which reads no configuration
def test_every_command_shows_a_traceback_if_asked(
    verb: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`--debug` is taken by each, and by none for itself."""
    monkeypatch.setenv("SPARK_APP_CURRENCY", "x")
    words = {
        "show": ["bronze"],
        "compare": ["x"],
        "bridge": ["x"],
        "incident": ["skewed_join"],
        "observe": ["true"],
        "streaming reset": ["x"],
        "streaming seek": ["x", "--to", "t:0:1"],
        "streaming skip": ["x", "t:0:1"],
    }.get(verb, [])
    days = ["--date", "2024-01-01"] if verb in ("etl", "data") else []
    assert program.run([verb, "--debug", *days, *words]) == 2
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert "ConfigError" in err


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        (["--mode", "etl", "--date", "2024-01-01"], ["etl", "--date", "2024-01-01"]),
        (["--date", "2024-01-01", "--mode=etl", "--json"], ["etl", "--date", "2024-01-01", "--json"]),
        (["show", "bronze", "--where", "--mode", "--json"], ["show", "bronze", "--where", "--mode", "--json"]),
        (["--mode", "streaming", "status", "--json"], ["streaming status", "--json"]),
        (["--help"], ["--help"]),
    ],
)
def test_a_mode_is_a_verb_in_another_place(given: list[str], meant: list[str]) -> None:
    """`--mode etl` is `etl`; after a verb the word means nothing special."""
    assert program.spelled_out(given, {"streaming status"}) == meant


def test_the_help_of_streaming_names_its_further_commands(capsys: pytest.CaptureFixture[str]) -> None:
    """Who asks what `streaming` can do reads of `status`, `reset` and so on."""
    assert program.run(["streaming", "--help"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "Further commands: streaming run, streaming status, streaming reset, streaming seek" in out


def test_an_unknown_mode_names_those_there_are() -> None:
    """The line says what can be chosen."""
    with pytest.raises(UsageError, match=r"unknown --mode .batch.; use etl"):
        program.spelled_out(["--mode", "batch"])


def test_a_wrong_argument_is_told_before_anything_heavy_is_loaded() -> None:
    """Help and usage errors wait neither for Spark nor for the rows' maker."""
    script = "import sys; from spark_app import __main__ as p; p.run(['etl', '--date', 'x']); print(*sys.modules)"
    _, out, _ = spark_app("-c", script, start=())
    heavy = {
        "pyspark",
        "numpy",
        "pandas",
        "spark_app.settings",
        "spark_app.execution.run",
        "opentelemetry",
        "msgspec",
        "rich",
    }
    assert heavy & set(out.split()) == set()


def test_an_interruption_of_an_import_is_exit_code_130_too(tmp_path: Path) -> None:
    """Below `python -m`, too, where one in the `exec` of a text would end Python by SIGINT."""
    (tmp_path / "pyproject.toml").write_text('[tool.spark-app]\npackage = "shop"\n', encoding="utf-8")
    (tmp_path / "shop" / "etl").mkdir(parents=True)
    for package in ("shop", "shop/etl"):
        (tmp_path / package / "__init__.py").touch()
    (tmp_path / "shop" / "etl" / "orders.py").write_text('exec("raise KeyboardInterrupt")', encoding="utf-8")
    code, _, err = spark_app("graph", folder=tmp_path)
    assert (code, err.splitlines()[-1][:12]) == (130, "Interrupted.")


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_an_interruption_is_one_line_and_exit_code_130(sent: signal.Signals) -> None:
    """Ctrl-C, a polite end and the end of the terminal end the program with 130, without a traceback."""
    with subprocess.Popen(
        [sys.executable, "-c", SLOW], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=ROOT
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "at work\n"
        process.send_signal(sent)
        _, err = process.communicate()
    assert process.returncode == 130
    assert err == "Interrupted. Published tables are consistent; run the same command again.\n"


@pytest.mark.parametrize("arguments", [["--help"], ["data", "--date", "2024-01-01", "--rows", "1"]])
def test_an_answer_that_cannot_be_written_is_an_error(arguments: list[str], tmp_path: Path) -> None:
    """A full disk behind standard output is one line of error; nobody takes an empty file for the answer."""
    environment = os.environ | {"SPARK_APP_HOME": str(tmp_path)}
    start = [sys.executable, "-m", "spark_app", *arguments]
    with Path("/dev/full").open("w") as out:
        done = subprocess.run(
            start, stdout=out, stderr=subprocess.PIPE, text=True, cwd=ROOT, env=environment, check=False
        )
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "error: No space left on device"


@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-"])
def test_closed_streams_change_no_exit_code(closed: str) -> None:
    """Who starts it so does not listen; there is no traceback where it would."""
    for arguments, code in ("--help", 0), ("show nosuch --json", 2), ("doctor x --json", 2):
        command = f"{shlex.quote(sys.executable)} -m spark_app {arguments} {closed}"
        done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=ROOT, check=False)
        assert (done.returncode, "Traceback" in done.stderr) == (code, False), command


def test_a_working_folder_that_is_gone_is_told(tmp_path: Path) -> None:
    """It is no bug, and no command can do without."""
    command = f"rmdir {shlex.quote(str(tmp_path))} && {shlex.quote(sys.executable)} -m spark_app report x"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 2
    assert done.stderr == "error: the current folder was deleted: change to another folder\n"


@pytest.mark.parametrize(("raised", "code"), [(SystemExit(3), 3), (SystemExit(0), 0), (SystemExit("why"), 1)])
def test_a_command_that_ends_the_program_has_its_exit_code(
    monkeypatch: pytest.MonkeyPatch, raised: SystemExit, code: int
) -> None:
    """Nobody takes a failure for success."""

    def doctor() -> None:
        raise raised

    monkeypatch.setattr(program.program.registered_commands[-1], "callback", doctor)
    assert program.run(["doctor"]) == code


@pytest.mark.parametrize(("arguments", "code"), [(["--help"], 0), (["etl"], 2), (["etl", "--json", "--debug"], 2)])
def test_readers_that_went_away_are_no_error(arguments: list[str], code: int) -> None:
    """`spark-app ... 2>&1 | head` ends with the exit code of the work, whoever has stopped reading."""
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "w") as out:
        start = [sys.executable, "-m", "spark_app", *arguments]
        assert subprocess.run(start, stdout=out, stderr=out, cwd=ROOT, check=False).returncode == code
        ended = subprocess.run(start, stdout=out, stderr=subprocess.PIPE, text=True, cwd=ROOT, check=False)
    assert ended.returncode == code
    assert "BrokenPipe" not in ended.stderr


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    """Also before other options."""
    assert program.run(["--version"]) == 0
    assert capsys.readouterr().out == f"spark-app {importlib.metadata.version('spark-app')}\n"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("spark-app re", ["report", "resend"]), ("spark-app report --fail-on failed_a", ["failed_application"])],
)
def test_a_shell_completes_commands_and_conditions(
    typed: str, offered: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By the script that `--show-completion` prints."""
    for name, value in (("", "complete_bash"), ("COMP_WORDS", typed), ("COMP_CWORD", str(typed.count(" ")))):
        monkeypatch.setenv(name or "_SPARK_APP_COMPLETE", value)
    assert program.run([]) == 0
    assert capsys.readouterr().out.split() == offered
