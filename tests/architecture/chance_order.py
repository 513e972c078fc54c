"""Finds where a module takes the elements of a set one by one, in an order that is chance's.

What is hashed by text (or holds what is) comes out of a set in another order in each process. The types that it goes by
are those that a reader sees: annotations of parameters, attributes and results, set displays and comprehensions, and
names that were assigned such. It follows containers, too: an element of a `list[frozenset[int]]` is a set.

Free of order are membership, comparisons, sums and `any`, `sorted` without a key, a `min` or `max` without a key, and
whatever makes a set again.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

SETS = {"set", "frozenset", "Set", "AbstractSet", "MutableSet", "KeysView"}
SEQUENCES = {"list", "tuple", "Sequence", "Iterable", "Iterator", "Collection", "deque"}
MAPPINGS = {"dict", "Mapping", "MutableMapping", "defaultdict"}
#: Calls of what does not care in which order it gets its elements.
FREE = {"set", "frozenset", "any", "all", "sum", "len", "sorted", "min", "max", "Counter", "isinstance", "bool"}
#: Calls that take the elements in their order.
ORDERED = {"tuple", "list", "next", "iter", "enumerate", "zip", "map", "filter", "reversed", "chain", "product"}
OPERATIONS = {"union", "intersection", "difference", "symmetric_difference", "copy"}

#: "set", "of Name" for an object of a class, or a container: ("sequence", type) and ("mapping", type).
Type = str | tuple[str, "Type"] | None


def annotated(node: ast.expr | None) -> Type:
    """Returns what an annotation says."""
    match node:
        case ast.Constant(value=str() as text):
            return annotated(ast.parse(text, mode="eval").body)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return "set" if name in SETS else f"of {name}"
        case ast.Subscript(value=ast.Name(id=name) | ast.Attribute(attr=name), slice=inner):
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            if name in SETS:
                return "set"
            if name in SEQUENCES:
                return ("sequence", annotated(parts[0]))
            if name in MAPPINGS and len(parts) == 2:
                return ("mapping", annotated(parts[1]))
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = [annotated(one) for one in (left, right) if not isinstance(one, ast.Constant)]
            return "set" if "set" in sides else sides[0] if len(sides) == 1 else None
    return None


def agreed(types: Iterable[Type]) -> Type:
    """Returns the type that all are, if they are."""
    found = set(types)
    return found.pop() if len(found) == 1 else None


@dataclass
class Known:
    """Is what the modules' annotations say: of attributes and methods by class, of functions by name."""

    members: dict[str, dict[str, Type]] = field(default_factory=dict)
    methods: dict[str, dict[str, Type]] = field(default_factory=dict)
    results: dict[str, list[Type]] = field(default_factory=dict)

    def read(self, tree: ast.Module) -> None:
        """Adds what a module says."""
        for node in within(tree):
            if isinstance(node, ast.ClassDef):
                members, methods = self.members.setdefault(node.name, {}), self.methods.setdefault(node.name, {})
                for one in node.body:
                    if isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name):
                        members[one.target.id] = annotated(one.annotation)
                    elif isinstance(one, ast.FunctionDef):
                        is_property = any("property" in ast.unparse(mark) for mark in one.decorator_list)
                        (members if is_property else methods)[one.name] = annotated(one.returns)
        for one in tree.body:
            if isinstance(one, ast.FunctionDef):
                self.results.setdefault(one.name, []).append(annotated(one.returns))

    def member(self, of: Type, name: str, *, called: bool = False) -> Type:
        """Returns what an object's attribute is, or its method returns; of one unknown, what all say of the name."""
        classes = self.methods if called else self.members
        if isinstance(of, str) and name in classes.get(of.removeprefix("of "), {}):
            return classes[of.removeprefix("of ")][name]
        return agreed(members[name] for members in classes.values() if name in members)


