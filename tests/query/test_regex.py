"""Patterns of clients, what a core may do with them, and wildcards in paths."""

from __future__ import annotations

import ctypes
import ctypes.util
import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from monrest.base.errors import BadRequest
from monrest.query.regex import (
    MOST_PATTERN,
    MOST_TEXT,
    SPECIAL,
    compile_pattern,
    escape,
    pushability,
    wildcard,
)
from tests.examples import examples
from tests.table import each


def found(pattern: str, text: str, *, ignore_case: bool = False) -> bool:
    return compile_pattern(pattern, ignore_case=ignore_case, parameter="x").matches(text)


@each(
    ("pattern", "text", "ignore_case", "expected"),
    [
        ("web", "my web01", False, True), ("web", "WEB", False, False), ("WEB", "web", True, True),
        ("^web", "web01", False, True), ("^web", "my web01", False, False),
        ("b01$", "web01", False, True), ("^$", "", False, True), ("^$", "x", False, False),
        ("", "", False, True), ("", "x", True, True), ("a|b", "xb", False, True),
        ("Ü$", "web ü", True, True), ("ü", "web Ü", False, False), ("^.$", "ü", False, True),
        (r"^\w{4}\d\d?$", "leaf01", False, True), (r"\bdisk\b", "the DISK /", True, True),
        ("(?i)WEB", "web", False, True), (r"a\.b", "axb", False, False), ("[[:digit:]]", "a1", False, True),
        ("😀", "x😀", False, True), ("a.b", "a\nb", False, False),
    ],
)  # fmt: skip
def test_search(pattern: str, text: str, ignore_case: bool, expected: bool) -> None:
    assert found(pattern, text, ignore_case=ignore_case) is expected


@pytest.mark.parametrize("text", ["\u212a", "\u017f"])
def test_letters_that_most_cores_do_not_fold_are_not_folded_here(text: str) -> None:
    assert not found("[ks]", text, ignore_case=True)
    assert not found("k", text, ignore_case=True)
    assert not found("s", text, ignore_case=True)
    assert found(".", text, ignore_case=True)
    assert found(text, text, ignore_case=True)


@each(
    "pattern",
    ["(", ")", "[", "[z-a]", "*a", "a**", "a{2,1}", "a{1001}", r"\1", "(?=a)", "(?<!a)b", "(?>a)",
     r"\Z", "\\", "(?P<n>a", r"\pX", "(" * 1001, "a\ud800", "((a{100}){100}){100}", r"\pL{1000}", r"\pL{10}", r"(\pL{0,30}){0,9}"],
)  # fmt: skip
def test_what_cannot_be_done_is_refused_by_name(pattern: str) -> None:
    with pytest.raises(BadRequest) as caught:
        compile_pattern(pattern, ignore_case=True, parameter="name[regex]")
    assert caught.value.message == "error during request"
    description = caught.value.description
    assert description.startswith(
        f"name[regex]: invalid regex in {pattern[:5].encode('utf-8', 'replace').decode()}"
    )
    assert len(description) < 250
    description.encode()


def test_the_length_is_limited_in_bytes() -> None:
    compile_pattern("x" * MOST_PATTERN, ignore_case=False, parameter="q")
    for pattern in ("x" * (MOST_PATTERN + 1), "ü" * (MOST_PATTERN // 2 + 1)):
        with pytest.raises(BadRequest) as caught:
            compile_pattern(pattern, ignore_case=False, parameter="q")
        assert caught.value.description.startswith("q: regular expressions have at most 1024 bytes")


@pytest.mark.parametrize("pattern", ["z", "z+$", "(?i)Z$"])
def test_only_the_first_64_kib_are_looked_at(pattern: str) -> None:
    compiled = compile_pattern(pattern, ignore_case=False, parameter="x")
    assert compiled.matches("a" * (MOST_TEXT - 1) + "z")
    assert not compiled.matches("a" * MOST_TEXT + "z")


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("^(a+)+$", "a" * 50_000 + "!"),
        ("(a|a)*b", "a" * 50_000),
        ("(a*)*b", "a" * 50_000),
        ("(.*)(.*)(.*)(.*)(.*)x", "a" * 50_000),
        ("(x+x+)+y", "x" * 50_000),
        ("a?" * 300 + "a" * 300, "a" * 299),
    ],
)
def test_patterns_that_stop_other_engines_end(pattern: str, text: str) -> None:
    assert not found(pattern, text)


