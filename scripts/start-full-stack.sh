#!/usr/bin/env bash
# Checks this machine, starts the whole stack, waits until it is healthy, and prints where everything is.
#
#   scripts/start-full-stack.sh            run it again as often as you like; --help lists the options
#
# Needs Docker with Compose and any Python from 3.9 on; nothing of this project has to be installed.
set -euo pipefail
cd "${BASH_SOURCE[0]%/*}/.."

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "No Python 3.9 or newer found as python3: install one (on Debian and Ubuntu: apt-get install python3)." >&2
    exit 2
fi
exec python3 -B scripts/start_full_stack.py "$@"