class Function:
    """Is one function's (or module's) names and what they hold."""

    def __init__(self, node: ast.AST, known: Known, outer: Mapping[str, Type], local: Mapping[str, Type]) -> None:
        self.known, self.local = known, local
        self.names: dict[str, Type] = dict(outer)
        arguments = getattr(node, "args", None)
        if isinstance(arguments, ast.arguments):
            for it in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
                self.names[it.arg] = annotated(it.annotation) if it.annotation else self.names.get(it.arg)
        binding = [one for one in own(node) if isinstance(one, BINDING)]
        for _ in range(2):  # what is assigned may be used above, in a loop
            for one in binding:
                self.assign(one)

    def assign(self, node: ast.AST) -> None:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation):
                self.names[name] = annotated(annotation)
            case ast.Assign(targets=[target], value=value):
                self.bind(target, value)
            case ast.NamedExpr(target=ast.Name(id=name), value=value):
                self.names[name] = self.type_of(value) or self.names.get(name)
            case ast.For(target=target, iter=iterated) | ast.comprehension(target=target, iter=iterated):
                self.unpack(target, self.element(iterated))

    def bind(self, target: ast.expr, value: ast.expr) -> None:
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
            for one, its in zip(target.elts, value.elts, strict=True):
                self.bind(one, its)
        else:
            self.unpack(target, self.type_of(value))

    def unpack(self, target: ast.expr, type_: Type) -> None:
        if isinstance(target, ast.Name) and type_ is not None:
            self.names[target.id] = type_

    def element(self, iterated: ast.expr) -> Type:
        found = self.type_of(iterated)
        return found[1] if isinstance(found, tuple) and found[0] == "sequence" else None

    def type_of(self, node: ast.expr) -> Type:
        """Returns what an expression is, as far as it can be seen."""
        match node:
            case ast.Set() | ast.SetComp():
                return "set"
            case ast.Name(id=name):
                return self.names.get(name)
            case ast.Attribute(value=value, attr=name):
                return self.known.member(self.type_of(value), name)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
                both = (self.type_of(left), self.type_of(right))
                keys = any(isinstance(one, ast.Call) and called(one) == "keys" for one in (left, right))
                return "set" if "set" in both or keys else None
            case ast.IfExp(body=body, orelse=otherwise):
                return self.type_of(body) or self.type_of(otherwise)
            case ast.BoolOp(values=values):
                return next((found for one in values if (found := self.type_of(one))), None)
            case ast.NamedExpr(value=value):
                return self.type_of(value)
            case ast.Subscript(value=value):
                found = self.type_of(value)
                return found[1] if isinstance(found, tuple) else None
            case ast.List(elts=[first, *_]) | ast.Tuple(elts=[first, *_]) if element := self.type_of(first):
                return ("sequence", element)
            case ast.ListComp(elt=one) | ast.GeneratorExp(elt=one) if element := self.type_of(one):
                return ("sequence", element)
            case ast.DictComp(value=one) if element := self.type_of(one):
                return ("mapping", element)
            case ast.Call():
                return self.called(node)
        return None

    def called(self, node: ast.Call) -> Type:
        name = called(node)
        if name in ("set", "frozenset"):
            return "set"
        if isinstance(node.func, ast.Attribute):
            of = self.type_of(node.func.value)
            if name in OPERATIONS and (of == "set" or ast.unparse(node.func.value) in ("set", "frozenset")):
                return "set"
            if isinstance(of, tuple) and of[0] == "mapping":
                return {"get": of[1], "pop": of[1], "setdefault": of[1], "values": ("sequence", of[1])}.get(name)
            return self.known.member(of, name, called=True)
        if name in ("list", "tuple", "sorted", "reversed", "dict") and node.args:
            found = self.type_of(node.args[0])
            return found if isinstance(found, tuple) else None
        if name in self.local:
            return self.local[name]
        return f"of {name}" if name in self.known.members else agreed(self.known.results.get(name, ()))