@pytest.mark.parametrize(
    ("pattern", "text", "expected"),
    [
        ("a.{500}$", "a" + "ab" * 250, True),
        ("a.{500}$", "b" * 900, False),
        ("(a|b)*a(a|b){401}$", "ab" * 700, True),
        ("(a|b)*ca(a|b){401}$", "ab" * 700, False),
        ("(?i)" + "k" * 1000, "K" * 1000, True),
        (r"(?i)\pL\pL\pL\pL$", "12 äöüß", True),
        ("((((a?){10}){10}){10})bb", "a" * 3000 + "b", False),
        ("((((a?){10}){10}){10})bb", "a" * 3000 + "bb", True),
    ],
)
def test_large_programs(pattern: str, text: str, expected: bool) -> None:
    assert found(pattern, text) is expected


@given(st.text(), st.text(), st.booleans())
def test_escaped_text_is_found_where_it_stands(text: str, around: str, ignore_case: bool) -> None:
    assume(len(text.encode("utf-8", "replace")) < 300 and max(text, default="") < "\ud800")
    pattern = compile_pattern(escape(text), ignore_case=ignore_case, parameter="x")
    assert pattern.matches(around + text + around)
    if not ignore_case:
        assert pattern.matches(around) is (text in around)


@pytest.mark.parametrize(
    ("pattern", "replacement", "text", "expected"),
    [
        ("[0-9]+", "X", "web01", "webX"), ("[0-9]", "X", "web01", "webXX"), ("o", "", "foo", "f"),
        ("(o)", "$1", "foo", "f$1$1"), ("(o)", r"\1\0&", "foo", r"f\1\0&\1\0&"), ("x", "y", "foo", "foo"),
        ("ü", "ue", "grün ü", "gruen ue"), ("^", ">", "foo", ">foo"), ("$", "<", "foo", "foo<"),
        ("x*", "-", "abc", "-a-b-c-"), ("a", "😀", "ab", "😀b"), ("(?i)F", "g", "foo", "goo"),
        ("^a+", "b", "", ""), ("x*", "-", "xa", "--a-"), (r"\b", "|", "ab cd", "|ab| |cd|"),
        ("$|o", "<", "foo", "f<<<"), ("^|o", ">", "foo", ">f>>"), ("", "-", "aü", "-a-ü-"),
    ],
)  # fmt: skip
def test_replacement_is_literal(pattern: str, replacement: str, text: str, expected: str) -> None:
    compiled = compile_pattern(pattern, ignore_case=False, parameter="x")
    assert compiled.sub(replacement, text) == expected


def test_replacement_keeps_what_follows_the_limit() -> None:
    compiled = compile_pattern("[ab]", ignore_case=False, parameter="x")
    assert compiled.sub("", "a" * MOST_TEXT + "bb") == "bb"


@given(st.text(alphabet="abü\n\ud800", max_size=30), st.text(max_size=3))
def test_literal_replacement_is_that_of_texts(text: str, replacement: str) -> None:
    expected = text.replace("\ud800", "?").replace("a", replacement) if "a" in text else text
    assert compile_pattern("a", ignore_case=False, parameter="x").sub(replacement, text) == expected


EXACT = ["web", "^web", "web01$", "^web01$", "web.*", ".*web", ".*web.*", ".*", "a|b", "^a|b$",
         "^(a|b)$", "(a|b)c", "(a|b)?c", "ab+c?", "(ab)+", r"web\.example", r"a\\b", r"\(x\)",
         "Disk /var", "a b", "it's", "50%", "a-b_c:d,e;f/g@h&i=j!k<l>m~n\"o#p", "[abc]", "[ab]*c",
         "[0-9]+", "[0-9][0-9]", "[_.,/@ ]", ".*a|.*b", "web.*|db.*", "(a)(b)", "((a))"]  # fmt: skip

