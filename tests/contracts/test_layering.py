"""Imports point one way, as docs/design.md draws it. Nothing is imported here: the source is read."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CORE = ROOT / "planner_core"

# A room may import from rows below its own, and from its own row as long as no circle closes.
ROWS = (
    {"units", "errors", "shipped_files"},
    {"model_arch", "hardware", "parallelism", "workload"},
    {"strict_json", "json_fields", "csv_text", "preset_files", "spec_files", "file_kinds"}
    | {"run_spec_layout", "hf_config", "hardware_file", "collectives", "shards", "legal_degrees"},
    {"stage_latencies", "memory_layout"},
    {"run_spec", "serving_plan", "fit_limits", "auto_explore", "oracle", "measurements"},
    {"artifacts", "plan_artifacts", "reports", "figures"},
    {"cli", "__main__"},
)
ROW_OF = {room: row for row, rooms in enumerate(ROWS) for room in rooms}
APP_FOLDERS = ("ui", "pages")

# What a room may import beyond the standard library, numpy and planner_core.
THIRD_PARTY = {
    "auto_explore": {"moocore"},
    "serving_plan": {"moocore"},
    "hardware_file": {"pydantic"},
    "hf_config": {"pydantic"},
    "json_fields": {"pydantic", "pydantic_core"},
    "measurements": {"pydantic"},
    "run_spec": {"pydantic"},
    "oracle": {"torch", "transformers"},
    "figures": {"plotly", "kaleido", "choreographer"},
    "cli": {"typer", "click", "rich"},
}


@cache
def rooms() -> dict[str, tuple[Path, ...]]:
    """Every room of planner_core and its files: a module, or a package with all its modules."""
    found = {path.stem: (path,) for path in CORE.glob("*.py") if path.name != "__init__.py"}
    for folder in CORE.iterdir():
        if (folder / "__init__.py").exists():
            found[folder.name] = tuple(sorted(folder.rglob("*.py")))
    return found


def imported(path: Path) -> Iterator[str]:
    """Full dotted names of everything a file imports, relative imports resolved, at any depth of the file."""
    package = path.relative_to(ROOT).parent.parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module) if part)
            yield module
            yield from (f"{module}.{alias.name}" for alias in node.names)


def rooms_imported(room: str) -> set[str]:
    """The other rooms of planner_core that a room imports."""
    names = {name for path in rooms()[room] for name in imported(path) if name.startswith("planner_core.")}
    return ({name.split(".")[1] for name in names} & set(rooms())) - {room}


def test_every_room_has_a_row_and_a_line_in_the_design() -> None:
    design = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    without_row = sorted(set(rooms()) - set(ROW_OF))
    assert not without_row, f"give these a row in ROWS and a line in docs/design.md: {without_row}"
    undocumented = sorted(room for room in rooms() if room != "__main__" and f"| `{room}` |" not in design)
    assert not undocumented, f"docs/design.md has no line for {undocumented}"


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_imports_only_downwards(room: str) -> None:
    row = ROW_OF.get(room, 0)
    upwards = sorted(other for other in rooms_imported(room) if ROW_OF.get(other, row) > row)
    assert not upwards, f"planner_core.{room} imports {upwards}, which lie above it"


def test_no_circle_of_rooms() -> None:
    done: set[str] = set()

    def visit(room: str, path: tuple[str, ...]) -> None:
        assert room not in path, f"a circle: {' -> '.join((*path, room))}"
        if room not in done:
            for other in sorted(rooms_imported(room)):
                visit(other, (*path, room))
            done.add(room)

    for room in sorted(rooms()):
        visit(room, ())


@pytest.mark.parametrize("room", sorted(rooms()))
def test_a_room_imports_only_its_own_third_parties(room: str) -> None:
    tops = {name.partition(".")[0] for path in rooms()[room] for name in imported(path)}
    foreign = tops - set(sys.stdlib_module_names) - {"numpy", "planner_core"} - THIRD_PARTY.get(room, set())
    assert not foreign, f"planner_core.{room} imports {sorted(foreign)}"
    if room not in ("cli", "__main__"):
        assert "argparse" not in tops


@pytest.mark.parametrize("room", sorted(set(rooms()) - {"cli", "__main__"}))
def test_the_core_prints_nothing(room: str) -> None:
    for path in rooms()[room]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            called = node.func if isinstance(node, ast.Call) else None
            assert not (isinstance(called, ast.Name) and called.id == "print"), f"{path}:{node.lineno} prints"


def test_nothing_in_the_core_imports_the_app() -> None:
    for files in rooms().values():
        for path in files:
            tops = {name.partition(".")[0] for name in imported(path)}
            assert not tops & {"streamlit", "app", *APP_FOLDERS}, path


@pytest.mark.parametrize("folder", APP_FOLDERS)
def test_the_app_does_not_import_the_command_line(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.py"):
        assert not [name for name in imported(path) if name.startswith("planner_core.cli")], path
        if folder == "ui":
            assert not [name for name in imported(path) if name.partition(".")[0] == "pages"], path


HEAVY = ("pandas", "plotly", "kaleido", "streamlit", "torch", "transformers", "scipy")


def test_starting_the_command_line_loads_nothing_heavy() -> None:
    code = f"import sys, planner_core.cli; print(*[m for m in {HEAVY!r} if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.split()) == (0, []), done.stderr
