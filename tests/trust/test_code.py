"""Nothing in a file can run: the sources hold no way for it to."""

import ast
from pathlib import Path

import pytest

import embits

SOURCES = sorted(Path(embits.__file__).parent.rglob("*.py"))

FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "execfile", "breakpoint"}
FORBIDDEN_MODULES = {
    "pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "code",
    "runpy", "yaml", "imp",
}  # fmt: skip
FORBIDDEN_METHODS = {"extract", "extractall", "read_pickle", "to_pickle", "system", "popen"}
# Imports by a name that is computed: each looks the name up in a table of ours first.
DYNAMIC_IMPORTS = {
    "_lazy.py": ["import_module(home)"],
    "cli/__init__.py": ["importlib.import_module(f'embits.cli.{SHARED.get(cmd_name, cmd_name)}')"],
    "integrations/__init__.py": [
        "importlib.import_module(f'{__name__}.{module}')",
        "importlib.import_module(name)",  # of `package`, whose callers are checked as well
    ],
}


def name_of(call):
    function = call.func
    return function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")


def offences(tree, where):
    for node in ast.walk(tree):
        line = getattr(node, "lineno", 0)
        if isinstance(node, ast.Import):
            modules = [alias.name.split(".")[0] for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [(node.module or "").split(".")[0]]
        else:
            modules = []
        yield from (f"{where}:{line} imports {m}" for m in modules if m in FORBIDDEN_MODULES)
        if not isinstance(node, ast.Call):
            continue
        name = name_of(node)
        plain = isinstance(node.func, ast.Name)
        settings = {keyword.arg: keyword.value for keyword in node.keywords}
        if (plain and name in FORBIDDEN_CALLS) or (not plain and name in FORBIDDEN_METHODS):
            yield f"{where}:{line} calls {name}"
        computed = not all(isinstance(argument, ast.Constant) for argument in node.args[:1])
        allowed_here = ast.unparse(node) in DYNAMIC_IMPORTS.get(where, ())
        if name in ("import_module", "package") and computed and not allowed_here:
            yield f"{where}:{line} imports by a computed name"
        if name == "load" and isinstance(node.func, ast.Attribute):
            of = getattr(node.func.value, "id", "")
            allowed = settings.get("allow_pickle")
            if of in ("np", "numpy") and not (
                isinstance(allowed, ast.Constant) and allowed.value is False
            ):
                yield f"{where}:{line} calls np.load without allow_pickle=False"
        if name in ("run", "Popen", "call", "check_call", "check_output") and "shell" in settings:
            yield f"{where}:{line} calls a shell"


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.name)
def test_no_source_can_run_what_it_reads(path):
    where = path.relative_to(Path(embits.__file__).parent).as_posix()
    assert list(offences(ast.parse(path.read_text()), where)) == []


@pytest.mark.parametrize(
    "source",
    [
        "import pickle", "from joblib import load", "eval(x)", "exec(x)", "np.load(x)",
        "np.load(x, allow_pickle=True)", "np.load(x, allow_pickle=flag)", "archive.extractall(x)",
        "importlib.import_module(x)", "package(x, 'a', 'b')", "__import__(x)",
        "os.system(x)", "run(x, shell=True)",
    ],
)  # fmt: skip
def test_the_check_itself_finds_what_it_looks_for(source):
    assert list(offences(ast.parse(source), "x.py"))


def test_computed_imports_look_the_name_up_in_a_table():
    """A verb on the command line, or a lazy name of the package; anything else is refused."""
    from embits.cli import embits as cli

    assert cli.get_command(None, "os") is None
    assert cli.get_command(None, "common") is None
    with pytest.raises(AttributeError):
        embits.os  # noqa: B018


def test_a_pickle_by_any_name_is_refused(tmp_path):
    import pickle

    class Evil:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "ran",))

    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        for name in ("x.safetensors", "x.npy", "x.bin", "x.vec"):
            (tmp_path / name).write_bytes(pickle.dumps([Evil()], protocol))
            with pytest.raises(embits.FormatError):
                embits.load(tmp_path / name)
            with pytest.raises(embits.ReadError):
                embits.read_vectors(tmp_path / name)
    assert not (tmp_path / "ran").exists()
