"""A scripted Livestatus site that lies in every way known, over real sockets and in memory.

A ``Script`` says what a site answers: its status and columns tables, and a ``Misdeed`` (or an
honest answer) for every other query, in turn. The same script runs behind a real Unix or TCP
socket (``serve_unix``, ``serve_tcp``) and behind ``MemoryCore``, an endpoint in memory.
"""

from tests.fakes.livestatus.memory import MemoryCore
from tests.fakes.livestatus.script import (
    NAEMON_COLUMNS,
    Script,
    answer_and_close,
    as_json,
    close_without_answer,
    columns_of,
    fall_silent,
    framed,
    hang,
    invalid_json,
    longer_than_it_says,
    raw,
    refused,
    reset,
    rows,
    rows_in_pieces,
    shorter_than_it_says,
    slow_drip,
    table_of,
    text_instead_of_header,
    truncated,
)
from tests.fakes.livestatus.sockets import serve_tcp, serve_unix

__all__ = [
    "NAEMON_COLUMNS",
    "MemoryCore",
    "Script",
    "answer_and_close",
    "as_json",
    "close_without_answer",
    "columns_of",
    "fall_silent",
    "framed",
    "hang",
    "invalid_json",
    "longer_than_it_says",
    "raw",
    "refused",
    "reset",
    "rows",
    "rows_in_pieces",
    "serve_tcp",
    "serve_unix",
    "shorter_than_it_says",
    "slow_drip",
    "table_of",
    "text_instead_of_header",
    "truncated",
]
