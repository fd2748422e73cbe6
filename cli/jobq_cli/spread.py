"""Options that commands share, as a dataclass: a parameter of that type stands for its fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import is_dataclass
from functools import wraps
from typing import Any, get_type_hints


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """The command with each parameter of a dataclass's type replaced by the fields of that, for typer to read.

    Their annotations are those of options; each has a default.
    """
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {name: kind for name, kind in hints.items() if is_dataclass(kind)}
    members = {name: get_type_hints(kind, include_extras=True) for name, kind in groups.items()}
    parameters: list[inspect.Parameter] = []
    for name, parameter in inspect.signature(command).parameters.items():
        if name in groups:
            parameters += _fields_of(groups[name], members[name])
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=inspect.Parameter.KEYWORD_ONLY))

    @wraps(command)
    def spread_out(**values: Any) -> None:
        gathered = {name: kind(**{each: values.pop(each) for each in members[name]}) for name, kind in groups.items()}
        command(**gathered, **values)

    spread_out.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    spread_out.__annotations__ = {each.name: each.annotation for each in parameters}
    del spread_out.__wrapped__  # else typer would read the signature of that
    return spread_out


def _fields_of(group: Any, members: dict[str, Any]) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            name, inspect.Parameter.KEYWORD_ONLY, default=group.__dataclass_fields__[name].default, annotation=hint
        )
        for name, hint in members.items()
    ]
