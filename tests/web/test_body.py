"""Parameters in bodies: form, multipart, relaxed JSON."""

import contextlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.web.body import EMPTY, Body, merged, read_body, reads_body

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"


def multipart(*pairs, boundary="xyz"):
    parts = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in pairs
    )
    return f"{parts}--{boundary}--\r\n".encode()


@pytest.mark.parametrize("kind", [FORM, f"{FORM}; charset=utf-8", "", FORM.upper()])
def test_forms(kind):
    body = read_body(b"a=1&b=x+y%26&a=2", kind)
    assert body == Body((("a", "1"), ("b", "x y&"), ("a", "2")))
    assert read_body(b"q=***a=%22b&c%22***\r\n", kind).parameters == (("q", '***a="b&c"***'),)


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("{}", ()),
        (' {"a": "x"} \n', (("a", "x"),)),
        ('{"a": ["x", "y"]}', (("a", "x"), ("a", "y"))),
        ('{"a": 1, "b": 1.5, "c": -3}', (("a", "1"), ("b", "1.5"), ("c", "-3"))),
        ('{"a": true, "b": false, "c": null}', (("a", "1"), ("b", "0"))),
        ('{"a": [1, null, true], "b": []}', (("a", "1"), ("a", "1"))),
        ('{"a[~]": "ü"}', (("a[~]", "ü"),)),
        ('{"a": "1",}', (("a", "1"),)),
        ('{"a": ["1", "2", ], }', (("a", "1"), ("a", "2"))),
        ('{# first\n"a": "1" # and "b": 2\n}', (("a", "1"),)),
        ('{"a": "# no comment, ]", } # end', (("a", "# no comment, ]"),)),
        ('{"a": "quote \\" # still,}",}', (("a", 'quote " # still,}'),)),
        ('{"a": 1, # x\n # y\n}', (("a", "1"),)),
    ],
)
def test_json(text, pairs):
    assert read_body(text.encode(), "application/json; charset=utf-8").parameters == pairs


def test_the_document_is_kept():
    assert read_body(b'{"a": [1], "b": null}', JSON).document == {"a": [1], "b": None}
    assert read_body(b"a=1", FORM).document is None


def test_a_list_is_a_document_without_parameters():
    assert read_body(b'["a", {"b": 1}]', JSON) == Body((), ["a", {"b": 1}], "")


@pytest.mark.parametrize("text", ['{"name": {"a": 1}}', '{"name": [[1]]}'])
def test_json_values_that_are_no_parameters(text):
    body = read_body(text.encode(), JSON)
    assert (body.parameters, body.structured) == ((), "name")
    assert read_body(b'{"name": [1, null]}', JSON).structured is None


@pytest.mark.parametrize("kind", ["", FORM, JSON, "text/plain", "multipart/form-data; boundary=x"])
@pytest.mark.parametrize("raw", [b"", b" \r\n"])
def test_empty_bodies(raw, kind):
    assert read_body(raw, kind) is EMPTY


def test_multipart():
    raw = multipart(("columns", "name"), ("q", 'a = "ü&"\nand b = 1'), ("columns", "state"))
    body = read_body(raw, "multipart/form-data; boundary=xyz")
    assert body.parameters == (
        ("columns", "name"),
        ("q", 'a = "ü&"\nand b = 1'),
        ("columns", "state"),
    )
    quoted = 'multipart/form-data; boundary="x y"'
    assert read_body(multipart(("a", "1"), boundary="x y"), quoted).parameters == (("a", "1"),)


def test_big_multipart_values_stay_whole():
    value = "x" * 300_000
    raw = multipart(("a", value), ("b", "2"))
    body = read_body(raw, "multipart/form-data; boundary=xyz")
    assert body.parameters == (("a", value), ("b", "2"))


def test_a_form_adds_and_json_replaces():
    query = (("a", "1"), ("b", "2"))
    assert merged(query, read_body(b"a=3", FORM)) == (("a", "1"), ("b", "2"), ("a", "3"))
    assert merged(query, read_body(b'{"a": [3, 4]}', JSON)) == (("b", "2"), ("a", "3"), ("a", "4"))
    assert merged(query, read_body(b'{"a": null}', JSON)) == query
    assert merged(query, read_body(b'{"a": []}', JSON)) == query
    assert merged(query, EMPTY) == query


@pytest.mark.parametrize(
    ("method", "kind", "read"),
    [
        ("GET", "", False),
        ("GET", "text/plain", False),
        ("GET", "application/json", True),
        ("DELETE", "Application/JSON; charset=utf-8", True),
        ("DELETE", "", False),
        ("HEAD", FORM, True),
        ("GET", "multipart/form-data; boundary=x", True),
        ("POST", "", True),
        ("PATCH", "text/plain", True),
    ],
)
def test_whose_body_counts(method, kind, read):
    assert reads_body(method, kind) is read


texts = st.text()
values = st.one_of(texts, st.booleans(), st.integers(-(2**53), 2**53), st.none())


@given(st.dictionaries(texts, st.one_of(values, st.lists(values, max_size=3)), max_size=5))
def test_any_object_gives_its_texts(document):
    body = read_body(json.dumps(document).encode(), JSON)
    for name, value in document.items():
        items = value if isinstance(value, list) else [value]
        expected = [
            item if isinstance(item, str) else str(int(item)) for item in items if item is not None
        ]
        assert [text for key, text in body.parameters if key == name] == expected


@given(st.dictionaries(texts, texts, max_size=4), st.text(alphabet="ab ,#\"'{}", max_size=20))
def test_relaxed_and_strict_json_agree(document, comment):
    lines = [f"{json.dumps(key)}: {json.dumps(value)}," for key, value in document.items()]
    relaxed = "{ #" + comment + "\n" + "\n".join(f"{line} # {comment}" for line in lines) + "\n}"
    assert read_body(relaxed.encode(), JSON).document == document


@given(
    st.binary(max_size=100), st.sampled_from(["", FORM, JSON, "multipart/form-data; boundary=x"])
)
def test_any_body_is_read_or_refused(raw, kind):
    with contextlib.suppress(BadRequest):
        assert isinstance(read_body(raw, kind), Body)
