"""The code of single columns: what the last step of a function computes, each column without looking at the others.

::

    return groups.agg(F.count(F.lit(1)).alias("orders"), F.sum("amount").alias("total"))

The columns `orders` and `total` are two codes, and the rest, which decides on the rows, is a third one. So a column
that is added, or computed otherwise, leaves the others as they were. Where this is not certain, there is only the rest.
"""

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from pyspark.sql.types import StructType

from spark_app.declarations import flat_code

GENERATORS: Final = frozenset(
    {
        "explode", "explode_outer", "inline", "inline_outer", "json_tuple", "posexplode", "posexplode_outer", "stack",
        "variant_explode", "variant_explode_outer",
    }
)  # fmt: skip
"""Functions of Spark that make several rows of one: a column with one decides on the rows of all."""
_LAST: Final = ("select", "agg")


@dataclass(frozen=True)
class Split:
    """The code of a function in parts.

    Attributes:
        rest: What decides on the rows, and on all columns that are not named.
        last: `select` or `agg`, if columns are arguments of it.
        layers: The codes of columns by their names: those of a layer may read what the layers before it have made.
    """

    rest: CodeType
    last: str
    layers: Sequence[Mapping[str, CodeType]]


def split(function: FunctionType, schema: StructType) -> Split | None:
    """The code of a function in parts; None where its last step is of another form.

    Args:
        function: The function.
        schema: The columns that are taken of what it returns.
    """
    code = function.__code__
    source = flat_code.source_file(code.co_filename)
    node = source.functions.get((code.co_name, code.co_firstlineno))
    if node is None or code not in source.flat or function.__closure__ is not None:
        return None
    whole = copy.deepcopy(node)
    whole.decorator_list = []
    holder = _last_step(whole)
    if holder is None or holder.value is None:
        return None
    holder.value = _without_selection(holder.value, function.__globals__, schema)
    assigned = _assignment(whole, holder.value.id) if isinstance(holder.value, ast.Name) else None
    layers, last, rest = _layers(assigned.value if assigned else holder.value)
    (assigned or holder).value = rest
    [code] = flat_code.nested(_compiled(ast.Module([whole], [])))
    return Split(code, last, [{name: _column(each) for name, each in layer.items()} for layer in layers])


def _last_step(node: flat_code.Function) -> ast.Return | None:
    """The only `return` of a function, if it has one, at its end."""
    returns = [each for each in ast.walk(node) if isinstance(each, ast.Return)]
    end = node.body[-1]
    return end if isinstance(end, ast.Return) and len(returns) == 1 else None


def _without_selection(value: ast.expr, scope: Mapping[str, Any], schema: StructType) -> ast.expr:
    """What a selection of the declared columns is made of: they are selected anyway."""
    match value:
        case ast.Call(
            func=ast.Attribute(value=inner, attr="select"),
            args=[ast.Starred(value=ast.Attribute(value=named, attr="names"))],
            keywords=[],
        ):
            found = _resolved(named, scope)
            if isinstance(found, StructType) and found.names == schema.names:
                return inner
    return value


def _resolved(node: ast.expr, scope: Mapping[str, Any]) -> object:
    if isinstance(node, ast.Name):
        return scope.get(node.id)
    owner = _resolved(node.value, scope) if isinstance(node, ast.Attribute) else None
    return (
        getattr(owner, node.attr, None) if isinstance(node, ast.Attribute) and isinstance(owner, ModuleType) else None
    )


def _assignment(node: flat_code.Function, name: str) -> ast.Assign | None:
    """The statement that gives a variable its only value, where the variable is used once."""
    uses = [each for each in ast.walk(node) if isinstance(each, ast.Name) and each.id == name]
    named = [each for each in ast.walk(node) if isinstance(each, ast.arg) and each.arg == name]
    found = [
        each
        for each in node.body
        if isinstance(each, ast.Assign) and [name] == [one.id for one in each.targets if isinstance(one, ast.Name)]
    ]
    return found[0] if len(uses) == 2 and len(found) == 1 and not named and len(found[0].targets) == 1 else None


def _layers(value: ast.expr) -> tuple[list[dict[str, ast.expr]], str, ast.expr]:
    """The columns of the last steps, the innermost first; the innermost step, and what it is made of."""
    layers = list[dict[str, ast.expr]]()
    while isinstance(value, ast.Call) and isinstance(value.func, ast.Attribute) and not value.keywords:
        if value.func.attr in _LAST:
            named, others = _of_arguments(value.args)
            rest = ast.Call(value.func, others, [])
            return [named, *layers[::-1]], value.func.attr, ast.copy_location(rest, value)
        added = _added(value)
        if added is None:
            break
        layers.append(added)
        value = value.func.value
    return layers[::-1], "", value


def _of_arguments(arguments: Sequence[ast.expr]) -> tuple[dict[str, ast.expr], list[ast.expr]]:
    named, others = dict[str, ast.expr](), list[ast.expr]()
    for each in arguments:
        match each:
            case ast.Constant(value=str() as name) if name.isidentifier():
                key = name
            case ast.Call(func=ast.Attribute(attr="alias"), args=[ast.Constant(value=str() as name)], keywords=[]):
                key = name
            case _:
                key = ""
        if key and key not in named:
            named[key] = each
        else:
            others.append(each)
    return named, others


def _added(call: ast.Call) -> dict[str, ast.expr] | None:
    """The columns that `withColumn` or `withColumns` add; None of anything else."""
    match call:
        case ast.Call(func=ast.Attribute(attr="withColumn"), args=[ast.Constant(value=str() as name), expression]):
            return {name: expression}
        case ast.Call(func=ast.Attribute(attr="withColumns"), args=[ast.Dict(keys=keys, values=values)]):
            names = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            return dict(zip(names, values, strict=True)) if len({*names}) == len(keys) else None
    return None


def _column(expression: ast.expr) -> CodeType:
    nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
    column = ast.Expr(ast.Lambda(nothing, expression))
    [code] = flat_code.nested(_compiled(ast.Module([column], [])))
    return code


def _compiled(tree: ast.Module) -> CodeType:
    return compile(ast.fix_missing_locations(tree), "<column>", "exec", dont_inherit=True)
