from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

from jobq.codec import Codec
from jobq.errors import ArgsError, RegistrationError


@dataclass(frozen=True)
class Trial:
    """One parameter `x` of one annotation: what enqueue sends, what claim gives, and how each refuses."""

    codec: Codec

    def send(self, value: Any) -> Any:
        return json.loads(self.codec.encode((value,), {}))["x"]

    def receive(self, tree: Any) -> Any:
        return self.codec.decode(json.dumps({"x": tree}))["x"]

    def round_trip(self, value: Any) -> Any:
        return self.codec.decode(self.codec.encode((value,), {}))["x"]

    def send_error(self, value: Any) -> str:
        with pytest.raises(ArgsError) as caught:
            self.codec.encode((value,), {})
        return str(caught.value)

    def receive_error(self, tree: Any) -> str:
        with pytest.raises(ArgsError) as caught:
            self.receive(tree)
        return str(caught.value)


def codec_of(annotation: Any, localns: dict[str, Any] | None = None) -> Codec:
    def handler(x: Any) -> None: ...

    handler.__annotations__["x"] = annotation
    return Codec.of(handler, localns=localns)


@pytest.fixture
def trial() -> Callable[..., Trial]:
    return lambda annotation: Trial(codec_of(annotation))


@pytest.fixture
def refusal() -> Callable[[Any], str]:
    """The text of the RegistrationError for an annotation that no handler can have."""

    def text(annotation: Any) -> str:
        with pytest.raises(RegistrationError) as caught:
            codec_of(annotation)
        return str(caught.value)

    return text
