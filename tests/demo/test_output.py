"""Output formats, their headers and what they do to texts."""

import json

from hypothesis import given
from hypothesis import strategies as st

from monrest.lql.answer import Format, spoil
from tests.table import each


def body(bench, *lines):
    code, text = bench.status(*lines)
    assert code == 200, text
    return text


def test_json_rows_are_joined_by_comma_and_newline(bench):
    text = body(bench, "GET hosts", "OutputFormat: json", "Columns: name state")
    assert text == '[["alpha",0],\n["beta",0],\n["gamma",0]]\n'


def test_empty_answers(bench):
    empty = ("Filter: name = x", "Columns: name")
    assert body(bench, "GET hosts", "OutputFormat: json", *empty) == "[]\n"
    assert body(bench, "GET hosts", *empty) == ""
    text = body(bench, "GET hosts", "OutputFormat: wrapped_json", *empty)
    assert json.loads(text) == {"data": [], "total_count": 0}
    headed = body(bench, "GET hosts", "OutputFormat: json", "Columns: name", "ColumnHeaders: on",
                  "Filter: name = x")  # fmt: skip
    assert headed == '[["name"]]\n'


def test_numbers(bench):
    host = bench.host("alpha")
    host.latency, host.last_update = 0.25, 1795000000.5
    columns = "Columns: latency check_interval last_update last_check"
    for kind, text in (
        ("json", "[[2.5000000000e-01,5.0000000000e+00,1795000000.500000,0]]\n"),
        ("csv", "2.5000000000e-01;5.0000000000e+00;1795000000.500000;0\n"),
    ):
        found = body(bench, "GET hosts", f"OutputFormat: {kind}", columns, "Filter: name = alpha")
        assert found == text


def test_headers_come_without_columns_or_when_asked_for(bench):
    assert bench.ask("GET contactgroups") == [
        ["alias", "id", "members", "name"], ["ops", 0, ["ann"], "ops"],
    ]  # fmt: skip
    assert bench.ask("GET contactgroups", "ColumnHeaders: off") == [["ops", 0, ["ann"], "ops"]]
    headed = bench.ask("GET hosts", "Columns: name nope", "ColumnHeaders: on", "Limit: 1")
    assert headed == [["name", "nope"], ["alpha", ""]]


def test_columns_may_come_on_several_lines(bench):
    rows = bench.ask("GET hosts", "Columns: name", "Columns: state alias", "Filter: name = beta")
    assert rows == [["beta", 0, "beta"]]


def test_wrapped_json_counts_rows_without_limit_and_offset(bench):
    text = body(bench, "GET hosts", "OutputFormat: wrapped_json", "Columns: name", "Limit: 1",
                "Offset: 1", "ColumnHeaders: on")  # fmt: skip
    found = {"columns": ["name"], "data": [["beta"]], "total_count": 3}
    assert json.loads(text) == found


def test_csv_is_raw(bench):
    bench.host("beta").notes = 'a;b "c"'
    rows = body(
        bench, "GET hosts", "Columns: name notes groups custom_variables", "Filter: notes !="
    )
    assert rows == "alpha;see $HOSTADDRESS$;both,red;COLOUR|red,SIZE|10\n" \
                   'beta;a;b "c";both;COLOUR|blue\n'  # fmt: skip
    pairs = body(bench, "GET servicegroups", "Columns: members")
    assert pairs == "alpha|disk /var,beta|C:\\ a; b\n"


def test_separators(bench):
    text = body(bench, "GET hosts", "Columns: name groups custom_variables services_with_state",
                "Separators: 10 1 2 3", "Filter: name = alpha")  # fmt: skip
    assert text == (
        "alpha\x01both\x02red\x01COLOUR\x03red\x02SIZE\x0310\x01"
        "disk /var\x030\x030\x02load\x030\x030\n"
    )


def test_python_format(bench):
    text = body(bench, "GET hosts", "OutputFormat: python", "Columns: alias groups state",
                "Filter: name = alpha")  # fmt: skip
    assert text == '[[u"Alpha \\u00fc",[u"both",u"red"],0]]\n'


def test_json_is_ascii_and_csv_is_not(bench):
    request = ("GET hosts", "Columns: alias", "Filter: name = alpha")
    assert body(bench, "GET hosts", "OutputFormat: json", *request[1:]) == '[["Alpha \\u00fc"]]\n'
    assert bench.raw("\n".join(request) + "\n\n") == "Alpha ü\n".encode()


