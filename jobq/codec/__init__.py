"""Arguments to JSON text and back: one strict codec for every plain type, the standard library alone.

form -> walk -> text, exact -> plain, standard, choice, compound, union, classes, models -> compiler -> signature
"""

from __future__ import annotations

from jobq.codec.functions import is_async
from jobq.codec.signature import Codec, encode_untyped
from jobq.codec.text import MAX_BYTES

__all__ = ["MAX_BYTES", "Codec", "encode_untyped", "is_async"]
