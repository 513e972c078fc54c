"""The outcomes of looking a function or a cast up.

Owns the records `Cast` and `Resolved`, and the types of arguments while a call is resolved.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mz_dagster.functions.arrays.dimensioned import elements_of, with_elements
from mz_dagster.functions.failure import Failure
from mz_dagster.functions.function import Function
from mz_dagster.functions.literals import literal_of
from mz_dagster.functions.moments.infinite import RULES, InfiniteResult
from mz_dagster.functions.session_zone import zoned
from mz_dagster.scalars.scalar import Call, Literal, Scalar
from mz_dagster.scalars.type_ids import ids_of
from mz_dagster.scalars.types import INT4, TEXT, Enumeration, Kind, Modifier, ScalarType, array_of


@dataclass(frozen=True, slots=True)
class Unknown:
    """The type of a quoted literal, or of NULL, before its context has decided.

    Attributes:
        text: The literal's text; None for NULL.
    """

    text: str | None = None

    def __str__(self) -> str:
        return "unknown"

    def as_type(self, target: ScalarType, *, assigned: bool = False, rounds: bool = True) -> Literal | Failure:
        """Returns the literal of a type that the text spells, as `literal_of` does."""
        return literal_of(self.text, target, assigned=assigned, rounds=rounds)


@dataclass(frozen=True, slots=True)
class OpenParameter(Unknown):
    """Stands for a parameter whose value is not known yet, and learns of which type its context takes it to be.

    Attributes:
        types: Those types, in the order in which they were found out.
    """

    types: list[ScalarType] = field(default_factory=list, compare=False)

    def as_type(self, target: ScalarType, *, assigned: bool = False, rounds: bool = True) -> Literal | Failure:
        """Returns NULL of a type, and notes the type."""
        self.types.append(target)
        return literal_of(None, target)


#: The type of a bare NULL.
UNKNOWN = Unknown()

#: What an argument's type may be while a call is resolved.
ArgumentType = ScalarType | Unknown


@dataclass(frozen=True, slots=True)
class Cast:
    """The implementation of a cast.

    Attributes:
        function: The implementation's name; empty where nothing is to be done.
        source: The type cast from.
        target: The type cast to.
        fallible: True if it can fail.
        first: The cast to text that comes before, if this is one of its text; its function is not empty.
        modifies: Whether the value then becomes what the target's modifier makes of it.
        compose: What makes the scalar of the value, where it is more than calls one after the other.
    """

    function: str
    source: ScalarType
    target: ScalarType
    fallible: bool
    first: Cast | None = None
    modifies: bool = False
    compose: Callable[[Scalar], Scalar] | None = field(default=None, compare=False)

    def apply(self, scalar: Scalar) -> Scalar:
        """Returns `scalar`, of type `source`, as one of type `target`."""
        found = self._cast(scalar)
        return modified(found, self.target) if self.modifies else found

    def _cast(self, scalar: Scalar) -> Scalar:
        if not self.function:
            return scalar
        if isinstance(scalar, Literal) and scalar.value is None:
            return Literal(None, self.target)
        if self.compose is not None:
            return self.compose(scalar)
        operand = scalar if self.first is None else self.first.apply(scalar)
        rule = RULES.get(self.function)
        nullable = scalar.nullable or (rule is not None and rule.outcome is InfiniteResult.UNKNOWN)
        arguments = (operand, *_looked_up(self.function, self.source.enumeration, self.target.enumeration))
        # The elements' modifier would be no part of what the call is: of equal types are those of others, too.
        type_ = self.target if self.target.array_element is None else self.target.unmodified
        return zoned(Call(self.function, arguments, type_, nullable))


def _looked_up(function: str, source: Enumeration | None, target: Enumeration | None) -> tuple[Literal, ...]:
    """Returns what a cast from or to an enumeration looks values or labels up in, and the name that errors say."""
    texts = array_of(TEXT)
    match function:
        case "enum_of_label":
            assert target is not None
            return Literal(target.members, texts), Literal(target.name, TEXT)
        case "enum_of_renamed_label":
            assert target is not None
            return Literal(target.members, texts), Literal(target.labels, texts), Literal(target.name, TEXT)
        case "renamed_label_of_enum":
            assert source is not None
            members, labels = zip(*source.renamed, strict=True)
            return Literal(members, texts), Literal(labels, texts)
        case _:
            return ()


def modified_element(call: Call) -> Callable[[Scalar], Scalar]:
    """Returns what makes of an element what a call of `modified_elements` says."""
    _, precision, fields = call.arguments
    assert call.type.element is not None
    assert isinstance(precision, Literal)
    assert isinstance(fields, Literal)
    modifier = Modifier(precision.value, fields.value)  # type: ignore[arg-type]
    element = replace(call.type.element, modifier=modifier)
    return lambda scalar: modified(scalar, element)


def modified(scalar: Scalar, target: ScalarType) -> Scalar:
    """Returns what the modifier of `target` makes of a value of that type."""
    modifier = target.value_modifier
    assert modifier is not None
    if isinstance(scalar, Literal) and scalar.value is None:
        return Literal(None, target)
    precision = Literal(6 if modifier.precision is None else modifier.precision, INT4)
    if target.kind is Kind.DIMENSIONED:
        return with_elements(scalar, modified(elements_of(scalar), target.parts[0]))
    if target.kind is Kind.ARRAY:
        fields = Literal(modifier.fields, TEXT)
        return Call("modified_elements", (scalar, precision, fields), target, scalar.nullable)
    if target.kind is Kind.INTERVAL:
        return Call("narrowed_interval", (scalar, Literal(modifier.fields, TEXT), precision), target, scalar.nullable)
    return Call(_MODIFYING[target.kind], (scalar, precision), target, scalar.nullable)


_MODIFYING = {
    Kind.NUMERIC: "bounded_numeric",
    Kind.TIMESTAMP: "rounded_timestamp",
    Kind.TIMESTAMPTZ: "rounded_timestamptz",
    Kind.TIME: "rounded_time",
    Kind.TIMETZ: "rounded_timetz",
}


@dataclass(frozen=True, slots=True)
class Resolved:
    """A call whose implementation has been chosen.

    Attributes:
        function: The implementation.
        argument_types: What the arguments become.
        result_type: What the call returns.
        casts: One for each argument that has a type and needs a cast, else None. An `Unknown` argument needs
            `literal_of(text, argument_type)` instead.
        compose: What makes the scalar of the arguments, where it is more than one call.
    """

    function: Function
    argument_types: tuple[ScalarType, ...]
    result_type: ScalarType
    casts: tuple[Cast | None, ...]
    compose: Callable[..., Scalar] | None = None

    @property
    def implementation(self) -> str:
        """The implementation's name."""
        return self.function.name

    @property
    def fallible(self) -> bool:
        """True if the function, or a cast of an argument, can fail."""
        return self.function.fallible or any(cast is not None and cast.fallible for cast in self.casts)

    def nullable(self, arguments: Sequence[bool]) -> bool:
        """Returns whether the result may be NULL, given which arguments may be."""
        return self.function.nullability.of(arguments)

    def apply(self, arguments: Sequence[Scalar | Unknown]) -> Scalar | Failure:
        """Returns the call over `arguments`, which are cast first.

        A quoted literal is read as its argument's type here and now; if its text is none, that is a failure.
        """
        ready: list[Scalar] = []
        for argument, target, cast in zip(arguments, self.argument_types, self.casts, strict=True):
            if isinstance(argument, Unknown):
                literal = argument.as_type(target, rounds=False)
                if isinstance(literal, Failure):
                    return literal
                ready.append(literal)
            else:
                ready.append(argument if cast is None else cast.apply(argument))
        if self.compose is not None:
            return self.compose(*ready)
        nullable = self.nullable([one.nullable for one in ready])
        return zoned(Call(self.function.name, tuple(ready), self.result_type.unmodified, nullable))


_LONG_NAMES = {
    Kind.UNCONSTRAINED: "numeric",
    Kind.TIME: "time without time zone",
    Kind.TIMETZ: "time with time zone",
    Kind.TIMESTAMP: "timestamp without time zone",
    Kind.TIMESTAMPTZ: "timestamp with time zone",
}


def type_name(type_: ArgumentType) -> str:
    """Returns the type's name as PostgreSQL's messages spell it."""
    if isinstance(type_, Unknown):
        return "unknown"
    if type_.label:
        return ids_of(type_).shown
    if type_.array_element is not None:
        return f"{type_name(type_.array_element)}[]"
    return kind_name(type_.kind) if type_.enumeration is None else type_.enumeration.name


def kind_name(kind: Kind) -> str:
    """Returns the name of a kind of types as PostgreSQL's messages spell it."""
    return _LONG_NAMES.get(kind, kind.value)


def default_type(type_: ArgumentType) -> ScalarType:
    """Returns the type itself; text for an undecided one."""
    return TEXT if isinstance(type_, Unknown) else type_
