"""
Which statements write to something that they did not make: what proves that states are written to in one folder only.
"""

import ast

from collections.abc import Iterator


MUTATORS = frozenset(
    [
        "add",
        "append",
        "appendleft",
        "clear",
        "discard",
        "extend",
        "extendleft",
        "insert",
        "intersection_update",
        "pop",
        "popitem",
        "popleft",
        "remove",
        "reverse",
        "rotate",
        "setdefault",
        "sort",
        "symmetric_difference_update",
        "difference_update",
        "update",
        "__setattr__",
        "__delattr__",
        "__setitem__",
        "__delitem__",
        "__iadd__",
        "__iand__",
        "__imul__",
        "__ior__",
        "__isub__",
        "__ixor__",
        "__set__",
        "__setstate__",
        "__dict__",
    ]
)
FUNCTIONS = frozenset(
    {"setattr", "delattr", "setitem", "delitem", "exec", "eval", "methodcaller", "shuffle"}
    | {"heapify", "heappop", "heappush", "heappushpop", "heapreplace", "insort", "insort_left", "insort_right"}
    | {"iadd", "iand", "iconcat", "imul", "ior", "isub", "ixor"}
)
MAKERS = frozenset({"list", "dict", "set", "deque", "bytearray", "defaultdict", "copy", "sorted", "cls"})
DISPLAYS = (ast.List, ast.Dict, ast.Set, ast.ListComp, ast.DictComp, ast.SetComp)
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
SETS = (ast.BitOr, ast.BitAnd, ast.BitXor)
"""Of what changes a name in place, what is said of sets and maps, and seldom of numbers."""


def writes(source: str) -> list[tuple[int, str]]:
    """
    (line, text) of each write to an attribute or an element, and of each call that changes a container, unless it is of a
    value that the same function made, or of a method's own `self`.

    A name is of a value that was made here if all that it is ever bound to is a display, a comprehension, a copy, or a new
    value of a class. What `self` holds was made by it if its class makes it: in `__init__`, or as a field.
    """
    found: list[tuple[int, str]] = []
    _Scope(ast.parse(source), frozenset(), frozenset(), found).look()
    return sorted(found)


class _Scope:
    """
    A module or a function; *made* are the names of values that the functions around it made, *held* what `self` made.
    """

    def __init__(
        self, scope: ast.AST, made: frozenset[str], held: frozenset[str], found: list[tuple[int, str]]
    ) -> None:
        self.nodes = list(_own(scope))
        self.called = {id(node.func) for node in self.nodes if isinstance(node, ast.Call)}
        self.held = held
        self.found = found
        bound = dict(_bound(scope, self.nodes))
        self.made = (made - bound.keys()) | {name for name, fresh in bound.items() if fresh}

    def look(self) -> None:
        for node in self.nodes:
            if isinstance(node, ast.ClassDef):
                held = frozenset(_held(node))
                for inner in node.body:
                    if isinstance(inner, FUNCTION):
                        _Scope(inner, self.made, held, self.found).look()
            elif isinstance(node, FUNCTION):
                _Scope(node, self.made, self.held, self.found).look()
            elif not self.allows(node):
                self.found.append((getattr(node, "lineno", 0), ast.unparse(node)))

    def allows(self, node: ast.AST) -> bool:
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store | ast.Del):
            return _is_self(node.value) or self.is_made(node.value)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store | ast.Del):
            return self.is_element(node.value)
        if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
            # Of a list it writes to the list.
            known = (*DISPLAYS, ast.Attribute)
            return node.target.id in self.made or not (isinstance(node.op, SETS) or isinstance(node.value, known))
        if isinstance(node, ast.Attribute) and node.attr in MUTATORS - {"__dict__"} and id(node) not in self.called:
            # A method that is kept, or handed on, to be called elsewhere.
            return self.is_element(node.value)
        if isinstance(node, ast.Name) and node.id in FUNCTIONS:
            return id(node) in self.called or isinstance(node.ctx, ast.Store)
        if not isinstance(node, ast.Call):
            return True
        called = node.func
        if isinstance(called, ast.Name) and called.id in FUNCTIONS:
            return bool(node.args) and (_is_self(node.args[0]) or self.is_made(node.args[0]))
        if isinstance(called, ast.Name) and called.id == "getattr":
            return not (isinstance(node.args[1], ast.Constant) and node.args[1].value in MUTATORS)
        if isinstance(called, ast.Attribute) and called.attr == "__init__":
            return isinstance(called.value, ast.Call)  # that of `super()`
        if isinstance(called, ast.Attribute) and called.attr == "__setattr__":
            return bool(node.args) and _is_self(node.args[0])
        if isinstance(called, ast.Attribute) and called.attr in MUTATORS | FUNCTIONS:
            return self.is_element(called.value)
        return True

    def is_made(self, node: ast.AST) -> bool:
        return isinstance(node, DISPLAYS) or (isinstance(node, ast.Name) and node.id in self.made)

    def is_element(self, node: ast.AST) -> bool:
        """
        A container that was made here, or one inside of it.
        """
        if isinstance(node, ast.Subscript):
            return self.is_element(node.value)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "setdefault":
            return self.is_element(node.func.value) and isinstance(node.args[-1], DISPLAYS)
        return self.is_made(node) or (
            isinstance(node, ast.Attribute) and _is_self(node.value) and node.attr in self.held
        )


