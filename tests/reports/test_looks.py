"""Pages, PDFs, workbooks and CSV: what is in them, and what hostile names cannot do there."""

from __future__ import annotations

import io
import re
from collections import Counter
from html.parser import HTMLParser
from itertools import pairwise

import openpyxl
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Paragraph

from monrest.base.errors import ClientLeftError
from monrest.reports.availability import sheet_of_availability, sheet_of_outages
from monrest.reports.files import FORMATS, csv, disposition, file_name, page, rendered, workbook
from monrest.reports.making import ObjectProblem, sheet_of_events, sheet_of_problems
from monrest.reports.pdf import column_widths, fonts, pdf, pieces
from monrest.reports.picture import WIDTH, Box, bars, columns, shares, shortened
from monrest.reports.sheet import Grid, Head, Note
from tests.reports.samples import BERLIN, HOSTILE, builder, measured, parts
from tests.table import each


def sheet(count=3, name="Größe & <b>Maß</b>", host="web{}", output="CRITICAL", **params):
    made = builder(params={"timeperiod": "lastmonth", "breakdown": "days", **params}, name=name,
                   zone=BERLIN, failed=["Zürich: connection refused"])  # fmt: skip
    found = [
        measured(parts(made), host.format(at), "" if at % 2 else "Dienst ü", bad=at * 100,
                 outages=at % 3, output=output)
        for at in range(count)
    ]  # fmt: skip
    return sheet_of_availability(made, found, parts(made))