@each(
    ("text", "shown"),
    [
        ("\U0001f600", "\u07c0"),
        ("\U0001f680", "\u07c0"),
        ("\U0001f4a9", "\u07e9"),
        ("a\U0001f600b", "a\u07c0b"),
        ("lat\udce9n", "lat"),
        ("lat\udce9", "lat"),
        ("x\udce9ny\tz", "xy\tz"),
        ("\\ud83d is text", "\\ud83d is text"),
        ("\\\U0001f600", "\\\u07c0"),
        ("tab\tand\x1f", "tab\tand\x1f"),
    ],
)
def test_what_json_spoils(bench, text, shown):
    bench.host("alpha").plugin_output = text
    rows = bench.column("GET hosts", "Columns: plugin_output", "Filter: name = alpha")
    assert rows == [shown]


def test_csv_spoils_nothing(bench):
    bench.host("alpha").plugin_output = "\U0001f600 lat\udce9n"
    answer = bench.raw("GET hosts\nColumns: plugin_output\nFilter: name = alpha\n\n")
    assert answer == "\U0001f600 lat".encode() + b"\xe9n\n"


@given(st.text())
def test_spoiling_leaves_ordinary_text_alone(text):
    written = Format("json", ("\n", ";", ",", "|")).strings(text)
    found = json.loads(spoil(written))
    plain = all(ord(letter) < 0xD800 or 0xE000 <= ord(letter) <= 0xFFFF for letter in text)
    assert not plain or found == text


def names(bench, *lines):
    return bench.column("GET hosts", "Columns: name", *lines)


@each(
    ("lines", "expected"),
    [
        (["Limit: 2"], ["alpha", "beta"]),
        (["Limit: 0"], []),
        (["Limit: 1", "Offset: 1"], ["beta"]),
        (["Offset: 2"], ["gamma"]),
        (["Sort: name desc"], ["gamma", "beta", "alpha"]),
        (["Sort: name asc"], ["alpha", "beta", "gamma"]),
        (["Sort: name desc", "Limit: 1"], ["gamma"]),
        (["Sort: name desc", "Limit: 1", "Offset: 1"], ["beta"]),
        (["Sort: name desc", "Offset: 2"], ["gamma", "beta", "alpha"]),
        (["Sort: groups desc"], ["alpha", "beta", "gamma"]),
        (["Sort: nope desc"], ["alpha", "beta", "gamma"]),
        (["Sort: num_services", "Sort: name desc"], ["gamma", "beta", "alpha"]),
        (["Sort: num_services desc", "Sort: name"], ["alpha", "beta", "gamma"]),
        (["Sort: state", "Sort: name desc", "Limit: 2"], ["gamma", "beta"]),
        (["Sort: host_name desc", "Limit: 1"], ["gamma"]),
    ],
)
def test_sort_limit_offset(bench, lines, expected):
    assert names(bench, *lines) == expected


def test_localtime_moves_all_times_by_half_hours(bench):
    bench.host("alpha").last_check = 1000
    request = ["Columns: last_check", "Filter: name = alpha"]

    def at(offset):
        return bench.column("GET hosts", f"Localtime: {1795000000 + offset}", *request)

    assert at(0) == [1000]
    assert at(3700) == [4600]
    assert at(-1700) == [-800]
    assert at(800) == [1000]
    moved = bench.column("GET hosts", "Localtime: 1795003600", "Columns: name",
                         "Filter: last_check = 4600")  # fmt: skip
    assert moved == ["alpha"]
    assert bench.status("GET hosts", "Localtime: 1795200000")[0] == 400


@each(
    ("line", "code"),
    [
        ("Limit: -1", 400),
        ("Limit: many", 400),
        ("Offset: -1", 400),
        ("OutputFormat: xml", 400),
        ("ColumnHeaders: yes", 400),
        ("KeepAlive: 1", 400),
        ("ResponseHeader: on", 400),
        ("Sort:", 400),
        ("Sort: name up", 400),
        ("Separators: a", 400),
        ("Separators: 256", 400),
        ("Timelimit: 0", 413),
        ("Timelimit: x", 400),
        ("Localtime: x", 400),
        ("columns: name", 400),
        ("Backends: a", 400),
        ("Columns name", 400),
        (" Columns: name", 400),
        ("WaitTrigger: nothing", 400),
        ("WaitObject: nobody", 400),
    ],
)
def test_bad_headers(bench, line, code):
    found, text = bench.status("GET hosts", line)
    assert found == code
    assert text.count("\n") == 1


def test_the_blank_after_the_colon_may_be_missing_or_many(bench):
    assert names(bench, "Limit:1") == ["alpha"]
    assert names(bench, "Limit:    1   ") == ["alpha"]