def _own(scope: ast.AST) -> Iterator[ast.AST]:
    """
    The nodes of *scope* without those of the functions and classes in it.
    """
    todo = list(ast.iter_child_nodes(scope))
    while todo:
        node = todo.pop()
        yield node
        if not isinstance(node, (ast.ClassDef, *FUNCTION)):
            todo.extend(ast.iter_child_nodes(node))


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _makes(value: ast.AST | None) -> bool:
    """
    Whether *value* is a new one. What is called by a capital is a class; a number or a text is never written to.
    """
    if isinstance(value, ast.IfExp):
        return _makes(value.body) and _makes(value.orelse)
    if isinstance(value, ast.BinOp):
        return isinstance(value.left, DISPLAYS)
    if isinstance(value, ast.Call):
        called = value.func
        if isinstance(called, ast.Attribute):
            return called.attr in ("copy", "__new__") or called.attr[:1].isupper()
        return isinstance(called, ast.Name) and (called.id in MAKERS or called.id.lstrip("_")[:1].isupper())
    return isinstance(value, (*DISPLAYS, ast.Constant))


def _bound(scope: ast.AST, nodes: list[ast.AST]) -> Iterator[tuple[str, bool]]:
    """
    (name, whether all that it is bound to is made here) of each name that *scope* binds.
    """
    fresh: dict[str, bool] = {}

    def bind(target: ast.AST, *, made: bool) -> None:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                fresh[node.id] = fresh.get(node.id, True) and made and node is target

    if isinstance(scope, FUNCTION):
        every = scope.args
        named = [*every.posonlyargs, *every.args, *every.kwonlyargs, *filter(None, (every.vararg, every.kwarg))]
        fresh |= {argument.arg: argument is every.kwarg for argument in named}
    for node in nodes:
        if isinstance(node, ast.Assign):
            for target in node.targets:
                pairs = (target, node.value)
                if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                    for each, value in zip(target.elts, node.value.elts, strict=False):
                        bind(each, made=_makes(value))
                else:
                    bind(pairs[0], made=_makes(pairs[1]))
        elif isinstance(node, ast.AnnAssign | ast.NamedExpr):
            bind(node.target, made=_makes(node.value))
        elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            bind(node.target, made=False)
        elif isinstance(node, ast.withitem) and node.optional_vars is not None:
            bind(node.optional_vars, made=False)
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            fresh[node.name] = False
        elif isinstance(node, ast.Global | ast.Nonlocal):
            fresh |= dict.fromkeys(node.names, False)
    yield from fresh.items()


def _held(owner: ast.ClassDef) -> Iterator[str]:
    """
    The attributes that a class makes itself, wherever it binds them.
    """
    made: dict[str, bool] = {}
    for node in owner.body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            made[node.target.id] = "default_factory" in ast.unparse(node.value)
    for each in ast.walk(owner):
        if isinstance(each, ast.Assign | ast.AnnAssign) and each.value is not None:
            targets = each.targets if isinstance(each, ast.Assign) else [each.target]
            for one in targets:
                if isinstance(one, ast.Attribute) and _is_self(one.value):
                    made[one.attr] = made.get(one.attr, True) and _makes(each.value)
    yield from (name for name, fresh in made.items() if fresh)
