"""Sites that are missing in an answer are named in its body, as far as the format lets one."""

import io
import json

import openpyxl
import pytest

from monrest.base.values import Column, Document, Rows, SiteProblem
from monrest.render.formats import RenderOptions, render

FAILED = (
    SiteProblem("liar", "The liar", "protocol error:\n\x1b[31m1 columns; not 2"),
    SiteProblem("b", "B", ""),
)
LINE = "failed sites: liar (protocol error: \x1b[31m1 columns; not 2), b\n"


def answers(failed):
    return (
        Rows(columns=(Column("a"), Column("b")), rows=[["x", 1]], failed_sites=failed),
        Rows(columns=(Column("a"), Column("b")), rows=[], failed_sites=failed),
        Document(value={"up": 1}, failed_sites=failed),
        Document(value=[], failed_sites=failed),
    )


def body(answer, kind, **more):
    return b"".join(render(answer, RenderOptions(format=kind, **more)).pieces)


@pytest.mark.parametrize("at", range(4))
@pytest.mark.parametrize("headers", [True, False])
def test_csv_ends_with_a_comment_unless_it_is_data_alone(at, headers):
    whole = body(answers(())[at], "csv", headers=headers)
    comment = f"# {LINE}" if headers else ""
    assert body(answers(FAILED)[at], "csv", headers=headers) == whole + comment.encode()


@pytest.mark.parametrize("at", range(4))
def test_text_has_a_last_line(at):
    whole = body(answers(())[at], "text")
    line = LINE.replace("\x1b", "\\x1b")
    assert body(answers(FAILED)[at], "text") == whole + line.encode()


@pytest.mark.parametrize("at", range(4))
def test_wrapped_json_has_names_and_reasons(at):
    value = json.loads(body(answers(FAILED)[at], "wrapped_json"))
    assert value["data"] == json.loads(body(answers(())[at], "json"))
    assert value["meta"]["failed_sites"] == [
        {
            "peer_key": one.site,
            "peer_name": one.name,
            "reason": one.reason,
            "timed_out": False,
        }
        for one in FAILED
    ]
    assert "failed_sites" not in json.loads(body(answers(())[at], "wrapped_json"))["meta"]


@pytest.mark.parametrize("at", range(4))
def test_plain_json_is_what_it_was(at):
    assert body(answers(FAILED)[at], "json") == body(answers(())[at], "json")


@pytest.mark.parametrize("at", range(4))
def test_excel_has_a_second_sheet(at):
    whole = openpyxl.load_workbook(io.BytesIO(body(answers(())[at], "xls")))
    assert whole.sheetnames == ["data"]
    book = openpyxl.load_workbook(io.BytesIO(body(answers(FAILED)[at], "xls")))
    assert book.sheetnames == ["data", "failed sites"]
    assert list(book["data"].values) == list(whole["data"].values)
    assert list(book["failed sites"].values) == [
        ("peer_key", "peer_name", "reason"),
        ("liar", "The liar", "protocol error:\n[31m1 columns; not 2"),
        ("b", "B", None),
    ]
    assert book["failed sites"].sheet_properties.tabColor.rgb == "FFFF0000"
