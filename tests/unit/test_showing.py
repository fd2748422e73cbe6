"""JSON text without secrets, for args that Python cannot parse."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from jobq.masking import masked
from jobq.showing import without_secrets_in_text

KEYS = st.sampled_from(["card", "password", "to", '"', "\\", 'a": "', "{", ",", "é"]) | st.text(max_size=5)
LEAVES = st.none() | st.booleans() | st.integers() | KEYS
TREES = st.recursive(
    LEAVES, lambda tree: st.lists(tree, max_size=3) | st.dictionaries(KEYS, tree, max_size=3), max_leaves=20
)


@given(st.dictionaries(KEYS, TREES, max_size=4), st.sampled_from([None, 2]), st.booleans())
def test_a_text_is_masked_as_the_structure_is(args: dict[str, Any], indent: int | None, ascii_only: bool) -> None:
    text = json.dumps(args, indent=indent, ensure_ascii=ascii_only)

    assert json.loads(without_secrets_in_text(text, ["card"])) == masked(args, ["card"])


def test_what_is_not_secret_stands_as_it_was() -> None:
    text = '{"n": 1e999, "deep": ' + "[" * 5_000 + "]" * 5_000 + ', "card": {"a": [1, "}"]}, "to": {"card": 1}}'

    shown = without_secrets_in_text(text, ["card"])

    assert shown == text.replace('{"a": [1, "}"]}', '"***"')
