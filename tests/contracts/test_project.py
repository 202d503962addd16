"""The files around the code agree with each other and keep the promises of the README."""

import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

import planner_core
from planner_core.shipped_files import shipped_root
from scripts.licences import locked

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
STREAMLIT = tomllib.loads((ROOT / ".streamlit" / "config.toml").read_text(encoding="utf-8"))


def text_of(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def pins(name: str) -> dict[str, Version]:
    """The direct `package==version` pins of a requirements file."""
    found = re.findall(r"^([\w.-]+)==([^\s#]+)", text_of(name), flags=re.M)
    return {package: Version(version) for package, version in found}


def ranges() -> dict[str, Requirement]:
    """Every dependency of pyproject.toml, extras included, by name."""
    extras = PROJECT["optional-dependencies"].values()
    texts = [*PROJECT["dependencies"], *(text for extra in extras for text in extra)]
    return {r.name: r for r in map(Requirement, texts) if r.name != PROJECT["name"]}


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_and_hashes_every_package(lock: str) -> None:
    logical_lines = text_of(lock).replace("\\\n", " ").splitlines()
    entries = [line for line in logical_lines if line and not line.lstrip().startswith("#")]
    assert entries
    for entry in entries:
        assert re.match(r"[a-z0-9._-]+==\S+ .*--hash=sha256:[0-9a-f]{64}", entry), entry


@pytest.mark.parametrize("name", [*LOCKS, *sorted(path.name for path in ROOT.glob("requirements*.txt"))])
def test_requirements_name_no_host_and_no_local_path(name: str) -> None:
    place = re.compile(r"://|file:/|--(extra-)?index|--find-links|--trusted-host|@ |(^|\s)/")
    for number, line in enumerate(text_of(name).splitlines(), start=1):
        assert not place.search(line), number


def test_the_locks_hold_the_pins() -> None:
    for direct, lock in (("requirements.txt", LOCKS[0]), ("requirements-dev.txt", LOCKS[1])):
        found = locked(ROOT / lock)
        for package, version in pins(direct).items():
            assert found.get(package.lower()) == str(version), f"{package}: run `make lock`"


def test_the_locks_agree_where_both_pin() -> None:
    runtime, dev = (locked(ROOT / lock) for lock in LOCKS)
    assert {package: dev[package] for package in runtime} == runtime


def test_the_app_needs_no_torch() -> None:
    assert not {"torch", "transformers"} & set(locked(ROOT / LOCKS[0]))


def test_pyproject_admits_what_is_pinned_and_the_oldest_are_its_lower_bounds() -> None:
    declared = ranges()
    pinned = {**pins("requirements.txt"), **pins("requirements-dev.txt"), **pins("requirements-torch.txt")}
    for package, requirement in declared.items():
        assert requirement.specifier.contains(pinned[package]), requirement
    for package, version in pins("requirements-oldest.txt").items():
        lower = [Version(s.version) for s in declared[package].specifier if s.operator == ">="]
        assert lower == [version], package


def test_the_licence_list_covers_the_locks() -> None:
    listed = dict(re.findall(r"^\| ([\w.-]+) \| (\S+) \|", text_of("docs/licences.md"), flags=re.M))
    listed.pop("package")
    assert listed == {**locked(ROOT / LOCKS[0]), **locked(ROOT / LOCKS[1])}, "run `make licences`"


def test_version_and_changelog_agree() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert re.search(r"^## (\S+)", text_of("CHANGELOG.md"), flags=re.M)[1] == planner_core.__version__


def test_presets_and_app_are_where_the_package_says() -> None:
    assert (shipped_root() / "presets" / "hardware").is_dir()
    assert (shipped_root() / "app.py").is_file()


def test_every_make_target_says_what_it_does() -> None:
    makefile = text_of("Makefile")
    targets = re.findall(r"^\.PHONY: (\S+)$", makefile, flags=re.M)
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert targets
    for target in targets:
        assert re.search(rf"^  make {target} +\S", shown, flags=re.M), target


def test_ci_runs_the_command_of_the_readme() -> None:
    script = ROOT / ".ci" / "run"
    commands = [line for line in script.read_text(encoding="utf-8").splitlines() if line and line[0] != "#"]
    assert commands == ["set -euo pipefail", 'cd "$(dirname "$0")/.."', "make test"]
    assert os.access(script, os.X_OK)
    assert "    make test\n" in text_of("README.md")


def test_streamlit_is_served_safely_by_default() -> None:
    server = STREAMLIT["server"]
    assert server["address"] == "localhost"
    assert server["enableXsrfProtection"] is True
    assert server["enableCORS"] is True
    assert server["allowedHosts"] == ["localhost", "127.0.0.1", "::1"]
    assert server["maxUploadSize"] == 1
    assert server["fileWatcherType"] == "none"
    assert server["enableStaticServing"] is False
    assert STREAMLIT["browser"]["gatherUsageStats"] is False
    assert STREAMLIT["client"]["showErrorDetails"] == "none"
    assert STREAMLIT["runner"]["postScriptGC"] is False


def test_streamlit_knows_every_option_of_the_config() -> None:
    from streamlit import config

    def leaves(table: dict, prefix: str = "") -> list[str]:
        return [
            leaf
            for key, value in table.items()
            for leaf in (leaves(value, f"{prefix}{key}.") if isinstance(value, dict) else [f"{prefix}{key}"])
        ]

    unknown = [name for name in leaves(STREAMLIT) if name not in config._config_options_template]
    assert not unknown


def test_no_page_lies_directly_in_pages() -> None:
    # Streamlit would serve such a file by itself, without app.py around it.
    assert not list((ROOT / "pages").glob("*.py"))


def luminance(colour: str) -> float:
    """Relative luminance of #rrggbb (WCAG 2.2)."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    """Contrast ratio of two colours (WCAG 2.2), 1 to 21."""
    dark, light = sorted((luminance(a), luminance(b)))
    return (light + 0.05) / (dark + 0.05)


def test_contrast_of_black_on_white_is_21() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)  # the usual near miss


@pytest.mark.parametrize("name", ["light", "dark"])
def test_theme_meets_wcag_aa(name: str) -> None:
    theme = STREAMLIT["theme"][name]
    for background in (theme["backgroundColor"], theme["secondaryBackgroundColor"]):
        assert contrast(theme["textColor"], background) >= 4.5
        assert contrast(theme["linkColor"], background) >= 4.5
        assert contrast(theme["primaryColor"], background) >= 3
    chart_colours = theme["chartCategoricalColors"]
    assert len(set(chart_colours)) == len(chart_colours) >= 10
    for colour in chart_colours:
        assert contrast(colour, theme["backgroundColor"]) >= 3, colour
