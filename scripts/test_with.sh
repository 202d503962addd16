#!/usr/bin/env bash
# Run the tests in a throwaway environment with the oldest or the newest supported dependencies.
# Browser and oracle tests stay out: `make test` runs those, on the locked versions.
set -euo pipefail
cd "$(dirname "$0")/.."

case "${1:-}" in
    oldest) pip_args=(-c requirements-oldest.txt) ;;
    newest) pip_args=(--upgrade --upgrade-strategy eager) ;;
    *) echo "usage: scripts/test_with.sh oldest|newest" >&2; exit 2 ;;
esac

venv=$(mktemp -d)
trap 'rm -rf "$venv"' EXIT
scripts/make_venv.sh "$venv/v"
"$venv/v/bin/python" -m pip --disable-pip-version-check --quiet install "${pip_args[@]}" -e '.[app,dev]'
"$venv/v/bin/python" -m pip --disable-pip-version-check list |
    grep -iE '^(kaleido|moocore|numpy|pandas|plotly|pydantic|streamlit|typer) '
"$venv/v/bin/python" -m pytest -q -m "not slow and not browser and not oracle"
