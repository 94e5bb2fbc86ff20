"""Where reports come from besides the built-in ones: paths of the API, and operators' templates."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from monrest.base.errors import BadRequest
from monrest.base.values import Column, Document, Rows
from monrest.render.formats import RenderOptions, render
from monrest.reports import url_report
from monrest.reports.availability import sheet_of_availability
from monrest.reports.files import csv, page, rendered
from monrest.reports.model import checked
from monrest.reports.own import read_template, templates_in, written
from monrest.reports.picture import Picture
from monrest.reports.settings import read_link
from monrest.reports.sheet import Grid, Heading, Note
from monrest.reports.templates import TEMPLATES
from tests.reports.samples import BERLIN, HOSTILE, builder, measured, parts
from tests.table import each


def test_a_path():
    link = read_link('/mon/r/v1/csv/sites/a,b/hosts?columns=name&q=***name = "a?b"***')
    assert (link.root, link.form, link.target.sites) == ("/mon/r", "csv", ("a", "b"))
    assert link.target.segments == ("hosts",)
    assert link.parameters == (("columns", "name"), ("q", '***name = "a?b"***'))


@each(
    ("text", "form"),
    [("/mon/r/hosts", "json"), ("/x/r/xls/hosts", "xls"), ("/mon/r/human/hosts", "text"),
     ("/mon/r/wrapped_json/hosts", "json"), ("/mon/r/", "json")],
)  # fmt: skip
def test_what_the_answer_is(text, form):
    assert read_link(text).form == form


@each(
    "text",
    ["", "hosts", "http://127.0.0.1/mon/r/hosts", "//evil/r/hosts", "file:///etc/passwd", "/mon",
     "/mon/x/hosts", "/mon/r/%ff", "/mon/r/hosts?a=%ff", "/mon/r/ho%00sts", "/", "/r/hosts"],
)  # fmt: skip
def test_no_paths(text):
    with pytest.raises(BadRequest, match=r"params\.url: expected a path of this API"):
        checked({"template": "report_from_url.tt", "params": {"url": text}}, TEMPLATES)


@each("wrong", [{"retries": 0}, {"retries": 11}, {"delay": -1}, {"pdf": "maybe"}])
def test_parameters_of_a_path(wrong):
    params = {"url": "/mon/r/hosts", **wrong}
    with pytest.raises(BadRequest, match=f"params.{next(iter(wrong))}: expected"):
        checked({"template": "report_from_url.tt", "params": params}, TEMPLATES)


def shown(value, **fields):
    made = builder("report_from_url.tt", {"url": "/mon/r/hosts"}, zone=BERLIN, **fields)
    return url_report.sheet_of_answer(made, "/mon/r/hosts", value, {"json": b"[1]", "text": b"x"})


COLUMNS = (
    Column("name", "string"), Column("last_check", "time"), Column("latency", "number", "s"),
    Column("share", "number", "%"), Column("groups", "array_of_strings"), Column("more", "object"),
)  # fmt: skip


def test_rows_become_a_table():
    rows = [
        ["a", 1_795_280_000, 0.1 + 0.2, 12.345, ["x", "y"], {"k": [1]}],
        [HOSTILE, 0, 3.0, None, [], None],
        [None, "lies", "lies", "lies", 7, "x" * 9000],
    ]
    made = shown(Rows(columns=COLUMNS, rows=rows))
    (grid,) = made.grids
    assert [head.title for head in grid.heads] == [
        "name",
        "last_check",
        "latency (s)",
        "share (%)",
        "groups",
        "more",
    ]
    assert grid.rows[0] == ("a", 1_795_280_000, 0.3, 12.345, "x, y", '{"k": [1]}')
    assert grid.rows[1] == (HOSTILE, None, 3, None, "", "")
    assert grid.rows[2][:5] == ("", None, "lies", None, "7")
    assert len(grid.rows[2][5]) == 2001
    files = {one.format: one.data for one in rendered(made)}
    assert (files["json"], files["text"]) == (b"[1]", b"x")
    assert {"pdf", "html", "xls", "csv"} < set(files)
    assert b"<script>" not in files["html"]


def test_the_csv_of_a_report_has_no_formulas():
    """Other than that of the API, which is data and stays as it is."""
    columns = (Column("name", "string"), Column("=1+1", "string"), Column("n", "number"))
    rows = [["=2+5", '=HYPERLINK("http://x";"y")', -5], ["@a", ["=b", "c"], 7], ["a=b", "-x", 1.5]]
    answer = Rows(columns=columns, rows=rows)
    (options,) = (
        one for name, one in url_report._options(read_link("/mon/r/hosts")).items() if name == "csv"
    )
    made = b"".join(render(answer, options).pieces).decode()
    assert made.splitlines() == [
        "#name;'=1+1;n",
        """'=2+5;"'=HYPERLINK(""http://x"";""y"")";-5""",
        """'@a;"'=b,c";7""",
        "a=b;'-x;1.5",
    ]
    plain = b"".join(render(answer, RenderOptions(format="csv")).pieces).decode()
    assert "'" not in plain