WIDER = ["web.*1", "a.+b", "^.*a", "a.*$", "[a-z]+[0-9]", "^[A-Z]", "[^a]*x", "a[^/]+$", "(a.*)"]

HERE = ["", "a.b", ".", "^.$", "a{2}", "a{", "}", r"\d", r"\w+", r"\bweb", "(?i)a", "(?:a)", "(?=a)",
        "ü", "😀", " a", "a ", "\ta", "a\n", "a\nb", "()", "a||b", "|a", "a|", "^", "$", "^$", "a^b", "a$b",
        "(a+)+", "(a|b)*", "(a*b)+", "(^a)+", "(a$)?", "a*?", "a++", "a**", "^*", "a*b*c*", "a?b?c?d?e?",
        "[^a]", "[]a]", "[a-]", "[-a]", "[a-Z]", "[z-a]", "[0-a]", "[^a-z]+", "[[:alpha:]]", "[a&&b]",
        r"[\d]", r"[\]]", "[", "[a", "[^", "]", "a]", "(", ")", "(a", "a)", "\\", "a\\", r"\-", r"\<",
        r"\/", r"\]", "+", "?", "*", "(" * 30 + "a" + ")" * 30, "a\x7f", "a`"]  # fmt: skip


@each("pattern", EXACT)
def test_exact(pattern: str) -> None:
    assert pushability(pattern, ignore_case=False) == "exact"
    expected = "wider" if {"k", "s"} & set(pattern.lower()) else "exact"
    assert pushability(pattern, ignore_case=True) == expected


@pytest.mark.parametrize("pattern", ["k", "K", "s", "S", "[ks]", "disk", "ss", "ff", "Fi", "fL"])
def test_letters_that_some_engines_fold_further_are_looked_at_again(pattern: str) -> None:
    assert pushability(pattern, ignore_case=False) == "exact"
    assert pushability(pattern, ignore_case=True) == "wider"
    assert not found(pattern, "\u212a \u017f ß ẞ ﬀ ﬁ ﬂ ﬃ ﬄ ﬅ ﬆ", ignore_case=True)


@pytest.mark.parametrize("pattern", WIDER)
def test_wider(pattern: str) -> None:
    assert pushability(pattern, ignore_case=False) == "wider"
    expected = "no" if "[^" in pattern else "wider"
    assert pushability(pattern, ignore_case=True) == expected


@each("pattern", HERE)
def test_kept_here(pattern: str) -> None:
    assert pushability(pattern, ignore_case=False) == "no"
    assert pushability(pattern, ignore_case=True) == "no"


PIECES = ["a", "b", "K", "7", "-", " ", ".*", ".+", "\\.", "[ab]", "[a-c]", "[^a]*", "(ab)", "(a|b)",
          "a*", "b+", "a?", "(ab)?", "|", "^", "$", "(", ")", "[", "{2}", "."]  # fmt: skip
PATTERNS = st.lists(st.sampled_from(PIECES), min_size=1, max_size=6).map("".join)
LINES = st.text(alphabet="abcKk7-. é€😀", max_size=8)


@given(PATTERNS, LINES, st.booleans())
@settings(max_examples=examples(400))
def test_an_engine_that_reads_bytes_and_backtracks_agrees(
    pattern: str, text: str, ignore_case: bool
) -> None:
    how = pushability(pattern, ignore_case=ignore_case)
    assume(how != "no")
    flags = re.DOTALL | (re.IGNORECASE if ignore_case else re.NOFLAG)
    theirs = re.search(pattern.encode(), text.encode(), flags) is not None
    ours = found(pattern, text, ignore_case=ignore_case)
    assert theirs or not ours
    if how == "exact":
        assert theirs is ours


@pytest.fixture(scope="module")
def posix() -> ctypes.CDLL:
    name = ctypes.util.find_library("c")
    if name is None:
        pytest.skip("no C library with regcomp here")
    return ctypes.CDLL(name)


