#!/usr/bin/env bash
# See to it that a Chrome is there for the browser tests and for PNG figures. Never fails: without one
# the tests that need it say so.
set -uo pipefail
cd "$(dirname "$0")/.."

have_chrome() { .venv/bin/python -c 'from scripts.chrome import find_chrome; raise SystemExit(find_chrome() is None)'; }

have_chrome && exit 0

# On Ubuntu the package chromium is a stub for snap, of no use to a headless run.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null; then
    echo "Installing Chromium with apt-get ..."
    export DEBIAN_FRONTEND=noninteractive
    apt-get -qq update </dev/null &&
        apt-get -qq -y -o DPkg::Lock::Timeout=120 install --no-install-recommends chromium fonts-liberation \
            </dev/null >/dev/null
    have_chrome && exit 0
fi

echo "Fetching Playwright's own Chromium ..."
with_deps=()
if [ "$(id -u)" = 0 ]; then with_deps=(--with-deps); fi
timeout 300 .venv/bin/playwright install "${with_deps[@]}" chromium </dev/null >/dev/null 2>&1
have_chrome && exit 0

echo "No Chrome or Chromium was found. Install one (Debian: sudo apt install chromium) or set BROWSER_PATH to it."
exit 0
