#!/usr/bin/env bash
# Make the virtual environment $1 with a Python of 3.11 or newer; an existing sound one is kept.
# PYTHON=/path/to/python3.12 chooses the interpreter.
set -euo pipefail
venv=$1

new_enough='import sys; sys.exit(sys.version_info < (3, 11))'

if [ -x "$venv/bin/python" ] && "$venv/bin/python" -c "$new_enough; import pip" 2>/dev/null; then
    exit 0
fi

is_root_with_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; }

apt_install() {
    echo "Installing $* with apt-get ..."
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update </dev/null
    apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends "$@" </dev/null >/dev/null
}

find_python() {
    local candidate
    for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if "$candidate" -c "$new_enough" 2>/dev/null; then
            command -v "$candidate"
            return
        fi
    done
    return 1
}

if ! python=$(find_python) && is_root_with_apt; then
    apt_install python3 python3-venv
fi
if ! python=$(find_python); then
    echo "Python 3.11 or newer is needed and was not found. Install it, or name it: make PYTHON=/path/to/python3.12" >&2
    exit 1
fi

# Debian ships venv apart from Python; without it `python -m venv` leaves a broken folder behind.
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    package=$("$python" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])')
    if is_root_with_apt; then
        apt_install "$package"
    else
        echo "Python's venv module is missing. Install it and try again: sudo apt install $package" >&2
        exit 1
    fi
fi

echo "Making $venv with $("$python" --version) ..."
rm -rf "$venv"
"$python" -m venv "$venv"
