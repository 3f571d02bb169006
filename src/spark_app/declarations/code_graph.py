"""What functions of a project say, and what they reach: other functions, classes and values of the project.

Values are those that the modules have once they are imported, so that a value of the environment, or one that another
module has replaced, is seen as well. What is installed counts by its version. Of what cannot be told, more is taken
rather than less: a module that is handed on as a value counts whole, and code that imports by a name, or evaluates a
text, reaches all modules.
"""

import builtins
import datetime
import decimal
import enum
import functools
import json
import logging
import re
import sys
import types
import typing
import uuid
import weakref
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from fractions import Fraction
from functools import cached_property
from importlib import import_module
from importlib.util import resolve_name
from pathlib import Path, PurePath
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final

from pydantic import SecretStr
from pyspark.sql.types import DataType, StructField

import spark_app
from spark_app.declarations import flat_code
from spark_app.declarations.code_nodes import Label, Node, Reach, digest_of
from spark_app.declarations.own_code import assigned, file_of, is_own
from spark_app.engine.code_location import CodeLocation
from spark_app.redaction import is_secret
from spark_app.settings import Settings

SECRET_DIGITS: Final = 4
"""So many of the digest of a secret."""
DYNAMIC: Final = frozenset(
    {"__import__", "compile", "eval", "exec", "globals", "import_module", "locals", "modules", "run_path", "vars"}
)
"""Names in code that may reach whatever there is."""
SHARED: Final = frozenset(
    {
        "createGlobalTempView", "createOrReplaceGlobalTempView", "createOrReplaceTempView", "createTempView",
        "register", "registerFunction", "registerJavaFunction", "registerJavaUDAF", "registerTempTable",
    }
)  # fmt: skip
"""Names in functions that give a session something which other functions find by a name in a text."""
REPLACED: Final = re.compile(r"^(?:[A-Za-z_]\w*(?:\.\w+)+\s*(?::[^=\n]+)?=(?!=)|setattr\()", re.MULTILINE)
"""A module that sets an attribute of something else while it is imported."""
_SCALARS: Final = (
    bool, int, float, complex, bytes, bytearray, range, slice, type(Ellipsis), type(NotImplemented),
    decimal.Decimal, Fraction, datetime.date, datetime.time, datetime.timedelta, datetime.tzinfo, uuid.UUID,
)  # fmt: skip
_NO_CONTENT: Final = (
    logging.Logger, logging.LoggerAdapter, SecretStr, CodeLocation, weakref.ref, weakref.WeakKeyDictionary,
    weakref.WeakValueDictionary,
)  # fmt: skip
_GENERIC: Final = ("typing", "types", "_typing", "annotationlib")
_OF_CLASSES: Final = frozenset(
    {
        "__abstractmethods__", "__dict__", "__doc__", "__firstlineno__", "__module__", "__qualname__",
        "__static_attributes__", "__weakref__", "_abc_impl",
    }
)  # fmt: skip
"""What every class has."""
_PLACES: Final = frozenset({"declared", "location"})
"""Attributes of declarations with where they stand."""
_CHAIN: Final = ("LOAD_ATTR", "LOAD_METHOD")
_FLAGS: Final = 0x2FF
"""The flags of a code that say how it is called and what it returns."""
_MISSING: Final = object()


