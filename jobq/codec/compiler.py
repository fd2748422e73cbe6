"""From an annotation to its form: which module answers for which kind of annotation."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from types import UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeVar, Union, get_args, get_origin

from jobq.codec.annotations import Scope, unresolved
from jobq.codec.choice import enum_form, literal_form
from jobq.codec.classes import dataclass_form, typed_dict_form
from jobq.codec.compound import array_form, fixed_tuple_form, mapping_form, set_form
from jobq.codec.form import NOTHING, Form, Unfit, spell
from jobq.codec.models import is_pydantic, is_struct, models_form
from jobq.codec.plain import ANY, NONE, PLAIN
from jobq.codec.refused import refuse_class, refuse_constraints, refuse_other
from jobq.codec.secret import SECRET, secret_form
from jobq.codec.standard import STANDARD
from jobq.codec.union import union_form


class Reference:
    """Stands for a class or an alias inside of itself (`children: list[Node]`) while that is being compiled."""

    form: Form | None = None
    has_secret = False

    def encode(self, value: Any) -> Any:
        assert self.form is not None
        return self.form.encode(value)

    def decode(self, value: Any) -> Any:
        assert self.form is not None
        return self.form.decode(value)


class Seen:
    """What a compiler has met, in whatever scope."""

    def __init__(self) -> None:
        self.references: dict[Any, Reference] = {}
        self.has_secret = False


class Compiler:
    """Compiles annotations in one scope. Raises Unfit, or Unresolved for names that are not known yet."""

    def __init__(self, scope: Scope, seen: Seen | None = None) -> None:
        self._scope = scope
        self.seen = Seen() if seen is None else seen

    def inside(self, cls: type[Any]) -> Compiler:
        return Compiler(self._scope.inside(cls), self.seen)

    def evaluate(self, annotation: Any) -> Any:
        while isinstance(annotation, str | ForwardRef):
            annotation = self._scope.evaluate(annotation)
        return annotation

    def form(self, annotation: Any) -> Form:
        annotation = self.evaluate(annotation)
        if annotation is Any:
            return ANY
        if annotation is None:
            return NONE
        origin = get_origin(annotation)
        if origin is None and isinstance(annotation, type):
            return self._class(annotation)
        return self._other(annotation, origin, get_args(annotation))

    def _class(self, cls: type[Any]) -> Form:
        known = PLAIN.get(cls) or STANDARD.get(cls)
        if known is not None:
            return known
        refuse_class(cls)
        if is_pydantic(cls) or is_struct(cls):
            return models_form((cls,))
        if issubclass(cls, Enum):
            return enum_form(cls)
        if dataclasses.is_dataclass(cls):
            return self._maybe_recursive(cls, cls.__name__, lambda: dataclass_form(cls, self))
        if issubclass(cls, dict) and hasattr(cls, "__required_keys__"):  # typing_extensions has its own TypedDict
            return self._maybe_recursive(cls, cls.__name__, lambda: typed_dict_form(cls, self))
        return self._container(cls, cls, ())

    def _other(self, annotation: Any, origin: Any, args: tuple[Any, ...]) -> Form:
        if origin is Union or origin is UnionType:
            return self._union(args)
        if origin is Literal:
            return literal_form([annotation])
        if origin is Annotated:
            refuse_constraints(annotation.__metadata__)
            return self._secret(args[0]) if SECRET in annotation.__metadata__ else self.form(args[0])
        if hasattr(annotation, "__supertype__"):  # NewType
            return self.form(annotation.__supertype__)
        if type(annotation if origin is None else origin).__name__ == "TypeAliasType":  # type X = ..., or its backport
            return self._alias(annotation, origin, args)
        if isinstance(annotation, TypeVar):
            raise Unfit(f"{annotation} is a type variable, a worker needs the type itself")
        return self._container(annotation, origin, args)

    def _secret(self, annotation: Any) -> Form:
        self.seen.has_secret = True
        return secret_form(self.form(annotation))

    def _container(self, annotation: Any, origin: Any, args: tuple[Any, ...]) -> Form:
        if origin is tuple:
            return self._tuple(args, bare=not hasattr(annotation, "__args__"))
        if origin not in ITEMS:
            refuse_other(annotation)
        count, build = ITEMS[origin]
        if args and len(args) != count:
            raise Unfit(f"{spell(annotation)}: takes {count} type arguments, got {len(args)}")
        return build([self.form(arg) for arg in args] or [PLAIN[str], ANY][-count:])

    def _tuple(self, args: tuple[Any, ...], *, bare: bool) -> Form:
        if bare or (len(args) == 2 and args[1] is ...):
            item = self.form(args[0]) if args else ANY
            return array_form(f"tuple[{item.name}, ...]", item, (tuple,), tuple)
        if any(getattr(arg, "__unpacked__", False) for arg in args):
            raise Unfit("a tuple with an unpacked part has no form here: use tuple[T, ...] or a dataclass")
        return fixed_tuple_form([self.form(arg) for arg in args])

    def _union(self, annotations: tuple[Any, ...]) -> Form:
        arms = [self.evaluate(arm) for arm in annotations]
        forms: list[Form] = []
        for is_kind, build in TOGETHER:
            if len(together := [arm for arm in arms if is_kind(arm)]) > 1:
                arms = [arm for arm in arms if not is_kind(arm)]
                forms.append(build(tuple(together)))
        return union_form([*forms, *(self.form(arm) for arm in arms)])

    def _alias(self, annotation: Any, origin: Any, args: tuple[Any, ...]) -> Form:
        def build() -> Form:
            try:
                value = annotation.__value__
            except NameError as error:
                raise unresolved(error, {"__name__": annotation.__module__}) from error
            parameters = getattr(value, "__parameters__", ())
            if not args or not parameters:
                return self.form(value)
            given = dict(zip(origin.__type_params__, args, strict=True))
            return self.form(value[tuple(given[parameter] for parameter in parameters)])

        return self._maybe_recursive(annotation, spell(annotation), build)

    def _maybe_recursive(self, annotation: Any, name: str, build: Callable[[], Form]) -> Form:
        seen = self.seen
        if (known := seen.references.get(annotation)) is not None:
            seen.has_secret |= known.has_secret
            shapes = frozenset({"object"}) if isinstance(annotation, type) else NOTHING
            return known.form or Form(name, shapes, known.encode, known.decode, nests=True)
        reference = seen.references[annotation] = Reference()
        before, seen.has_secret = seen.has_secret, False
        reference.form = build()
        reference.has_secret, seen.has_secret = seen.has_secret, seen.has_secret or before
        return reference.form


def _list(items: list[Form]) -> Form:
    return array_form(f"list[{items[0].name}]", items[0], (list,), None)


def _sequence(items: list[Form]) -> Form:
    return array_form(f"Sequence[{items[0].name}]", items[0], (list, tuple), None)


def _dict(items: list[Form]) -> Form:
    return mapping_form(f"dict[{items[0].name}, {items[1].name}]", items[0], items[1], dict)


def _mapping(items: list[Form]) -> Form:
    return mapping_form(f"Mapping[{items[0].name}, {items[1].name}]", items[0], items[1], Mapping)


ITEMS: dict[Any, tuple[int, Callable[[list[Form]], Form]]] = {
    list: (1, _list),
    Sequence: (1, _sequence),
    set: (1, lambda items: set_form(items[0], set)),
    frozenset: (1, lambda items: set_form(items[0], frozenset)),
    dict: (2, _dict),
    Mapping: (2, _mapping),
}


def _is_literal(annotation: Any) -> bool:
    return get_origin(annotation) is Literal


# Arms of a union that are one form together: the models of a library tell each other apart by its own rules.
TOGETHER: list[tuple[Callable[[Any], bool], Callable[[tuple[Any, ...]], Form]]] = [
    (_is_literal, literal_form),
    (is_pydantic, models_form),
    (is_struct, models_form),
]
