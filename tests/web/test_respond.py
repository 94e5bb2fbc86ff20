"""Compression: who wants it, and that it is the same body."""

import gzip

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monrest.render.xlsx import CONTENT_TYPE as EXCEL
from monrest.web.respond import accepted_format, accepts_gzip, gzipped


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (b"gzip", True),
        (b"GZIP", True),
        (b"x-gzip", True),
        (b"deflate, gzip;q=1.0, *;q=0.5", True),
        (b"gzip;q=0.001", True),
        (b"gzip ; q=0.5", True),
        (b"*", True),
        (b"deflate, *;q=0.1", True),
        (b"", False),
        (b"deflate, br", False),
        (b"gzip;q=0", False),
        (b"gzip;q=0.000, *", False),
        (b"*;q=0", False),
        (b"identity", False),
        (b"gzipped", False),
        (b"gzip;q=x", False),
        (b"gzip;level=9", True),
    ],
)
def test_who_wants_gzip(header, wanted):
    assert accepts_gzip(header) is wanted


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        (b"application/x-ndjson", "ndjson"),
        (b"Application/X-NDJSON, */*;q=0.1", "ndjson"),
        (b"application/json;q=0.5, application/x-ndjson", "ndjson"),
        (b"application/json, application/x-ndjson", None),
        (b"application/x-ndjson;q=0", None),
        (b"text/csv", "csv"),
        (b"text/csv; charset=utf-8, */*;q=0.1", "csv"),
        (b"text/csv;q=0.5, application/x-ndjson;q=0.9", "ndjson"),
        (b"text/csv;q=0.9, application/json;q=0.5", "csv"),
        (EXCEL.encode(), "xls"),
        (b"text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", None),
        (b"text/plain", None),
        (b"*/*", None),
        (b"", None),
    ],
)
def test_which_format_an_accept_header_wants(header, wanted):
    assert accepted_format(header) == wanted


@given(st.binary(max_size=60))
def test_any_header_is_read(header):
    assert accepts_gzip(header) in (True, False)


@given(st.lists(st.binary(max_size=500)))
def test_compressed_pieces_are_the_same_body(pieces):
    assert gzip.decompress(b"".join(gzipped(iter(pieces)))) == b"".join(pieces)
