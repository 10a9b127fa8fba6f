"""Dependencies point one way: what `make lint` cannot see of it."""

import ast
import subprocess
import sys
import warnings
from pathlib import Path

import embits
from embits import errors

SOURCES = Path(embits.__file__).parent
# Steps further on: what stands before them may import them when called, and not before.
LATER = ("embits.evaluation", "embits.integrations", "embits.page", "embits.cli")


def top_level_imports(path):
    """(module, name) of what a source imports when it is itself imported."""
    nodes = list(ast.parse(path.read_text()).body)
    while nodes:
        node = nodes.pop()
        if isinstance(node, ast.ImportFrom):
            yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            nodes += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]


def test_steps_further_on_are_imported_only_when_called():
    for path in SOURCES.rglob("*.py"):
        place = "embits." + ".".join(path.relative_to(SOURCES).with_suffix("").parts)
        if place.startswith((*LATER, "embits.__main__")):
            continue
        for module, _ in top_level_imports(path):
            assert not str(module).startswith(LATER), f"{place} imports {module}"


def test_only_modules_are_taken_from_the_package_itself():
    modules = {path.stem for path in SOURCES.iterdir()} | {"_core"}
    for path in SOURCES.rglob("*.py"):
        for module, name in top_level_imports(path):
            assert module != "embits" or name in modules, f"{path}: from embits import {name}"


# All of these modules needs the package: classes that it has the base of, for example.
WRAPPED = {
    "pgvector": "psycopg", "langchain": "langchain_core", "llama_index": "llama_index",
}  # fmt: skip


def test_extras_are_imported_when_called_or_behind_a_module_that_is():
    allowed = set(sys.stdlib_module_names) | {"embits", "numpy", "click"}
    for path in SOURCES.rglob("*.py"):
        if path.stem.startswith("_") and not path.stem.startswith("__"):
            continue  # a private module, there to be imported late
        if path.parent.name == "ray":
            continue  # all of it is behind Ray, which brings pyarrow
        for module, _ in top_level_imports(path):
            outside = str(module).split(".")[0]
            wraps = WRAPPED.get(path.stem) == outside
            assert outside in allowed or wraps, f"{path} imports {outside} when it is imported"
            assert outside != "click" or "cli" in path.parts, f"{path} imports click"


def test_verbs_of_the_command_line_do_not_import_each_other():
    folder = SOURCES / "cli"
    verbs = {path.stem for path in folder.glob("*.py") if "@click.command" in path.read_text()}
    assert "binarize" in verbs
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and str(node.module).startswith("embits.cli"):
                taken = {str(node.module).rpartition(".")[2], *(each.name for each in node.names)}
                assert not taken & verbs, f"{path.stem} imports {taken & verbs}"


def test_the_parts_of_the_package_are_reachable_without_a_separate_import():
    code = "import embits; embits.evaluation.Evaluator, embits.integrations.export, embits.search"
    heavy = "import sys, embits; assert not {'click', 'rich', 'pyarrow'} & set(sys.modules)"
    for each in (code, heavy):
        subprocess.run([sys.executable, "-c", each], check=True)


def test_every_error_and_warning_is_reachable_from_the_root():
    for name, value in vars(errors).items():
        if isinstance(value, type) and issubclass(value, Exception):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                assert getattr(embits, name) is value
