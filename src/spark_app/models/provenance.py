"""What determines a model: the commit of the program, its code, and a fingerprint of all of it."""

import ast
import hashlib
import importlib
import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache
from typing import Any, Final

from spark_app.settings import IS_INSTALLED, PROJECT

GIT_SECONDS: Final = 5


def git_commit() -> str | None:
    """The commit that is checked out; None outside of a clone and without git.

    An installed wheel may lie in the clone of another project, whose commit says nothing about it.
    """
    if IS_INSTALLED:
        return None
    command = ["git", "-C", str(PROJECT), "rev-parse", "HEAD"]
    with suppress(OSError, subprocess.SubprocessError):
        done = subprocess.run(command, capture_output=True, text=True, timeout=GIT_SECONDS, check=True)
        return done.stdout.strip() or None
    return None


def fingerprint(**parts: Any) -> str:
    """The same text for the same parts, whatever the order of their keys."""
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def code(*functions: Callable[..., Any]) -> str:
    """The code of functions and of all that they use in their own package and in `spark_app`, without comments.

    Layout and docstrings do not count either, and tables that are declared count by their rows. Read from the source,
    so that no version of Python matters.

    Args:
        functions: Functions of modules; of one that is defined within another, the other one's code is meant.
    """
    packages = {"spark_app", *(function.__module__.partition(".")[0] for function in functions)}
    found: dict[tuple[str, str], str] = {}
    left = [(function.__module__, function.__qualname__.partition(".")[0]) for function in functions]
    while left:
        definition = left.pop()
        node = _definitions(definition[0]).get(definition[1])
        if node is not None and definition not in found and not _is_table(*definition):
            found[definition] = ast.unparse(node)
            left += [used for used in _uses(definition[0], node) if used[0].partition(".")[0] in packages]
    return "\n".join(found[definition] for definition in sorted(found))


def _is_table(module: str, name: str) -> bool:
    return hasattr(getattr(sys.modules.get(module), name, None), "partition_by")


def _uses(module: str, node: ast.AST) -> Iterator[tuple[str, str]]:
    """The modules and names of what a piece of code may refer to."""
    imported = _imports(module)
    for each in ast.walk(node):
        if isinstance(each, ast.Name):
            yield imported.get(each.id, (module, each.id))
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name) and each.value.id in imported:
            yield ".".join(imported[each.value.id]), each.attr


def _tree(module: str) -> ast.Module:
    """The source of a module without docstrings; empty if there is no such module."""
    try:
        return _parsed(inspect.getsource(importlib.import_module(module)))
    except (ImportError, OSError):
        return _parsed("")


@cache
def _parsed(source: str) -> ast.Module:
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            node.body = [each for each in node.body if not _is_text(each)] or [ast.Pass()]
    return tree


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _definitions(module: str) -> dict[str, ast.stmt]:
    """The functions, classes and constants of a module, by name."""
    found = dict[str, ast.stmt]()
    for node in _tree(module).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            found[node.name] = node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {each.id: node for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)}
    return found


def _imports(module: str) -> dict[str, tuple[str, str]]:
    """By the name that a module gives it, the module and the name of what it imports."""
    found = dict[str, tuple[str, str]]()
    for node in ast.walk(_tree(module)):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {each.asname or each.name: (node.module, each.name) for each in node.names}
        elif isinstance(node, ast.Import):
            found |= {each.asname: (each.name, "") for each in node.names if each.asname}
    return found