def test_names_come_first_where_there_are_many_columns():
    names = [f"c{at:02}" for at in range(20)]
    columns = [Column(one) for one in (*names, "description", "host_name")]
    (grid,) = shown(Rows(columns=tuple(columns), rows=[list(range(22))])).grids
    assert [head.title for head in grid.heads][:3] == ["host_name", "description", "c00"]
    assert (grid.rows[0][:3], grid.lead) == (("21", "20", "0"), 2)


def test_more_rows_than_a_page_should_have():
    made = shown(Rows(columns=COLUMNS[:1], rows=[["h"]] * 5003))
    assert len(made.grids[0].rows) == 5000
    assert any("3 more rows are left out" in getattr(one, "text", "") for one in made.parts)
    listed = shown(Document(value=list(range(5001))))
    assert any("1 more rows are left out" in getattr(one, "text", "") for one in listed.parts)


@each(
    ("value", "rows"),
    [({"b": 1, "a": [2]}, [("a", "2"), ("b", "1")]), ([{"x": 1}, {"y": None}], [("1", ""), ("", "")]),
     ([1, "two"], [("1",), ("two",)]), ("text", [("text",)]), ({}, []), (None, [("",)])],
)  # fmt: skip
def test_documents_become_tables(value, rows):
    made = shown(Document(value=value))
    assert made.grids[0].rows == rows
    assert page(made)


HEAD = '+++\nlike = "sla_report.tt"\ntitle = "Ours"\n[defaults]\nsla = 99.9\n+++\n'


def ours(body, head=HEAD, count=3, **fields):
    template = read_template("ours.tt", head + body)
    params = {"timeperiod": "lastmonth", "breakdown": "days"}
    made = builder("sla_report.tt", params, zone=BERLIN, **fields)
    some = [measured(parts(made), f"web{at}", bad=at * 900) for at in range(count)]
    return written(template, sheet_of_availability(made, some, parts(made)), params)


PARTS = """
{{ heading(say("Overview")) }}
{{ paragraph(name ~ " of " ~ params.timeperiod ~ ", " ~ sla ~ " %") }}
{{ paragraph("Look!", bad=true) }}
{{ table("Host", ("%", "percent"), ("From", "time"), title="All") }}
{% for one in availability %}{{ row(one.host, one.percent, start) }}{% endfor %}
{{ part("Availability over time") }}
"""


