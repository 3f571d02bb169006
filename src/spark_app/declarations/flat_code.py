"""The code of functions without what does not matter: lines, comments, formatting, annotations, names of variables.

What Python runs is compared, and not the text: bytecode, of a copy of the file whose statements all stand in the first
line of their function, since Python optimizes what stands in one line otherwise than what stands in several.
"""

import ast
import dis
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Final, NamedTuple

Function = ast.FunctionDef | ast.AsyncFunctionDef
_SKIPPED: Final = frozenset({"NOP", "EXTENDED_ARG", "CACHE"})
_JUMPS: Final = frozenset({*dis.hasjrel, *dis.hasjabs})
_NAMES: Final = frozenset({*dis.hasname, *dis.hasfree})


class Step(NamedTuple):
    """An instruction: what it does, and of what; of a jump, to which step, of a local variable, its number."""

    name: str
    value: object


@dataclass(frozen=True)
class SourceFile:
    """A file of code.

    Attributes:
        code: Its code, flat; None where it cannot be read.
        flat: By each code in it, as Python has compiled it, the same flat.
        functions: Its functions, flat, by their names and first lines, that of the first decorator if they have one.
        lines: The lines of the names of these functions.
    """

    code: CodeType | None = None
    flat: dict[CodeType, CodeType] = field(default_factory=dict)
    functions: dict[tuple[str, int], Function] = field(default_factory=dict)
    lines: dict[tuple[str, int], int] = field(default_factory=dict)

    def line(self, code: CodeType) -> int:
        """The line of the name of a function."""
        return self.lines.get((code.co_name, code.co_firstlineno), code.co_firstlineno)


def source_file(name: str) -> SourceFile:
    """A file of code, as it is now."""
    try:
        stat = Path(name).stat()
        return _read(name, stat.st_mtime_ns, stat.st_size)
    except (OSError, ValueError, SyntaxError, RecursionError):
        return SourceFile()


@cache
def _read(name: str, modified: int, size: int) -> SourceFile:
    tree = ast.parse(_text(name, modified, size))
    compiled = compile(tree, name, "exec", dont_inherit=True)
    functions = {(each.name, _first_line(each)): each for each in ast.walk(tree) if isinstance(each, Function)}
    lines = {key: each.lineno for key, each in functions.items()}
    code = compile(flat(tree), name, "exec", dont_inherit=True)
    return SourceFile(code, dict(_pairs(compiled, code)), functions, lines)


def text_of(name: str) -> str:
    """The text of a file of code, as it is now; empty where it cannot be read."""
    try:
        stat = Path(name).stat()
        return _text(name, stat.st_mtime_ns, stat.st_size)
    except (OSError, ValueError):
        return ""


@cache
def _text(name: str, _modified: int, _size: int) -> str:
    return Path(name).read_text(encoding="utf-8")


def of_function(code: CodeType) -> CodeType:
    """The flat code of a function; where its file says something else by now, the code that Python has."""
    return source_file(code.co_filename).flat.get(code, code)


def flat(tree: ast.Module) -> ast.Module:
    """Moves each statement to the first line of its function, and removes annotations and the text about the module."""
    if tree.body and isinstance(tree.body[0], ast.Expr) and isinstance(tree.body[0].value, ast.Constant):
        tree.body[0].value.value = ""
    _flatten(tree, 1)
    return tree


def _flatten(node: ast.AST, line: int) -> None:
    for child in ast.iter_child_nodes(node):
        own = line
        if isinstance(child, Function | ast.ClassDef):
            own = _first_line(child)
        elif isinstance(child, ast.Lambda):
            own = child.lineno
        if isinstance(child, Function):
            child.returns = None
        if isinstance(child, ast.arg):
            child.annotation = None
        if hasattr(child, "lineno"):
            vars(child).update(lineno=own, end_lineno=own, col_offset=0, end_col_offset=0)
        _flatten(child, own)


def _first_line(node: Function | ast.ClassDef) -> int:
    return min([node.lineno, *(each.lineno for each in node.decorator_list)])


def _pairs(code: CodeType, same: CodeType) -> Iterator[tuple[CodeType, CodeType]]:
    """The codes in two forms of a code, each with its counterpart."""
    for one, other in zip(nested(code), nested(same), strict=False):
        if one.co_name == other.co_name:
            yield one, other
            yield from _pairs(one, other)


def nested(code: CodeType) -> list[CodeType]:
    """The codes of the functions in a code."""
    return [each for each in code.co_consts if isinstance(each, CodeType) and each.co_name != "__annotate__"]


def names(code: CodeType) -> set[str]:
    """The names of what a code and the functions in it use that is not their own."""
    return {*code.co_names}.union(*map(names, nested(code)))


def steps(code: CodeType) -> list[Step]:
    """The instructions of a code; two codes with the same steps, and of the same names, do the same."""
    found = list(dis.get_instructions(code))
    places, kept = dict[int, int](), list[dis.Instruction]()
    for each in found:
        places[each.offset] = len(kept)
        if each.opname not in _SKIPPED:
            kept.append(each)
    handlers = [Step("HANDLER", tuple(places.get(each, -1) for each in entry)) for entry in _handlers(code)]
    return [Step(each.opname, _value(each, places)) for each in kept] + handlers


def _handlers(code: CodeType) -> Iterator[tuple[int, int, int]]:
    for each in dis.Bytecode(code).exception_entries:  # type: ignore[attr-defined] # it is there since Python 3.11
        yield each.start, each.end, each.target


def _value(step: dis.Instruction, places: dict[int, int]) -> object:
    if step.opcode in dis.hasconst or step.opcode in _NAMES:
        return step.argval
    if step.opcode in _JUMPS:
        return places.get(step.argval, step.argval)
    return step.arg
