"""The signature is the schema: a function's parameters, compiled once to what encodes and decodes its args."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from jobq import masking
from jobq.codec.annotations import Scope, types_among
from jobq.codec.compiler import Compiler
from jobq.codec.exact import Exact
from jobq.codec.form import Form, Misfit, Unfit, Unresolved, short, step
from jobq.codec.functions import innermost, parameters_of
from jobq.codec.plain import ANY, AS_THEY_ARE
from jobq.codec.secret import secret_form
from jobq.codec.text import dump, load
from jobq.errors import ArgsError, RegistrationError

UNTYPED = Exact("pass the JSON that the handler's parameter takes, or enqueue with the handler itself", tuples=True)


class Codec:
    """Checks a handler's arguments and turns them into JSON text, and back.

    Strict on both sides: `encode` takes the Python types of the annotations, `decode` their one JSON form.
    A codec whose annotations name something unknown at decoration is postponed: until it is used, or `resolve`d.
    """

    def __init__(self, parameters: Mapping[str, inspect.Parameter], scope: Scope) -> None:
        self.parameters = tuple(parameters)
        self.required = frozenset(name for name, parameter in parameters.items() if is_required(parameter))
        self.positional = tuple(name for name, parameter in parameters.items() if is_positional(parameter))
        self._annotations = {name: parameter.annotation for name, parameter in parameters.items()}
        self._encodes: dict[str, Callable[[Any], Any]] = {}
        self._decodes: dict[str, Callable[[Any], Any]] = {}
        self._forms: Mapping[str, Form] = {}
        self._exact: dict[str, Any] = {}
        self._nests = False
        self._secrets: frozenset[str] = frozenset()
        self._postponed: Scope | None = scope

    @classmethod
    def of(cls, function: Callable[..., Any], *, localns: Mapping[str, Any] | None = None) -> Codec:
        """The codec of a function; `localns` are the names around its definition, for types defined in functions.

        Raises: RegistrationError, when it cannot be a handler; names that are not known yet are postponed.
        """
        parameters = parameters_of(function)
        inner = innermost(function)
        module = getattr(inner, "__globals__", {})
        variables = {variable.__name__: variable for variable in getattr(inner, "__type_params__", ())}
        codec = cls(parameters, Scope(module, {**variables, **types_among(localns, module)}))
        codec._compile()
        return codec

    @property
    def can_be_called_without_arguments(self) -> bool:
        return not self.required

    @property
    def forms(self) -> Mapping[str, Form]:
        """How the values of each parameter travel. Raises: RegistrationError, as `resolve`."""
        if self._postponed is not None:
            self.resolve()
        return self._forms

    @property
    def secrets(self) -> frozenset[str]:
        """The parameters that are `jobq.Secret[...]`, hold one, or are called like one. Raises: as `resolve`."""
        if self._postponed is not None:
            self.resolve()
        return self._secrets

    def resolve(self) -> None:
        """Raises: RegistrationError, when a name in an annotation is still unknown."""
        if (reason := self._compile()) is not None:
            raise RegistrationError(reason)

    def encode(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """The JSON text of the arguments that were passed; defaults are not filled in. Keys are sorted.

        Raises: ArgsError, which names the path.
        """
        if self._postponed is not None:
            self.resolve()
        given = self._bind(args, kwargs) if args else kwargs
        try:
            return dump(self._convert(given, self._encodes), nests=self._nests)
        except Misfit as misfit:
            raise misfit.error() from misfit.__cause__
        except RecursionError:
            raise ArgsError("args", "nested too deep, or a value contains itself") from None

    def encode_together(self, rows: Sequence[Mapping[str, Any]]) -> str | None:
        """The texts of many rows with commas between, at a fifth of the cost. Raises: RegistrationError, as `resolve`.

        None where only `encode` can say more: a row does not fit, some are long, or may be nested too deep.
        """
        if self._postponed is not None:
            self.resolve()
        if self._nests:
            return None
        try:
            return dump([self._convert(row, self._encodes) for row in rows], nests=False)[1:-1]
        except (ArgsError, Misfit, RecursionError):
            return None

    def decode(self, text: str) -> dict[str, Any]:
        """Keyword arguments for the function; those that are not in `text` are left to its defaults.

        Raises: ArgsError, for whatever is wrong with `text`.
        """
        if self._postponed is not None:
            self.resolve()
        try:
            if self._secrets:
                masking.begin()
                return masking.remember(self._convert(load(text, nests=self._nests), self._decodes))
            tree = load(text, nests=self._nests)
            return tree if self._is_exact(tree) else self._convert(tree, self._decodes)
        except Misfit as misfit:
            raise misfit.error() from misfit.__cause__
        except RecursionError:
            raise ArgsError("args", "nested too deep") from None

    def _is_exact(self, tree: dict[str, Any]) -> bool:
        """Whether each argument travels as what it is, and is of that type: a call for each would cost more."""
        exact = self._exact
        for name, value in tree.items():
            if exact.get(name) is not type(value):
                return False
        return self.required <= tree.keys()

    def _bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """`inspect.Signature.bind` costs 3 us for five parameters; this one 0.3."""
        if len(args) > len(self.positional):
            raise ArgsError("args", f"takes {len(self.positional)} positional arguments, got {len(args)}")
        given = dict(zip(self.positional, args, strict=False))
        if twice := given.keys() & kwargs.keys():
            raise ArgsError(f"args.{min(twice)}", "given twice, by position and by name")
        return {**given, **kwargs}

    def _convert(self, given: Mapping[str, Any], converts: Mapping[str, Callable[[Any], Any]]) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name, value in given.items():
            convert = converts.get(name)
            if convert is None:
                raise ArgsError(
                    f"args{step(name)}", f"unknown argument (known: {', '.join(self.parameters) or 'none'})"
                )
            try:
                out[name] = convert(value)
            except Misfit as misfit:
                misfit.steps.append(f".{name}")
                raise
        if missing := self.required.difference(out):
            raise ArgsError(f"args.{next(name for name in self.parameters if name in missing)}", "missing")
        return out

    def _compile(self) -> str | None:
        """The first name that is not known yet, as the text of an error. What can never work is raised at once."""
        if self._postponed is None:
            return None
        compiler = Compiler(self._postponed)
        forms: dict[str, Form] = {}
        secrets: set[str] = set()
        unknown: str | None = None
        for name, annotation in self._annotations.items():
            compiler.seen.has_secret = False
            try:
                forms[name] = ANY if annotation is inspect.Parameter.empty else compiler.form(annotation)
            except Unfit as reason:
                raise RegistrationError(f"parameter {name!r}: {reason}") from reason.__cause__
            except RecursionError:
                raise RegistrationError(f"parameter {name!r}: a type that grows with each level has no end") from None
            except Unresolved as reason:
                unknown = unknown or f"parameter {name!r}: {reason}"
            if compiler.seen.has_secret or masking.is_secret(name):
                secrets.add(name)
            if name in forms and masking.is_secret(name) and not compiler.seen.has_secret:
                forms[name] = secret_form(forms[name], numbers=False)  # `max_token: int` is a number in many texts
        if unknown is None:
            self._settle(forms, secrets)
        return unknown

    def _settle(self, forms: Mapping[str, Form], secrets: Iterable[str]) -> None:
        self._forms = forms
        self._encodes = {name: form.encode for name, form in forms.items()}
        self._decodes = {name: form.decode for name, form in forms.items()}
        self._exact = {name: form.python for name, form in forms.items() if form.decode in AS_THEY_ARE}
        self._nests = any(form.nests for form in forms.values())
        self._secrets = frozenset(secrets)
        self._postponed = None  # last: another thread may be looking


def is_required(parameter: inspect.Parameter) -> bool:
    return parameter.default is inspect.Parameter.empty


def is_positional(parameter: inspect.Parameter) -> bool:
    return parameter.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD


def encode_untyped(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """The JSON text of arguments for a handler that is not at hand (`jobq.kind`): JSON values; a tuple is an array.

    Raises: ArgsError, which names the path.
    """
    if args:
        raise ArgsError("args", f"jobq.kind() takes arguments by name only, got {short(args)} by position")
    try:
        return dump(UNTYPED.encode(dict(kwargs), depth=0), nests=True)
    except Misfit as misfit:
        raise misfit.error() from misfit.__cause__