def test_a_template_of_ones_own():
    made = ours(PARTS, name="Größe <b>")
    heading, note, bad, table, chart = made.parts
    assert heading == Heading("Overview")
    assert (note.text, note.bad) == ("Größe <b> of lastmonth, 98.0 %", False)
    assert bad == Note("Look!", bad=True)
    assert (table.title, [head.kind for head in table.heads]) == (
        "All",
        ["text", "percent", "time"],
    )
    assert table.rows[0][:2] == ("web0", 100.0)
    assert isinstance(table.rows[0][2], int)
    assert isinstance(chart, Picture)
    assert csv(made).decode().splitlines()[0] == "#Host;%;From"
    assert {"pdf", "html", "xls", "csv", "json"} == {one.format for one in rendered(made)}


@each(
    ("cells", "row"),
    [
        ("'a', none, 7", ("a", None, 7)),
        ("7, '99.5'", ("7", 99.5, None)),
        ("none, 100, ''", ("", 100.0, None)),
        ("", ("", None, None)),
    ],
)
def test_cells_of_a_row(cells, row):
    (grid,) = ours(
        f"{{{{ table('a', ('b', 'percent'), ('c', 'number')) }}}}{{{{ row({cells}) }}}}"
    ).parts
    assert grid.rows == [row]


def test_the_template_of_the_guide():
    guide = Path("docs/guide/reports.md").read_text()
    (lines,) = re.findall(r"^```jinja\n(.*?)```", guide, re.MULTILINE | re.DOTALL)
    made = ours("", head=lines, name="Customers")
    assert [type(one) for one in made.parts] == [Heading, Note, Picture, Grid]
    assert made.parts[1].text == "Agreed are 98.0 %, from 2026-10-01 to 2026-11-01."
    assert [row[0] for row in made.grids[0].rows] == ["web0", "web1", "web2"]
    assert b"<h2></h2>" not in page(made)


def test_nothing_hides_what_must_be_seen():
    template = read_template("ours.tt", HEAD + "{{ paragraph('All is well') }}")
    made = builder(failed=["Zürich: gone"])
    found = written(template, sheet_of_availability(made, [], []), {})
    assert found.parts[0] == Note("Sites that did not answer: Zürich: gone", bad=True)


@each("text", [HOSTILE, "</td></table><script>x</script>", "{{ 7 * 7 }}"])
def test_hostile_names_are_texts(text):
    """Whatever a name holds, it is neither an element nor a template."""
    name = " ".join(text.split())
    made = ours("{{ paragraph(name) }}{{ table('a') }}{{ row(name) }}", name=name)
    assert made.parts[0] == Note(name)
    assert made.grids[0].rows == [(name,)]


@each(
    ("body", "words"),
    [
        ("{{ nothing }}", "UndefinedError: 'nothing' is undefined"),
        ("{{ name.__class__.__mro__ }}", "SecurityError"),
        ("{{ facts.append(1) }}", "UndefinedError"),
        ("{{ availability.append(1) }}", "SecurityError"),
        ("{{ params.update(a=1) }}", "SecurityError"),
        ("{{ say.__globals__ }}", "SecurityError"),
        ("{{ '{0.__class__.__mro__}'.format(name) }}", "SecurityError"),
        ("{{ name|attr('__class__')|attr('mro') }}", "Error"),
        ("{{ [name]|map(attribute='__class__')|list|first }}", "SecurityError"),
        ("{% include '/etc/passwd' %}", "no loader for this environment"),
        ("{% for a in range(1000000) %}{% endfor %}", "expected ranges of at most 100000 numbers"),
        (
            "{% for a in range(9999) %}{% for b in range(9999) %}{% endfor %}{% endfor %}",
            "at most 100000",
        ),
        (
            "{% for a in range(99999) %}{% for b in range(0) %}{% endfor %}{% endfor %}",
            "at most 100000",
        ),
        ("{{ 1 / 0 }}", "ZeroDivisionError"),
        ("{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}", "RecursionError"),
        ("{{ paragraph('x' * 20000000) }}", "expected at most 16777216 characters"),
        ("<h2>{{ name }}</h2>", """expected texts as {{ paragraph("…") }}, got '<h2>'"""),
        ("{{ name }}", "got 'Report'"),
        ("{{ row(1) }}", "expected table() in front of row()"),
        ("{{ table('a') }}{{ heading('b') }}{{ row(1) }}", "expected table() in front of row()"),
        ("{{ part('Overview') }}{{ row(1) }}", "expected table() in front of row()"),
        ("{{ table() }}", "expected a column at least"),
        ("{{ table(('a', 'odd')) }}", "expected a column of text, number, percent"),
        ("{{ table(('a', 'time')) }}{{ row('soon') }}", "expected a number in a column of time"),
        ("{{ table(('a', 'number')) }}{{ row('nan') }}", "expected a number"),
        ("{{ table('a') }}{{ row(1, 2) }}", "expected at most 1 cells, got 2"),
        ("{{ paragraph.__self__ }}", "SecurityError"),
    ],
)
def test_what_a_template_cannot_do(body, words):
    with pytest.raises(BadRequest) as caught:
        ours(body)
    assert words in caught.value.description
    assert "report template 'ours.tt' failed" in caught.value.message


