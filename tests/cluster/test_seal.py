"""Seals: only who has the key makes them, and each is good for one call."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.cluster import seal
from monrest.cluster.model import PeerError, Pong

KEY, OTHER = seal.key_of("a" * 32), seal.key_of("b" * 32)
URL = "http://node:8080"
ANSWER = {
    "time": 1.5, "node_id": "7", "run": 3, "hostname": "h", "version": "1", "pid": 4,
    "maintenance": 0, "ready": True,
}  # fmt: skip


def test_a_call_and_its_answer():
    number = seal.new_number()
    credentials = seal.of_call(KEY, number, URL)
    assert seal.number_of_call(KEY, credentials, URL) == number
    answer = seal.sealed(KEY, number, ANSWER)
    assert seal.is_sealed(KEY, number, answer)
    assert Pong.read(answer).document["node_id"] == "7"


def test_the_secret_key_itself_is_not_the_key():
    assert b"a" * 16 not in KEY
    assert KEY != OTHER
    assert len(KEY) == 32


@pytest.mark.parametrize("url", ["http://other:8080", "", URL + "/", "\ud800", "http://n\x00de"])
def test_a_call_to_another_url(url):
    credentials = seal.of_call(KEY, seal.new_number(), URL)
    assert seal.number_of_call(KEY, credentials, url) is None


def test_a_number_is_good_for_one_call():
    used = seal.Used()
    numbers = [seal.new_number() for _ in range(seal._REMEMBERED)]
    assert all(used.first(one) for one in numbers)
    assert not any(used.first(one) for one in numbers)
    assert used.first(seal.new_number())
    assert len(used._seen) == len(numbers)


@given(st.text(max_size=120), st.text(max_size=40))
def test_what_anybody_sends_is_no_call(text, url):
    assert seal.number_of_call(KEY, text, url) is None


@given(st.text("0123456789abcdef", min_size=32, max_size=32))
def test_a_seal_of_another_cluster(number):
    assert seal.number_of_call(KEY, seal.of_call(OTHER, number, URL), URL) is None
    assert not seal.is_sealed(KEY, number, seal.sealed(OTHER, number, ANSWER))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(st.sampled_from(sorted(ANSWER)), JSON)
def test_a_changed_answer(name, value):
    number = seal.new_number()
    answer = seal.sealed(KEY, number, ANSWER)
    if value != ANSWER[name] or type(value) is not type(ANSWER[name]):
        assert not seal.is_sealed(KEY, number, {**answer, name: value})
    assert not seal.is_sealed(KEY, seal.new_number(), answer)
    assert not seal.is_sealed(KEY, number, {**answer, seal.SEAL: value})


@given(st.sampled_from(sorted(ANSWER)), JSON)
def test_any_answer_is_read_or_refused(name, value):
    wanted = type(ANSWER[name])
    if type(value) is wanted or (name == "time" and type(value) is int):
        assert Pong.read({**ANSWER, name: value}) is not None
    else:
        with pytest.raises(PeerError, match=f"wrong answer: {name}"):
            Pong.read({**ANSWER, name: value})
    with pytest.raises(PeerError):
        Pong.read({key: one for key, one in ANSWER.items() if key != name})
