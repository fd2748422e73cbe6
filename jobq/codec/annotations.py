"""What annotations written as text stand for: under `from __future__ import annotations` all of them are text."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from types import GenericAlias, ModuleType, UnionType
from typing import Any, ForwardRef

from jobq.codec.form import Unfit, Unresolved, short

HINT = (
    "imported only under TYPE_CHECKING, or defined later in the same function? a worker needs it at run time: "
    "import it, or define it before the handler"
)


@dataclass(frozen=True, slots=True)
class Scope:
    """The names that an annotation may use: those of its module, and those of the function around it."""

    module: dict[str, Any]
    local: Mapping[str, Any]

    def evaluate(self, annotation: str | ForwardRef) -> Any:
        """Raises Unresolved for a name that may be known later, Unfit for what is no annotation at all."""
        text = annotation if isinstance(annotation, str) else annotation.__forward_arg__
        names = self.module
        if module := getattr(annotation, "__forward_module__", None):  # a TypedDict's, of the module it is from
            names = names_of_module(module if isinstance(module, str) else module.__name__)
        try:
            return eval(text, names, self.local)
        except (NameError, AttributeError) as error:  # AttributeError: a module that is still being imported
            raise unresolved(error, names) from error
        except Exception as error:
            raise Unfit(f"the annotation {short(text)} cannot be evaluated: {error}") from error

    def inside(self, cls: type[Any]) -> Scope:
        """The scope of a class's own annotations; a class made in a function sees that function's names too."""
        is_local = "<locals>" in cls.__qualname__ and cls.__module__ == self.module.get("__name__")
        return Scope(names_of_module(cls.__module__), {**(self.local if is_local else {}), cls.__name__: cls})


def unresolved(error: NameError | AttributeError, names: Mapping[str, Any]) -> Unresolved:
    return Unresolved(f"{error} in {names.get('__name__', '?')} ({HINT})")


def names_of_module(name: str) -> dict[str, Any]:
    module = sys.modules.get(name)
    return {} if module is None else vars(module)


def types_among(local: Mapping[str, Any] | None, module: Mapping[str, Any]) -> dict[str, Any]:
    """The types among a function's locals: a postponed codec must not keep all its other objects alive."""
    if local is None or local is module:
        return {}
    return {name: value for name, value in local.items() if is_type_like(value)}


def is_type_like(value: object) -> bool:
    return isinstance(value, type | GenericAlias | UnionType | ModuleType) or type(value).__module__ in {
        "typing",
        "typing_extensions",
    }


def signature_of(function: Any) -> inspect.Signature:
    """The signature with annotations as they were written. Raises ValueError or TypeError where there is none."""
    if sys.version_info >= (3, 14):  # annotations are evaluated lazily there: keep unknown names as ForwardRef
        from annotationlib import Format

        return inspect.signature(function, annotation_format=Format.FORWARDREF)
    return inspect.signature(function)


def own_annotations(cls: type[Any]) -> Mapping[str, Any]:
    """The annotations in a class's body, without those of its bases."""
    if sys.version_info >= (3, 14):
        from annotationlib import Format, get_annotations

        return get_annotations(cls, format=Format.FORWARDREF)
    return inspect.get_annotations(cls)


def owner_of(cls: type[Any], field: str) -> type[Any]:
    """The class in whose body a field was annotated: its names are those that the annotation means."""
    return next((base for base in cls.__mro__ if field in own_annotations(base)), cls)
