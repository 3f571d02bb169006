#!/usr/bin/env bash
# Sets up everything that the program and its tests need: .venv, the Python packages, the jars, the class-data archive.
#
# Needs Python 3.11-3.13 and Java 17 or newer, and says so before it downloads anything (exit code 2). Run it as often as
# you like: when nothing changed it does nothing, and what was interrupted is repaired.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

readonly STAMP=.venv/set-up      # what the environment was made from; written last
readonly UNFINISHED=.venv/unfinished
readonly LOG=.setup.log
unset PYTHONPATH PYTHONHOME      # they would put packages of others before ours
export PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf 'set-up: %s\n' "$*" >&2; }

stop() {
    printf '%s\n' "$*" >&2
    exit 2
}

# The major version of the Java that Spark will start; 8 for "1.8.0_402".
require_java() {
    local java="${JAVA_HOME:+$JAVA_HOME/bin/}java" words version
    local ask="install a Java 17 or 21 runtime (on Debian and Ubuntu: apt-get install openjdk-17-jre-headless)"
    if ! words=$("$java" -version 2>&1); then
        [ -z "${JAVA_HOME:-}" ] || stop "No Java runs at JAVA_HOME=$JAVA_HOME: correct or unset JAVA_HOME, or $ask."
        stop "No Java found: $ask."
    fi
    [[ $words =~ version\ \"(1\.)?([0-9]+) ]] || stop "'$java -version' does not tell a version: $ask."
    version=${BASH_REMATCH[2]}
    [ "$version" -ge 17 ] || stop "Java $version is too old for Spark 4.2: $ask."
    JAVA_FOUND=$version
}

# Whether a command is a Python that runs (a pyenv shim may not), fits, and can make environments.
is_python() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

# Looks at every place on PATH, since a shim may stand in front of a Python that works.
pythons() {
    printf '%s\n' .venv/bin/python
    local name
    for name in python3.13 python3.12 python3.11 python3 python; do
        type -aP "$name" || true
    done
}

require_python() {
    local candidate without_venv=
    while IFS= read -r candidate; do
        is_python "$candidate" || continue
        if "$candidate" -c 'import ensurepip, ssl, venv' >/dev/null 2>&1; then
            PYTHON_FOUND=$candidate
            return
        fi
        without_venv=$candidate
    done < <(pythons)
    [ -z "$without_venv" ] || stop "$without_venv cannot make environments: install its venv module (on Debian and Ubuntu: apt-get install python3-venv)."
    stop "No Python 3.11, 3.12 or 3.13 found: install one (on Debian and Ubuntu: apt-get install python3 python3-venv)."
}

# Everything that the environment is made from, its Python, and where it is: environments cannot be moved.
wanted() {
    cksum requirements.txt pyproject.toml scripts/setup-dev.sh config/spark/jars.ivy.xml config/spark/jars.sha256
    printf '%s\n' "$PWD"
    .venv/bin/python -c 'import sys; print(sys.version)' 2>/dev/null || echo "no Python that runs"
}

is_done() { is_python .venv/bin/python && [ -x .venv/bin/spark-app ] && [ -e "$STAMP" ] && [ "$(wanted)" = "$(<"$STAMP")" ]; }

# Runs a command with its output in the log; shows its large downloads, and the end of the log if it fails.
logged() {
    if ! "$@" 2>&1 | tee -a "$LOG" | large_downloads; then
        tail -n 15 "$LOG" >&2
        say "failed; the whole story is in $LOG. Run it again to go on from here."
        exit 1
    fi
}

large_downloads() {
    local line
    while IFS= read -r line; do
        [[ $line =~ Downloading\ ([A-Za-z_]+-[0-9.]*[0-9]).*\ (\([0-9][0-9]+(\.[0-9]+)?\ MB\)) ]] || continue
        say "  ${BASH_REMATCH[1]} ${BASH_REMATCH[2]}"
    done
}

# One at a time in this folder. Where there is no flock, nothing else is at hand that a killed set-up would let go of.
lock() {
    command -v flock >/dev/null || return 0
    exec 9>.setup.lock
    flock --nonblock 9 || { say "another set-up is at work here: waiting for it"; flock 9; }
}

# A package that was being written when set-up was killed looks installed: start anew then, from pip's cache.
make_environment() {
    if [ -e "$UNFINISHED" ] || ! is_python .venv/bin/python; then
        [ "$PYTHON_FOUND" != .venv/bin/python ] || { rm -rf .venv; require_python; }
        logged "$PYTHON_FOUND" -m venv --clear .venv
    fi
    rm -f "$STAMP"
    : >"$UNFINISHED"
    .venv/bin/python -m pip --version >/dev/null 2>&1 || logged .venv/bin/python -m ensurepip
}

# Spark comes as source, which is built by the setuptools that requirements.txt names, not by one fetched unseen.
install_packages() {
    local pip=(.venv/bin/python -m pip install)
    sed -n '/^setuptools==/,/[^\\]$/p' requirements.txt >.venv/backend.txt
    logged "${pip[@]}" --require-hashes -r .venv/backend.txt
    logged "${pip[@]}" --require-hashes --no-build-isolation -r requirements.txt
    logged "${pip[@]}" --no-deps --no-build-isolation --editable .
    rm -f "$UNFINISHED"
}

main() {
    require_java
    ! is_done || exit 0
    require_python
    lock
    ! is_done || exit 0
    : >"$LOG"
    say "Java $JAVA_FOUND, $("$PYTHON_FOUND" --version), environment in .venv (1/3)"
    make_environment
    say "Python packages, 600 MB to download the first time (2/3)"
    install_packages
    say "jars of Delta and Kafka, class-data archive (3/3)"
    .venv/bin/python -m app.jars >&2
    wanted >"$STAMP"
    say "done in $SECONDS s"
}

main
