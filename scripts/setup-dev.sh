#!/usr/bin/env bash
# Sets up what the program and its tests need: .venv, the Python packages, the jars of Delta and Kafka.
#
# Needs Python 3.11-3.13 and Java 17 or newer, and says so before it downloads anything (exit code 2). Run it as often as
# you like: it does nothing when nothing changed, and it repairs a set-up that was interrupted.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

readonly STAMP=.venv/set-up      # the inputs of the environment; written last
readonly UNFINISHED=.venv/unfinished
readonly LOG=.setup.log
readonly PYTHON=.venv/bin/python
unset PYTHONPATH PYTHONHOME      # they would put other packages before those of .venv
export PYTHONUNBUFFERED=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_INPUT=1

say() { printf 'set-up: %s\n' "$*" >&2; }

# Begins a step: says so, and writes it to the log.
step() {
    say "$1"
    write_log <<<"$1"
}

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
    [[ $words =~ version\ \"(1\.)?([0-9]+) ]] || stop "'$java -version' does not print a version: $ask."
    version=${BASH_REMATCH[2]}
    [ "$version" -ge 17 ] || stop "Java $version is too old for Spark 4.2: $ask."
    JAVA_FOUND=$version
}

# Whether a command is a Python that runs (a pyenv shim may not) and has a version that Spark supports.
is_python() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1
}

# Every Python on PATH, since a shim may come before a Python that runs.
pythons() {
    printf '%s\n' "$PYTHON"
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

# Everything that the environment is made from, its Python, and its folder: environments cannot be moved.
wanted() {
    cksum requirements.txt pyproject.toml scripts/setup-dev.sh config/spark/jars.ivy.xml config/spark/jars.sha256
    printf '%s\n' "$PWD"
    "$PYTHON" -c 'import sys; print(sys.version)' 2>/dev/null || echo "no Python that runs"
}

is_done() { is_python "$PYTHON" && [ -x .venv/bin/spark-app ] && [ -e "$STAMP" ] && [ "$(wanted)" = "$(<"$STAMP")" ]; }

# Runs a command with its output in the log; shows its large downloads, and the end of the log if it fails.
logged() {
    if ! "$@" 2>&1 | write_log; then
        tail -n 15 "$LOG" >&2
        say "failed; the whole log is in $LOG. Run the command again to continue."
        exit 1
    fi
}

# Adds each line to the log with the seconds since the start.
write_log() {
    local line
    while IFS= read -r line; do
        printf '[%3d s] %s\n' "$SECONDS" "$line" >>"$LOG"
        [[ $line =~ Downloading\ (.+\ \([0-9]{2,}\.[0-9]MiB\))$ ]] && say "  ${BASH_REMATCH[1]}"
    done
    return 0
}

# Lets one set-up run in this folder at a time. Without flock there is no lock that a killed process would release.
lock() {
    command -v flock >/dev/null || return 0
    exec 9>.setup.lock
    flock --nonblock 9 || { say "another set-up is running in this folder: waiting for it"; flock 9; }
}

# A package that a killed set-up was writing looks installed: delete the environment then. Downloads are cached.
make_environment() {
    if [ -e "$UNFINISHED" ] || ! is_python "$PYTHON"; then
        [ "$PYTHON_FOUND" != "$PYTHON" ] || { rm -rf .venv; require_python; }
        logged "$PYTHON_FOUND" -m venv --clear .venv
    fi
    rm -f "$STAMP"
    : >"$UNFINISHED"
    "$PYTHON" -m pip --version >/dev/null 2>&1 || logged "$PYTHON" -m ensurepip
}

# pip installs uv, which downloads and builds in parallel, and setuptools, which builds Spark: it is published as source.
install_installers() {
    local name
    for name in setuptools uv; do
        sed -n "/^$name==/,/[^\\\\]\$/p" requirements.txt
    done >.venv/installers.txt
    logged "$PYTHON" -m pip install --require-hashes -r .venv/installers.txt
    use_pip_configuration
}

# Gives uv the indexes, certificates and proxy of pip's configuration, which it does not read. Its own variables win.
use_pip_configuration() {
    local configuration section name value
    configuration=$("$PYTHON" -m pip config list)
    for section in :env: install global; do
        while IFS='=' read -r name value; do
            value=${value//\\n/ } value=${value#[\"\' ]} value=${value%[\"\']} value=${value# }
            case $name in
                "$section.index-url") export UV_DEFAULT_INDEX="${UV_DEFAULT_INDEX:-$value}" ;;
                "$section.extra-index-url") export UV_INDEX="${UV_INDEX:-$value}" ;;
                "$section.find-links") export UV_FIND_LINKS="${UV_FIND_LINKS:-${value// /,}}" ;;
                "$section.no-index") export UV_NO_INDEX="${UV_NO_INDEX:-$value}" ;;
                "$section.trusted-host") export UV_INSECURE_HOST="${UV_INSECURE_HOST:-$value}" ;;
                "$section.cert") export SSL_CERT_FILE="${SSL_CERT_FILE:-$value}" ;;
                "$section.client-cert") export SSL_CLIENT_CERT="${SSL_CLIENT_CERT:-$value}" ;;
                "$section.proxy") export HTTPS_PROXY="${HTTPS_PROXY:-$value}" HTTP_PROXY="${HTTP_PROXY:-$value}" ;;
            esac
        done <<<"$configuration"
    done
    # As pip: any index may have the file (its hash is checked), and the machine's certificates count.
    export UV_INDEX_STRATEGY=unsafe-best-match UV_SYSTEM_CERTS="${UV_SYSTEM_CERTS:-1}"
}

# Without compression the wheel of Spark is built in a third of the time; it consists of jars. Python compiles what it
# imports by itself, unless it must not write.
uv_install() {
    logged .venv/bin/uv pip install --no-config --python "$PYTHON" --no-build-isolation \
        ${PYTHONDONTWRITEBYTECODE:+--compile-bytecode} \
        --config-settings-package 'pyspark:--build-option=--compression=stored' "$@"
}

main() {
    require_java
    ! is_done || exit 0
    require_python
    lock
    ! is_done || exit 0
    : >"$LOG"
    step "Java $JAVA_FOUND, $("$PYTHON_FOUND" --version), environment in .venv (1/3)"
    make_environment
    step "Python packages: the first time 600 MB, most of it Spark (2/3)"
    install_installers
    # requirements.txt names every package: without resolving, all downloads start at once.
    uv_install --no-deps --require-hashes --requirement requirements.txt
    step "jars of Delta and Kafka (3/3)"
    local code=0
    uv_install --no-deps --editable . &
    PYTHONPATH=src "$PYTHON" -m spark_app.spark.jars >&2 || code=$?
    wait $! || code=1
    [ "$code" -eq 0 ] || exit "$code"
    rm -f "$UNFINISHED"
    wanted >"$STAMP"
    step "done in $SECONDS s"
}

main
