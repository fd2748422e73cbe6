"""What is taken for secret, and how it is kept out of structures and texts."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from jobq import masking
from jobq.errors import OptionError
from jobq.masking import is_secret, mask, mask_all, masked, note, remember

SECRET = 'hunter2 "ä/'


@pytest.fixture(autouse=True)
def nothing_remembered() -> Iterator[None]:
    gc.collect()  # arguments of other tests, which would end in the middle of this one
    masking._recent.clear()
    yield
    masking._recent.clear()


@pytest.mark.parametrize(
    "key",
    [
        *(
            "password",
            "PASSWORD",
            "db_password",
            "passwd",
            "passphrase",
            "passcode",
            "secret",
            "client_secret",
            "token",
        ),
        *("accessToken", "access-token", "token_id", "Authorization", "api_key", "apikey", "API-Key", "private_key"),
        *("credential", "aws.credentials"),
    ],
)
def test_a_key_like_these_is_secret(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key", ["to", "max_tokens", "tokenizer", "compass", "secretary", "passenger", "author", "key", ""]
)
def test_a_key_like_these_is_not(key: str) -> None:
    assert not is_secret(key)


def test_the_keys_can_be_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_SECRET_KEYS", "^iban$|ssn")

    assert [key for key in ("iban", "my_ssn", "password", "ibanking") if is_secret(key)] == ["iban", "my_ssn"]


def test_a_choice_that_is_no_regular_expression_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JOBQ_SECRET_KEYS", "(")

    with pytest.raises(OptionError, match="JOBQ_SECRET_KEYS is no regular expression"):
        is_secret("password")


def test_a_structure_is_shown_without_what_stands_under_secret_keys() -> None:
    args = {"to": "a", "auth": {"password": "x", "user": "b"}, "many": [{"token": 1}], "pin": [1, 2]}

    assert masked(args, ["pin"]) == {
        "to": "a",
        "auth": {"password": "***", "user": "b"},
        "many": [{"token": "***"}],
        "pin": "***",
    }
    assert masked("text") == "text"
    assert masked(None) is None


def test_a_text_is_shown_without_the_values_of_arguments_that_are_there() -> None:
    note({"a": [SECRET, 123456], "b": True})
    arguments = remember({"token": SECRET})

    said = f"{SECRET} {SECRET!r} 123456 hunter2%20%22%C3%A4%2F hunter2+%22%C3%A4%2F hunter2%20%22%C3%A4/ True"

    assert mask(said) == "*** '***' *** *** *** *** True"
    assert arguments == {"token": SECRET}


def test_they_are_remembered_a_while_longer_and_then_forgotten() -> None:
    note(SECRET)
    arguments = remember({})
    del arguments
    gc.collect()
    assert mask(SECRET) == "***"

    for n in range(masking.REMEMBERED):
        note(f"another {n}")
        remember({})

    assert mask(SECRET) == SECRET
    assert masking._live == {}


def test_a_call_without_a_secret_leaves_nothing_behind() -> None:
    note("abc")  # too short: every other text would be full of it
    remember({})

    assert masking._live == {}
    assert list(masking._recent) == []


def test_a_longer_secret_goes_before_one_that_it_begins_with() -> None:
    note(["hunter", "hunter2000"])
    arguments = remember({})

    assert mask("hunter2000 hunter") == "*** ***"
    assert arguments == {}


def test_all_texts_of_a_structure_are_masked_whatever_it_contains() -> None:
    note(SECRET)
    arguments = remember({})
    cycle: list[object] = [SECRET]
    cycle.append(cycle)

    assert mask_all({SECRET: (1, SECRET, None), (1,): {}}) == {"***": [1, "***", None], (1,): {}}
    assert mask_all(cycle) == ["***", "***"]
    assert arguments == {}