def test_the_line_of_a_mistake():
    for mistake in ("{% include 'other.tt' %}", "{{ row(1) }}", "{{ paragraph(nothing) }}"):
        with pytest.raises(BadRequest, match="failed, line 3 below its head"):
            ours("{{ heading('x') }}\n\n" + mistake)


@each(
    ("text", "words"),
    [
        ("", "expected a head in TOML"),
        ("+++\n+++\n", "like: expected one of eventlog.tt"),
        ('+++\nlike = "ours.tt"\n+++\n', "like: expected one of"),
        (HEAD.replace("title", "name"), "name: expected one of defaults, like, title"),
        (HEAD.replace("99.9", '"many"'), "defaults: params.sla: expected a number"),
        (HEAD.replace('"Ours"', "7"), "title: expected a text"),
        (HEAD.replace("sla = 99.9", "mine = 2026-01-01"), "defaults: expected texts, numbers"),
        (HEAD.replace("sla = 99.9", "mine = nan"), "defaults: expected texts, numbers"),
        (HEAD.replace("[defaults]\nsla = 99.9", "defaults = 7"), "defaults: expected a table"),
        (HEAD + "\n{% if %}", "line 8: Expected an expression"),
        (HEAD + "{{ x|nothing }}", "No filter named"),
        ("+++\nlike = \n+++", "Invalid value"),
    ],
)
def test_files_that_are_no_templates(tmp_path, text, words):
    (tmp_path / "ours.tt").write_text(text)
    found, (problem,) = templates_in(str(tmp_path))
    assert found == TEMPLATES
    assert problem.startswith("ours.tt: ")
    assert words in problem


def test_a_folder(tmp_path):
    for name in ("good.tt", "sla_report.tt", "we-ird.tt", "notes.txt"):
        (tmp_path / name).write_text(HEAD)
    (tmp_path / "bytes.tt").write_bytes(b"\xff")
    (tmp_path / "folder.tt").mkdir()
    (tmp_path / "nowhere.tt").symlink_to(tmp_path / "none")
    found, problems = templates_in(str(tmp_path))
    assert set(found) == {*TEMPLATES, "good.tt"}
    assert [one.partition(":")[0] for one in problems] == [
        "bytes.tt", "folder.tt", "nowhere.tt", "sla_report.tt", "we-ird.tt",
    ]  # fmt: skip
    assert found["sla_report.tt"] is TEMPLATES["sla_report.tt"]
    assert checked({"template": "good.tt"}, found)["params"]["sla"] == 99.9
    with pytest.raises(FileNotFoundError):
        templates_in(str(tmp_path / "none"))
    assert templates_in("") == (TEMPLATES, [])


def test_charts_and_tables_of_the_built_in_one():
    made = ours("{{ part('Overview') }}{{ part('Outages') }}{{ part('No such thing') }}")
    assert [type(one) for one in made.parts] == [Grid, Grid]