@given(pattern=PATTERNS, text=LINES, ignore_case=st.booleans())
@example(pattern="a|b", text="b", ignore_case=False)
@settings(max_examples=examples(400))
def test_the_c_library_agrees(
    posix: ctypes.CDLL, pattern: str, text: str, ignore_case: bool
) -> None:
    how = pushability(pattern, ignore_case=ignore_case)
    assume(how != "no")
    # A regex_t of any C library fits; the flags are extended syntax and no report of positions.
    compiled = ctypes.create_string_buffer(1024)
    flags = 1 | (2 if ignore_case else 0)
    assert posix.regcomp(compiled, pattern.encode(), flags) == 0
    theirs = posix.regexec(compiled, text.encode(), 0, None, 0) == 0
    posix.regfree(compiled)
    ours = found(pattern, text, ignore_case=ignore_case)
    assert theirs or not ours
    if how == "exact":
        assert theirs is ours


@given(st.text(alphabet="ab0.*+?^$|()[]{}\\-, ü\n", max_size=20) | st.text(max_size=20))
def test_what_is_pushed_is_a_valid_pattern_of_ours(pattern: str) -> None:
    if pushability(pattern, ignore_case=True) != "no":
        compile_pattern(pattern, ignore_case=True, parameter="x")
        assert pattern.isascii()
        assert pattern == pattern.strip()
        assert "{" not in pattern


@each(
    ("segment", "expected"),
    [
        ("web01", ("=", "web01")), ("p.ng", ("=", "p.ng")), ("WEB01", ("=", "WEB01")),
        ("C:\\ (sys)+?$", ("=", "C:\\ (sys)+?$")), ("", ("=", "")), ("a+b", ("=", "a+b")),
        ("web*", ("~~", "^web")), ("web.*", ("~~", "^web")), ("*ping", ("~~", "ping$")),
        ("*ping*", ("~~", "ping")), ("w*b", ("~~", "^w.*b$")), ("a*b*c", ("~~", "^a.*b.*c$")),
        ("*", ("~~", ".*")), ("**", ("~~", ".*")), (".*", ("~~", ".*")), ("a**b", ("~~", "^a.*b$")),
        ("a.b*", ("~~", "^a\\.b")), ("C:\\*", ("~~", "^C:\\\\")), ("(a)*", ("~~", "^\\(a\\)")),
        ("a+*", ("~~", "^a\\+")),
        ("web|db", ("~~", "web|db")), ("web|db*", ("~~", "web|db.*")), ("^p", ("~~", "^p")),
        ("[ab]c", ("~~", "[ab]c")), ("a{2}", ("~~", "a{2}")), ("^a.*", ("~~", "^a.*")),
    ],
)  # fmt: skip
def test_wildcards(segment: str, expected: tuple[str, str]) -> None:
    assert wildcard(segment) == expected


@pytest.mark.parametrize("segment", ["[", "a{9999}", "(|", "web*|(", "x" * 2000 + "*"])
def test_invalid_wildcards_are_refused(segment: str) -> None:
    with pytest.raises(BadRequest) as caught:
        wildcard(segment)
    assert caught.value.description.startswith("path: ")


@given(st.text(alphabet="aB.*ü +\\", max_size=8), st.text(alphabet="aBbAü.+\\ ", max_size=8))
@example("a*", "a*")
def test_stars_match_the_whole_name(segment: str, name: str) -> None:
    op, value = wildcard(segment)
    if op == "=":
        assert "*" not in segment
        return
    parts = [re.escape(part) for part in segment.replace(".*", "*").split("*")]
    expected = re.fullmatch(".*".join(parts), name, re.IGNORECASE) is not None
    assert found(value, name, ignore_case=True) is expected


@pytest.mark.parametrize("segment", ["web*", "*ping", "*ping*", "*", "Load /*"])
def test_usual_wildcards_may_be_evaluated_by_cores(segment: str) -> None:
    assert pushability(wildcard(segment)[1], ignore_case=True) == "exact"


def test_special_characters_are_those_of_the_engine() -> None:
    for code in range(0x20, 0x7F):
        one = chr(code)
        try:
            plain = found(f"^{one}$", one) and not found(f"^{one}$", "x" if one != "x" else "y")
        except BadRequest:
            plain = False
        assert plain is (one not in SPECIAL) or one in "]}{"