def called(node: ast.Call) -> str:
    """Returns the last name of what is called."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=ast.Name(id=name)):
            return name
    return ""


SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)
#: What gives a name something.
BINDING = (ast.AnnAssign, ast.Assign, ast.NamedExpr, ast.For, ast.comprehension)


def children(node: ast.AST) -> list[ast.AST]:
    """Returns the nodes that a node holds, as `ast.iter_child_nodes` yields them, in half its time."""
    found: list[ast.AST] = []
    for name in node._fields:
        held = getattr(node, name, None)
        if isinstance(held, list):
            found += [one for one in held if isinstance(one, ast.AST)]
        elif isinstance(held, ast.AST) and held._fields:  # which contexts and operators have none of
            found.append(held)
    return found


def within(tree: ast.AST) -> list[ast.AST]:
    """Returns a node and all in it, level by level."""
    found = [tree]
    for one in found:  # which grows meanwhile
        found += children(one)
    return found


def own(node: ast.AST) -> Sequence[ast.AST]:
    """Returns the nodes of a scope, without those of functions in it, each before those in it."""
    found: list[ast.AST] = []
    left = children(node)[::-1]
    while left:
        one = left.pop()
        if not isinstance(one, SCOPES):
            found.append(one)
            left += children(one)[::-1]
    return found


def scopes(
    node: ast.AST, known: Known, outer: Mapping[str, Type], local: Mapping[str, Type]
) -> Iterator[tuple[ast.AST, Function]]:
    """Yields the scope of a node and all in it."""
    here = Function(node, known, outer, local)
    yield node, here
    inner: list[tuple[ast.AST, str | None]] = [(node, None)]
    while inner:
        holder, of = inner.pop()
        for one in children(holder):
            if isinstance(one, SCOPES):
                yield from scopes(one, known, here.names | ({"self": f"of {of}"} if of else {}), local)
            else:
                inner.append((one, one.name if isinstance(one, ast.ClassDef) else of))


def taken_by_chance(tree: ast.Module, known: Known) -> Iterator[int]:
    """Yields the lines in which a module takes elements of a set in the set's own order."""
    local = {one.name: annotated(one.returns) for one in tree.body if isinstance(one, ast.FunctionDef)}
    for node, scope in scopes(tree, known, {}, local):
        inner = own(node)
        parents = {child: one for one in (node, *inner) for child in children(one)}
        for one in inner:
            if any(scope.type_of(taken) == "set" for taken in ordered(one, parents)):
                yield getattr(one, "lineno", getattr(getattr(one, "iter", None), "lineno", 0))


def ordered(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> Iterator[ast.expr]:
    """Yields the expressions whose elements a node takes one by one, for something in which their order shows."""
    match node:
        case ast.For(iter=iterated):
            yield iterated
        case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
            if not is_free(node, parents):
                yield from (one.iter for one in generators)
        case ast.DictComp(generators=generators):
            yield from (one.iter for one in generators)
        case ast.Starred(value=value):
            if not is_free(node, parents):
                yield value
        case ast.YieldFrom(value=value):
            yield value
        case ast.Assign(targets=[ast.Tuple(elts=elements)], value=value) if len(elements) > 1:
            yield value
        case ast.Call(args=arguments):
            name = called(node)
            if is_keyed(node) or name in ("fromkeys", "join", "extend"):
                yield from arguments
            elif name in ORDERED and not is_free(node, parents):
                yield from arguments[:1] if name in ("next", "iter", "enumerate", "tuple", "list") else arguments
            elif name == "pop" and not arguments and isinstance(node.func, ast.Attribute):
                yield node.func.value


def is_free(node: ast.AST, parents: Mapping[ast.AST, ast.AST]) -> bool:
    """Whether what is made of a node is the same in whatever order its elements come."""
    holder = parents.get(node)
    while isinstance(holder, ast.Tuple | ast.List | ast.Starred | ast.GeneratorExp | ast.ListComp):
        holder = parents.get(holder)
    if not isinstance(holder, ast.Call):
        return isinstance(holder, ast.Set)
    name = called(holder)
    if name in ("union", "intersection", "difference", "update", "isdisjoint", "issubset", "issuperset"):
        return True
    return (name in FREE and not is_keyed(holder)) or (name in ORDERED and is_free(holder, parents))


def is_keyed(call: ast.Call) -> bool:
    """Whether a call sorts by a key that elements may share: any but one that holds the whole element."""
    keys = [ast.unparse(one.value) for one in call.keywords if one.arg == "key"]
    return called(call) in ("sorted", "min", "max") and any("sorted" not in one for one in keys)