class CodeGraph:
    """The functions, classes and values of a project; each is looked at once."""

    def __init__(self, folder: Path, package: Path) -> None:
        """Looks at nothing yet.

        Args:
            folder: The folder of the project.
            package: The folder of its package.
        """
        self._folder, self._package = folder, package
        self._nodes: dict[Hashable, Node] = {}
        self._pending: list[Callable[[], None]] = []
        self._kept: list[object] = []

    def of_function(self, function: Callable[..., Any], *, is_alone: bool = False) -> Reach:
        """A function, and what it reaches; what all functions of a session share is part of it, unless it is alone."""
        say = self._root if is_alone else self._with_shared
        return self._reach(self._node(("root", id(function), is_alone), function, say))

    def of_value(self, label: Label, value: object) -> Reach:
        """A value, and what it reaches."""
        return self._reach(self._node(("value", id(value)), value, lambda node, _: self._value(node, value), label))

    def of_code(self, code: CodeType, function: FunctionType, *, is_whole: bool = False) -> Reach:
        """Flat code that is evaluated where a function is, and what it reaches; or stands for the whole function."""

        def say(node: Node, _: object) -> None:
            self._code(node, code, function.__globals__)
            if is_whole:
                self._bound(node, function)
                for key in self._shared:
                    node.reach(key)

        label = _label(function, self.module_of)
        return self._reach(self._node(("code", id(code)), (code, function), say, label))

    def _reach(self, root: Hashable) -> Reach:
        while self._pending:
            self._pending.pop()()
        numbers, order, said = {root: 0}, [root], list[object]()
        for key in order:
            for each in self._nodes[key].reaches:
                if each not in numbers:
                    numbers[each] = len(order)
                    order.append(each)
            said += [self._nodes[key].digest, *(numbers[each] for each in self._nodes[key].reaches)]
        return Reach(digest_of(*said), [self._nodes[key] for key in order])

    def _node(
        self, key: Hashable, of: object, say: Callable[[Node, Any], None], label: Label | None = None
    ) -> Hashable:
        """The key of a node, which is made when it is asked for first."""
        if key not in self._nodes:
            self._kept.append(of)
            node = self._nodes[key] = Node(label or ("", ""))

            def make() -> None:
                say(node, of)
                node.seal()

            self._pending.append(make)
        return key

    def _root(self, node: Node, function: Any) -> None:
        if isinstance(function, FunctionType) and is_own(function.__code__.co_filename):
            node.label = _label(function, self.module_of)
            self._function(node, function)
        else:
            self._value(node, function)

    def _with_shared(self, node: Node, function: Any) -> None:
        self._root(node, function)
        for key in self._shared:
            node.reach(key)

    def _function(self, node: Node, function: FunctionType) -> None:
        node.file, node.line = _place(function)
        node.add("function", function.__name__)
        self._code(node, flat_code.of_function(function.__code__), function.__globals__)
        self._bound(node, function)

    def _bound(self, node: Node, function: FunctionType) -> None:
        """What a function has beside its code: default values, what it has closed over, and attributes."""
        self._value(node, function.__defaults__)
        self._value(node, function.__kwdefaults__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            node.add("closure", name)
            with suppress(ValueError):  # nothing is in it yet
                self._named(node, name, cell.cell_contents)
        self._value(node, {key: value for key, value in vars(function).items() if key != "__doc__"})

    def _class(self, node: Node, kind: type) -> None:
        node.add("class", kind.__name__)
        for base in (*kind.__bases__, type(kind)):
            self._value(node, base)
        for name, value in sorted(vars(kind).items()):
            if name == "__annotations__":
                node.add(name, *(f"{key}: {_annotation(each)}" for key, each in value.items()))
            elif name not in _OF_CLASSES and (not name.startswith("__pydantic") or name == "__pydantic_fields__"):
                node.add(name)
                node.name(name)
                node.defined.add(name)
                self._named(node, name, value)

    def _module(self, node: Node, module: ModuleType) -> None:
        node.add("module")
        source = flat_code.source_file(file_of(module))
        if source.code is not None:
            self._code(node, source.code, {})
        for name, value in sorted(vars(module).items()):
            if not (name.startswith("__") and name.endswith("__")):
                node.add(name)
                self._global(node, vars(module), name, value)

    def _all_modules(self, node: Node, _: object) -> None:
        for file in sorted(self._package.rglob("*.py")):
            node.add(file.relative_to(self._package), file.read_bytes())

    def _code(self, node: Node, code: CodeType, scope: Mapping[str, Any]) -> None:
        """Adds code; names of the project are followed, and what they are called does not count."""
        steps, position = flat_code.steps(code), 0
        node.add(code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _FLAGS)
        node.add(*code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
        while position < len(steps):
            name, value = steps[position]
            position += 1
            if name in ("LOAD_GLOBAL", "LOAD_NAME"):
                chain = _attributes(steps, position)
                position += self._name(node, str(value), chain, scope)
            elif isinstance(value, CodeType):
                node.add(name, value.co_name)
                self._code(node, value, scope)
            else:
                self._step(node, name, value, is_count=position > 1 and steps[position - 2].value == "count")
                if name == "IMPORT_NAME":
                    self._import(node, str(value), steps[position - 3].value, steps[position - 2].value, scope)
        if not DYNAMIC.isdisjoint(code.co_names):
            node.reach(self._node(("all",), None, self._all_modules, (self._package.name, "*")))

    def _step(self, node: Node, name: str, value: object, *, is_count: bool) -> None:
        node.add(name, repr(sorted(map(repr, value)) if isinstance(value, frozenset) else value))
        for text in value if isinstance(value, tuple | frozenset) else (value,):
            if isinstance(text, str) and not (is_count and text == "*"):  # which counts rows, of whatever columns
                node.name(text)
        if name in _CHAIN or name == "LOAD_SUPER_ATTR":
            node.attributes.add(str(value))
        if name == "STORE_ATTR":
            node.defined.add(str(value))

    def _import(self, node: Node, name: str, level: object, wanted: object, scope: Mapping[str, Any]) -> None:
        """What a function imports when it runs; of what cannot be imported now, all modules count."""
        full = "." * int(str(level)) + name
        try:
            full = resolve_name(full, str(scope.get("__package__") or scope.get("__name__")))
            if full.partition(".")[0] in sys.stdlib_module_names:
                return
            module = import_module(full)
            values = {each: _member(module, each) for each in wanted or ()}  # type: ignore[attr-defined]
        except Exception:  # noqa: BLE001 - what a module raises, the run will say
            module, values = None, {}
        if module is not None and not is_own(file_of(module)):
            _foreign(node, full)
        elif not values:
            node.reach(self._node(("all",), None, self._all_modules, (self._package.name, "*")))
        for each, value in values.items():
            if module is not None and is_own(file_of(module)):
                self._global(node, vars(module), each, value)

    def _name(self, node: Node, name: str, chain: Sequence[str], scope: Mapping[str, Any]) -> int:
        """Adds what a global name, and the attributes that follow it, stand for; returns how many of these it took."""
        node.name(name)
        if name not in scope:
            node.add("builtin" if hasattr(builtins, name) else "local", name)
            return 0
        value, taken, owner = scope[name], 0, scope
        while taken < len(chain) and self._is_open(value) and hasattr(value, chain[taken]):
            owner, name = vars(value), chain[taken]
            value = getattr(value, name)
            node.name(name)
            taken += 1
        self._global(node, owner, name, value)
        return taken

    def _is_open(self, value: object) -> bool:
        """Whether its attributes are known before a run, one by one."""
        return isinstance(value, Settings) or (isinstance(value, ModuleType) and is_own(file_of(value)))

    def _global(self, node: Node, scope: Mapping[str, Any], name: str, value: object) -> None:
        """A global value: of what is not a function, a class or a module, the name is kept for messages."""
        is_named = isinstance(value, FunctionType | type | ModuleType | types.BuiltinFunctionType)
        if is_named or _declared(value) is not None:
            self._value(node, value)
            return
        module, place = self._definition(scope, name, value)
        label, file = (module, name), file_of(sys.modules.get(module))

        def say(inner: Node, _: object) -> None:
            inner.file, inner.line = file, place
            self._named(inner, name, value)

        node.reach(self._node(("global", module, name, id(value)), value, say, label))

    def _definition(self, scope: Mapping[str, Any], name: str, value: object) -> tuple[str, int]:
        """The module that assigns a global value, and the line."""
        here = str(scope.get("__name__", ""))
        for module in [here, *self._own]:
            known = vars(sys.modules[module]) if module in sys.modules else {}
            if known.get(name, _MISSING) is value and (line := assigned(file_of(sys.modules.get(module)), name)):
                return module, line
        return here, 0

    @cached_property
    def _shared(self) -> list[Hashable]:
        """The functions that give a session what others find by name, and modules that replace what is elsewhere's."""
        found = list[Hashable]()
        for name in self._own:
            module = sys.modules[name]
            text = flat_code.text_of(file_of(module))
            if REPLACED.search(text):
                found.append(self._node(("module", name), module, self._module, (name, "*")))
            elif any(f".{each}(" in text for each in SHARED):
                found += self._sharing(module)
        return found

    @cached_property
    def _own(self) -> list[str]:
        """The modules of the project that are loaded, and those beside it that these use."""
        root = ".".join(self._package.relative_to(self._folder).parts)
        found = {name for name in sys.modules if name == root or name.startswith(f"{root}.")}
        pending = list(found)
        while pending:
            used = {each for each in _modules_in(sys.modules[pending.pop()]) if each not in found}
            found |= used
            pending += used
        return sorted(name for name in found if is_own(file_of(sys.modules[name])))

    def _sharing(self, module: ModuleType) -> Iterator[Hashable]:
        for value in list(vars(module).values()):
            found = _declared(value) or value
            if isinstance(found, FunctionType) and found.__module__ == module.__name__:
                if not SHARED.isdisjoint(flat_code.names(found.__code__)):
                    yield self._node(id(found), found, self._function, _label(found, self.module_of))
            elif isinstance(found, type) and found.__module__ == module.__name__:
                yield self._node(id(found), found, self._class, (found.__module__, found.__qualname__))

    def _value(self, node: Node, value: Any) -> None:
        """Adds a value, whatever it is."""
        if not (
            self._plain(node, value)
            or self._container(node, value)
            or self._callable(node, value)
            or self._of_library(node, value)
        ):
            self._object(node, value)

    def _named(self, node: Node, name: str, value: Any) -> None:
        """Adds a value with a name; of a secret, so little that nobody can tell it, or confirm a guess."""
        if not isinstance(value, str | bytes) or not is_secret(name):
            self._value(node, value)
            return
        secret = Node(("", ""))
        self._value(secret, value)
        secret.seal()
        node.add("secret", secret.digest[:SECRET_DIGITS])

    def _plain(self, node: Node, value: Any) -> bool:
        if value is None or isinstance(value, str):
            text = f"{value}".replace(str(self._folder), "") if isinstance(value, str) else ""
            node.add(type(value).__name__, text)
            node.name(text)
        elif isinstance(value, PurePath):
            node.add("path", str(value).replace(str(self._folder), ""))
        elif isinstance(value, enum.Enum):
            self._value(node, type(value))
            node.add("member", value.name)
        elif isinstance(value, _SCALARS):
            node.add(type(value).__name__, repr(value))
        elif isinstance(value, re.Pattern):
            node.add("pattern", value.pattern, value.flags)
            node.name(str(value.pattern))
        elif isinstance(value, _NO_CONTENT):
            node.add(type(value).__name__)
        else:
            return False
        return True

    def _container(self, node: Node, value: Any) -> bool:
        if isinstance(value, DataType | StructField):
            kind = value.jsonValue()
            node.add("type", json.dumps(without_comments(kind)))
            node.name(value.simpleString())
        elif isinstance(value, list | tuple | deque) and type(value).__module__ in ("builtins", "collections"):
            node.add(type(value).__name__, len(value))
            for each in value:
                self._value(node, each)
        elif isinstance(value, set | frozenset):
            node.add(type(value).__name__, len(value))
            for each in sorted(value, key=self._order):
                self._value(node, each)
        elif isinstance(value, Mapping) and type(value).__module__ in ("builtins", "collections"):
            node.add("mapping", len(value))
            for key, each in value.items():
                self._value(node, key)
                self._named(node, str(key), each)
        else:
            return False
        return True

    def _order(self, value: object) -> str:
        """What orders the members of a set, however Python does."""
        node = Node(("", ""))
        self._value(node, value)
        node.seal()
        return node.digest

    def _callable(self, node: Node, value: Any) -> bool:
        if isinstance(value, FunctionType):
            self._function_value(node, value)
        elif isinstance(value, type):
            self._class_value(node, value)
        elif isinstance(value, ModuleType):
            if is_own(file_of(value)):
                node.reach(self._node(("module", value.__name__), value, self._module, (value.__name__, "*")))
            else:
                _foreign(node, value.__name__)
        elif isinstance(value, functools.partial):
            node.add("partial")
            self._value(node, (value.func, value.args, value.keywords))
        elif isinstance(value, types.MethodType | staticmethod | classmethod):
            node.add(type(value).__name__)
            self._value(node, (value.__func__, getattr(value, "__self__", None)))
        elif isinstance(value, property):
            self._value(node, (value.fget, value.fset, value.fdel))
        elif hasattr(value, "__wrapped__") and type(value).__module__ == "functools":
            self._value(node, value.__wrapped__)
        elif isinstance(value, types.BuiltinFunctionType | types.MethodDescriptorType | types.WrapperDescriptorType):
            _foreign(node, f"{getattr(value, '__module__', None) or 'builtins'}", value.__qualname__)
        else:
            return False
        return True

    def _function_value(self, node: Node, function: FunctionType) -> None:
        if _udf(function):
            self._udf(node, function)
        elif is_own(function.__code__.co_filename):
            label = _label(function, self.module_of)
            node.reach(self._node(id(function), function, self._function, label))
        else:
            module = str(function.__globals__.get("__name__", ""))
            _foreign(node, module, function.__code__.co_qualname)
            if function.__closure__ is not None:
                self._value(node, function.__name__)
                self._bound(node, function)

    def _class_value(self, node: Node, kind: type) -> None:
        module = sys.modules.get(kind.__module__)
        if module is not None and is_own(file_of(module)):
            node.reach(self._node(id(kind), kind, self._class, (kind.__module__, kind.__qualname__)))
        else:
            _foreign(node, kind.__module__, kind.__qualname__)

    def _of_library(self, node: Node, value: Any) -> bool:
        if (function := _declared(value)) is not None:
            self._value(node, function)
            self._value(node, value.schema if hasattr(value, "schema") else None)
        elif _udf(value):
            self._udf(node, value)
        elif isinstance(value, Settings):
            node.add("settings", value.currency, value.environment, value.raw.formats, value.raw.csv)
        elif type(value).__module__ in _GENERIC or isinstance(value, types.GenericAlias | typing.TypeVar):
            node.add("generic", repr(value))
        else:
            return False
        return True

    def _udf(self, node: Node, value: Any) -> None:
        """A user-defined function of Spark: the rest of it is made when it is called first."""
        node.add("udf", getattr(value, "evalType", None), getattr(value, "deterministic", None))
        given = vars(value).get("_returnType", vars(value).get("returnType"))
        self._value(node, given if isinstance(given, str | DataType) else str(given))
        self._value(node, value.func)

    def _object(self, node: Node, value: Any) -> None:
        """An object of a class: its class, and what it holds."""
        node.add("object")
        self._value(node, type(value))
        key = ("object", id(value))
        if key in self._nodes:
            node.reach(key)
            return

        def say(inner: Node, _: object) -> None:
            self._value(inner, self._state(inner, value))

        node.reach(self._node(key, value, say, node.label))

    def _state(self, node: Node, value: Any) -> object:
        """What an object holds; where nobody can tell, its module counts whole."""
        if isinstance(value, Iterator):
            return self._unknown(node)
        is_ours = type(value).__module__.startswith(f"{spark_app.__name__}.")
        skipped = _PLACES if is_ours else frozenset()
        slots = {name for kind in type(value).__mro__ for name in _slots(kind)}
        held = {
            **getattr(value, "__dict__", {}),
            **{name: getattr(value, name) for name in slots if hasattr(value, name)},
        }
        if isinstance(value, Mapping):
            held["items of it"] = list(value.items())
        elif isinstance(value, Collection):
            held["items of it"] = list(value)
        if held or _has_no_more(value):
            return {name: each for name, each in sorted(held.items()) if name not in skipped}
        try:
            return value.__reduce_ex__(4)
        except Exception:  # noqa: BLE001 - whatever a class of others raises
            return self._unknown(node)

    def _unknown(self, node: Node) -> str:
        module = sys.modules.get(node.label[0])
        if module is not None and is_own(file_of(module)):
            node.reach(self._node(("module", module.__name__), module, self._module, (module.__name__, "*")))
        return "unknown"

    def module_of(self, file: str) -> str:
        """The name of the module of a file: of the project, from its folder on."""
        path = Path(file)
        if path.is_relative_to(self._folder):
            return ".".join(path.relative_to(self._folder).with_suffix("").parts)
        return path.stem


def without_comments(kind: Any) -> Any:
    """A type of Spark as JSON, without the comments of columns."""
    if isinstance(kind, dict):
        return {key: without_comments(value) for key, value in kind.items() if key != "comment"}
    return [without_comments(each) for each in kind] if isinstance(kind, list) else kind


def _declared(value: Any) -> Any:
    """The function of a declaration; None of anything else."""
    is_ours = type(value).__module__.startswith(f"{spark_app.__name__}.declarations")
    return getattr(value, "function", None) if is_ours else None


def _udf(value: Any) -> bool:
    return hasattr(value, "evalType") and hasattr(value, "func")


def _attributes(steps: Sequence[flat_code.Step], position: int) -> list[str]:
    """The names of the attributes that are asked for from a step on."""
    found = list[str]()
    while position < len(steps) and steps[position].name in _CHAIN:
        found.append(str(steps[position].value))
        position += 1
    return found


def _label(function: FunctionType, module_of: Callable[[str], str]) -> Label:
    code = function.__code__
    return module_of(code.co_filename), code.co_qualname.replace(".<locals>", "")


def _place(function: FunctionType) -> tuple[str, int]:
    code = function.__code__
    return code.co_filename, flat_code.source_file(code.co_filename).line(code)


def _foreign(node: Node, module: str, name: str = "") -> None:
    """Adds what is installed, by its name; its version is compared beside."""
    node.add("installed", module, name)
    node.name(name)
    package = module.partition(".")[0]
    if package not in sys.stdlib_module_names:
        node.packages.add(package)


def _annotation(value: object) -> str:
    return f"{value.__module__}.{value.__qualname__}" if isinstance(value, type) else repr(value)


def _slots(kind: type) -> Sequence[str]:
    slots = vars(kind).get("__slots__", ())
    return (slots,) if isinstance(slots, str) else [name for name in slots if not name.startswith("__")]


def _has_no_more(value: object) -> bool:
    """Whether an object has nothing beside its attributes."""
    return type(value).__reduce_ex__ is object.__reduce_ex__ and type(value).__reduce__ is object.__reduce__


def _modules_in(module: ModuleType) -> Iterator[str]:
    """The names of the modules of code beside the project whose functions, classes or names a module has."""
    for value in list(vars(module).values()):
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
        if isinstance(name, str) and is_own(file_of(sys.modules.get(name))):
            yield name


def _member(module: ModuleType, name: str) -> object:
    """What `from module import name` gives."""
    return getattr(module, name) if hasattr(module, name) else import_module(f"{module.__name__}.{name}")
