"""Nothing from outside is unpickled, evaluated, imported by its name or handed to a shell: by the source."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SHIPPED = ("app.py", "ui", "pages", "planner_core")

# Modules that make objects or run code out of bytes or text.
MODULES = {
    "pickle", "_pickle", "cPickle", "dill", "cloudpickle", "joblib", "jsonpickle", "marshal", "shelve", "dbm",
    "yaml", "ruamel", "code", "codeop", "runpy", "xmlrpc", "ctypes", "multiprocessing",
}  # fmt: skip
BUILTINS = {"eval", "exec", "compile", "__import__", "breakpoint", "input"}
# Of any object, by name: torch.load, numpy.load, os.system and their kind.
METHODS = {
    "read_pickle", "to_pickle", "from_pretrained", "load_state_dict", "system", "popen", "unsafe_load",
    "full_load", "hub_load", "load_module",
}  # fmt: skip
LOADS = {"np", "numpy", "torch", "pd", "pandas", "joblib"}
OPTIONS = {"shell": True, "allow_pickle": True, "trust_remote_code": True, "unsafe_allow_html": True}
# These import a module whose name is a constant, or comes from a class of an installed library.
IMPORTERS = {"planner_core/oracle/from_transformers.py", "ui/oracle_worker.py"}


def sources() -> list[Path]:
    return [
        path
        for place in SHIPPED
        for path in ([ROOT / place] if place.endswith(".py") else sorted((ROOT / place).rglob("*.py")))
    ]


def forbidden(tree: ast.AST, *, may_import: bool = False) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            names = (
                [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            )
            yield from (f"line {node.lineno}: {name}" for name in names if name.partition(".")[0] in MODULES)
        if isinstance(node, ast.Name) and node.id in BUILTINS:
            yield f"line {node.lineno}: {node.id}"
        if isinstance(node, ast.Attribute):
            owner = node.value.id if isinstance(node.value, ast.Name) else ""
            loads = node.attr == "load" and owner in LOADS
            imports = node.attr in {"import_module", "exec_module"} and not may_import
            if node.attr in METHODS or loads or imports:
                yield f"line {node.lineno}: .{node.attr}"
        if isinstance(node, ast.keyword) and node.arg in OPTIONS:
            value = node.value
            if not (isinstance(value, ast.Constant) and value.value != OPTIONS[node.arg]):
                yield f"line {value.lineno}: {node.arg}"


@pytest.mark.parametrize("path", sources(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_is_evaluated(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    name = path.relative_to(ROOT).as_posix()
    assert list(forbidden(tree, may_import=name in IMPORTERS)) == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle", "from pickle import loads", "import multiprocessing.pool", "import yaml",
        "eval(text)", "run = exec", "compile(text, '', 'exec')", "__import__(name)",
        "importlib.import_module(name)", "torch.load(path)", "np.load(path)", "pd.read_pickle(path)",
        "os.system(text)", "AutoConfig.from_pretrained(x)", "subprocess.run(text, shell=True)",
        "subprocess.run(text, shell=flag)", "f(trust_remote_code=True)", "f(x, unsafe_allow_html=True)",
    ],
)  # fmt: skip
def test_the_search_finds(line: str) -> None:
    assert list(forbidden(ast.parse(line)))


def test_the_search_leaves_the_rest_alone() -> None:
    text = "import json, re\nre.compile('x')\nmodel.eval()\njson.load(file)\nf(shell=False)\nst.html(text)"
    assert list(forbidden(ast.parse(text))) == []