class Tags(HTMLParser):
    """What a browser finds in a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.texts, self.open = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag != "meta":
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


ALLOWED = {
    "html", "head", "meta", "title", "style", "body", "main", "h1", "h2", "dl", "dt", "dd", "p",
    "div", "table", "thead", "tbody", "tr", "th", "td", "b", "figure", "svg", "rect", "line", "text",
}  # fmt: skip


def test_a_page():
    found = Tags(page(sheet()).decode())
    assert found.open == []
    assert set(found.tags) <= ALLOWED
    assert "Größe & <b>Maß</b>" in found.texts
    assert found.tags.count("svg") == 2
    assert any("Zürich: connection refused" in one for one in found.texts)


@each("text", [HOSTILE, "</style><img src=x onerror=alert(1)>", "{{ 7*7 }}",
                                  "]]><svg onload=alert(1)>", "javascript:alert(1)"])  # fmt: skip
def test_hostile_names_are_text(text):
    """Wherever a name, an output or a title stands: in tables, charts and the head."""
    made = sheet(host=text.replace("{", "{{").replace("}", "}}"), output=text,
                 name=text.replace("\r", ""))  # fmt: skip
    found = Tags(page(made).decode())
    assert set(found.tags) <= ALLOWED
    assert not [name for name, _ in found.attributes if name.startswith("on")]
    assert not [value for name, value in found.attributes if name in ("src", "href")]
    # Lines end in a page as they do in a text, whatever they were.
    assert any(text.strip() in one for one in found.texts)


def test_all_forms_of_all_kinds():
    outage = builder("sla_outage.tt")
    some = [measured(parts(outage), "a", bad=40000, outages=2)]
    problem = ObjectProblem(
        host="h", service="s", state="critical", since=5, output=HOSTILE, acknowledged=True,
        downtime=False,
    )  # fmt: skip
    sheets = [
        sheet(), sheet(0), sheet_of_outages(outage, some, parts(outage)),
        sheet_of_outages(builder("sla_outage.tt"), [], parts(outage)),
        sheet_of_events(builder("eventlog.tt"), [(1, "HOST ALERT", "web;DOWN")], more=True),
        sheet_of_events(builder("eventlog.tt"), [], more=False),
        sheet_of_problems(builder(), Counter(up=1), Counter(), []),
        sheet_of_problems(builder(), None, Counter(critical=1), [problem]),
    ]  # fmt: skip
    for one in sheets:
        files = {file.format: file.data for file in rendered(one)}
        assert set(files) == set(FORMATS) - {"text"}
        assert files["pdf"].startswith(b"%PDF-")
        assert files["pdf"].rstrip().endswith(b"%%EOF")
        openpyxl.load_workbook(io.BytesIO(files["xls"]))
        assert files["html"].startswith(b"<!DOCTYPE html>")


def pages(data):
    return len(re.findall(rb"/Type /Page\b", data))


@pytest.fixture
def drawn(monkeypatch):
    """Texts, boxes and paragraphs (both without a text) on paper, each with its corners."""
    found = []

    def note(canvas, x, y, width, height=0.0, text=""):
        corners = canvas.absolutePosition(x, y), canvas.absolutePosition(x + width, y + height)
        found.append((*map(min, *corners), *map(max, *corners), text))

    def noted(kind, name, look):
        real = getattr(kind, name)

        def method(self, *arguments, **options):
            look(self, *arguments)
            return real(self, *arguments, **options)

        monkeypatch.setattr(kind, name, method)

    def width(canvas, text):
        return canvas.stringWidth(text, canvas._fontname, canvas._fontsize)

    def paragraph(one):
        for line in one.blPara.lines:
            assert (line[0] if isinstance(line, tuple) else line.extraSpace) > -0.1
        note(one.canv, 0, 0, one.width, one.height)

    noted(Canvas, "rect", note)
    noted(Canvas, "drawString", lambda c, x, y, text: note(c, x, y, width(c, text), 0.0, text))
    noted(
        Canvas, "drawRightString",
        lambda c, x, y, text, *_: note(c, x - width(c, text), y, width(c, text), 0.0, text),
    )  # fmt: skip
    noted(Paragraph, "draw", paragraph)
    return found


LONG = "a-very-long-name.that-never-ends." * 12


@pytest.mark.parametrize(
    "made",
    [
        lambda: sheet(0),
        lambda: sheet(100, host="server-{:03}.example.org"),
        lambda: sheet(5, host=LONG + "{}", name="W" * 300, output="long " * 2000),
        lambda: sheet(3, host="日本語" * 60 + "{}", name="中" * 300, output="ü" * 900),
        lambda: sheet(3, breakdown="weeks", timeperiod="last12months", language="fr"),
        lambda: sheet(3, decimals=6, datetimeformat="%A %d %B %Y %H:%M:%S %Z " * 2),
    ],
)  # fmt: skip
def test_nothing_leaves_the_paper(made, drawn):
    """Neither texts nor boxes are outside of the margins, whatever the names and numbers are."""
    pdf(made())
    assert len(drawn) > 5
    *drawn, count = drawn
    assert count[4].isdigit()
    for x, y, end, top, text in drawn:
        assert x >= 35.9, text
        assert end <= 842 - 35.5, text
        assert 20 < y <= top < 595 - 30, text


def test_pages_are_numbered_and_repeat_the_head(drawn):
    """Each page has its number, the head of its table and a row at least."""
    count = pages(pdf(sheet(60, max_outages_pages=0, max_worst_pages=0, details_max_level=0)))
    texts = [text for *_, text in drawn]
    assert [one for one in texts if one.startswith("Page ")] == [
        f"Page {at} of " for at in range(1, count + 1)
    ]
    assert texts[-1] == str(count)
    assert texts.count("Unknown time") == count
    assert [one for one in texts if one.startswith("web")] == [f"web{at}" for at in range(60)]


def test_long_sentences_are_cut_on_paper():
    assert pages(pdf(evolve(sheet(0), parts=(Note("word " * 100_000),)))) == 1


def test_empty_reports_say_so():
    assert b"No object was found." in page(sheet(0))
    german = page(sheet(0, language="de")).decode()
    assert "Es wurde kein Objekt gefunden." in german
    assert '<html lang="de">' in german


def test_a_workbook():
    book = openpyxl.load_workbook(io.BytesIO(workbook(sheet(3, host="=1+1;{}"))))
    assert book.sheetnames == ["Report", "Overview", "Details (%)", "Outages"]
    rows = list(book["Overview"].iter_rows(values_only=True))
    assert rows[0][:3] == ("Host", "Service", "Availability %")
    assert rows[2][0] == "=1+1;1"
    assert book["Overview"]["A3"].data_type == "s"
    assert isinstance(rows[2][2], float)
    french = openpyxl.load_workbook(io.BytesIO(workbook(sheet(2, language="fr")))).sheetnames
    assert len(set(map(str.lower, french))) == len(french)


def test_csv():
    text = csv(sheet(2, host="web{}")).decode()
    first = text.split("\n\n")[0].splitlines()
    assert first[0].startswith("#Host;Service;Availability %;")
    assert first[1].startswith("web0;Dienst ü;100.00;")
    assert "'=cmd" in csv(sheet(2, host="=cmd|calc{}")).decode()
    assert "'@x" in csv(sheet(2, output="@x")).decode()
    heads = Head("a", "state"), Head("b", "number")
    grid = Grid(title="", heads=heads, rows=[("=1+1", "-1+1"), ("-", -5)])
    made = evolve(sheet(0), parts=(grid,))
    assert csv(made).decode() == "#a;b\n'=1+1;'-1+1\n-;-5\n"


def test_nobody_waits_any_more():
    for render in (page, pdf, csv, workbook):
        with pytest.raises(ClientLeftError):
            render(sheet(5), lambda: True)


def test_levels_choose_what_is_shown():
    made = sheet(4, overview_max_level=99.8, max_worst_pages=0, max_outages_pages=0)
    overview, _ = made.grids
    assert [row[0] for row in overview.rows] == ["web2", "web3"]
    assert len(sheet(4, timeperiod="last7days", details_max_level=-1).grids[1].rows) == 4


def test_outages_of_those_below_the_target():
    made = builder("sla_outage.tt", {"sla": 99, "max_outages_pages": 1})
    good = measured(parts(made), "good", bad=10, outages=3)
    bad = measured(parts(made), "bad", bad=9000, outages=30)
    found = sheet_of_outages(made, [good, bad], parts(made))
    assert {row[0] for grid in found.grids for row in grid.rows} == {"bad"}
    assert len(found.grids[-1].rows) == 12
    assert any("18 more rows are left out" in getattr(one, "text", "") for one in found.parts)


def test_charts_stay_in_their_frame():
    drawn = [
        columns("t", [("x" * 5, None, ""), ("b", 0.0, ""), ("c", 100.0, "")] * 200, 98, 100),
        bars("t", [("n" * 500, 12.5, "12.50 %"), ("", 100.0, "100 %")], 98, 90),
        shares("t", [("up", 1_000_000), ("down", 1), ("unreachable", 1), ("pending", 0)]),
    ]
    for picture in drawn:
        for shape in picture.shapes:
            left = getattr(shape, "x", getattr(shape, "x1", 0))
            assert 0 <= left <= WIDTH
            assert left + getattr(shape, "width", 0) <= WIDTH + 0.01
            bottom = getattr(shape, "y", getattr(shape, "y1", 0)) + getattr(shape, "height", 0)
            assert bottom <= picture.height + 0.01


def test_labels_of_a_chart_do_not_touch():
    """Nor do they leave it."""
    labels = [f"2025-W{at:02}" for at in range(1, 54)]
    chart = columns("t", [(one, 99.0, "") for one in labels], 98, 90)
    drawn = [one for one in chart.shapes if getattr(one, "anchor", "") == "middle"]
    assert len(drawn) > 5
    half = 8 * 9 * 0.64 / 2
    assert all(half <= one.x <= WIDTH - half + 0.01 for one in drawn)
    assert all(two.x - one.x > 2 * half for one, two in pairwise(drawn))


def test_the_least_share_is_seen():
    chart = shares("t", [("ok", 100_000), ("warning", 1), ("critical", 0), ("unknown", 1)])
    first, *bars = [one for one in chart.shapes if isinstance(one, Box) and one.height == 26]
    assert first.width == WIDTH
    assert [one.width >= 6 for one in bars] == [True] * 3
    assert sum(one.width for one in bars) == pytest.approx(WIDTH)
    assert len(shares("t", [("ok", 0)]).shapes) == 3


KINDS = st.sampled_from(["text", "number", "percent", "time", "duration", "state"])


@given(st.lists(st.tuples(KINDS, st.floats(10, 3000)), min_size=1, max_size=80), st.integers(1, 3))
def test_every_column_stands_on_paper(columns, lead):
    """Whatever its width is, every column is in a table that fits, the leading ones in all."""
    grid = Grid(
        title="t", heads=tuple(Head(f"h{at}", kind) for at, (kind, _) in enumerate(columns)),
        rows=[tuple(range(len(columns)))], lead=lead,
    )  # fmt: skip
    needed = [wide for _, wide in columns]
    found = pieces(grid, needed, 770)
    assert {at for some in found for at in some} == set(range(len(columns)))
    for some in found:
        heads = [grid.heads[at] for at in some]
        assert sum(column_widths(heads, [needed[at] for at in some], 770)) <= 770.01
        assert len(found) == 1 or some[:lead] == tuple(range(min(lead, len(columns))))


def test_days_of_a_month_are_several_tables_on_paper():
    details = next(one for one in sheet(3).grids if one.title.startswith("Details"))
    assert len(details.heads) == 2 + 31
    assert [len(one) for one in pieces(details, [60.0] * len(details.heads), 770)] == [
        12,
        12,
        12,
        3,
    ]


def test_names_are_shortened_in_the_middle():
    short = shortened("a" * 100 + "z" * 100, 100, 10)
    assert short.startswith("aaa")
    assert short.endswith("zz")
    assert "…" in short
    assert shortened("web01", 100, 10) == "web01"


def test_letters_that_a_font_does_not_have():
    font, _ = fonts()
    assert font.drawable("a\nb\tc\x00\u200bd\U000f0000") == "a b c?d?"
    assert font.drawable("Größe Ж 日本語 한국") == "Größe Ж 日本語 한국"
    short = font.cut("x" * 500, 8, 100)
    assert short.endswith("x…")
    assert font.width(short, 8) <= 100


@each(
    ("text", "fonts_of"),
    [("web01 ü", ["own"]), ("a 中文 b", ["own", "STSong-Light", "own"]),
     ("日本ご", ["HeiseiKakuGo-W5"]), ("한국", ["HYGothic-Medium"]), ("", ["own"])],
)  # fmt: skip
def test_letters_of_east_asia(text, fonts_of):
    font, _ = fonts()
    runs = list(font.runs(text))
    assert ["own" if name == font.name else name for name, _ in runs] == fonts_of
    assert "".join(piece for _, piece in runs) == text
    assert sum(font.width(piece, 8) for _, piece in runs) == pytest.approx(font.width(text, 8))
    assert pdf(sheet(2, host=text + "{}", name=f"x{text}")).startswith(b"%PDF-")


@each(
    ("name", "file"),
    [
        ("My  report", "My_report.pdf"), ("../../etc/passwd", "etcpasswd.pdf"),
        ('a"b\\c;d', "abcd.pdf"), ("", "report.pdf"), ("...", "report.pdf"), ("Größe", "Größe.pdf"),
        ("x" * 300, "x" * 100 + ".pdf"), ("%s%00", "s00.pdf"),
    ],
)  # fmt: skip
def test_file_names(name, file):
    assert file_name(name, "pdf") == file


def test_the_header_with_the_file_name():
    assert disposition("My report", "xls") == 'attachment; filename="My_report.xlsx"'
    assert disposition("Größe", "pdf") == (
        "attachment; filename=\"Gre.pdf\"; filename*=UTF-8''Gr%C3%B6%C3%9Fe.pdf"
    )
    assert disposition("日本", "csv") == (
        "attachment; filename=\"report.csv\"; filename*=UTF-8''%E6%97%A5%E6%9C%AC.csv"
    )
    for name in ("a\r\nSet-Cookie: x", HOSTILE):
        header = disposition(name, "html")
        assert header.isascii()
        assert header.isprintable()
        assert header.count('"') == 2
