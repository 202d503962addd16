"""Print, as Markdown, the name, version and licence of everything the lock files pin.

Licences are read from the installed packages' own metadata.
"""

import re
import sys
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

HEADER = """# Licences of the dependencies

Written by `make licences` from the metadata of the installed packages. The planner itself is under the
[Apache License 2.0](../LICENSE).

moocore is under the LGPL (2.1 or later): the planner imports it unchanged, as a separately installed package
that anyone may replace. torch is installed apart from the lock files, and only for the oracle; its licence is
BSD-3-Clause. text-unidecode, which only the tests need, may be had under the Artistic License or the GPL.
axe-playwright-python, for the tests as well, carries axe-core, which is under the MPL 2.0.
"""


def locked(path: Path) -> dict[str, str]:
    """Return the version of each package that a lock file pins."""
    return dict(re.findall(r"^([a-z0-9._-]+)==(\S+)", path.read_text(encoding="utf-8"), flags=re.M))


def licence_of(name: str) -> str:
    """Return the licence a package declares: SPDX expression, short text, classifiers or file title."""
    about = metadata.metadata(name)
    expression = about.get("License-Expression")
    if expression:
        return expression
    classifiers = [
        classifier.rpartition(" :: ")[2]
        for classifier in about.get_all("Classifier") or []
        if classifier.startswith("License ::")
    ]
    text = (about.get("License") or "").strip()
    if text and "\n" not in text and len(text) < 60:
        return text
    return ", ".join(classifiers) or title_of_licence_file(name) or "not declared"


def title_of_licence_file(name: str) -> str:
    """Return the first line of a package's own licence file, or nothing where it ships none."""
    for path in metadata.files(name) or []:
        if path.name.upper().startswith(("LICENSE", "LICENCE")):
            lines = path.read_text(encoding="utf-8").splitlines()
            return next((line.strip(" #") for line in lines if line.strip()), "")
    return ""


def table(packages: dict[str, str]) -> str:
    """Return a Markdown table, a row a package."""
    rows = [f"| {name} | {version} | {licence_of(name)} |" for name, version in sorted(packages.items())]
    return "\n".join(["| package | version | licence |", "|---|---|---|", *rows])


def main() -> int:
    """Print the whole page."""
    runtime = locked(ROOT / "requirements.lock")
    dev = {name: v for name, v in locked(ROOT / "requirements-dev.lock").items() if name not in runtime}
    print(HEADER)
    print(f"## What the planner and its app run on\n\n{table(runtime)}\n")
    print(f"## What only tests and the oracle need\n\n{table(dev)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
