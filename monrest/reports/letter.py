"""The mail that brings a report to its readers. Pure.

Rules: docs/spec/reports.md, "Schedule and mail".
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from email.header import Header
from email.message import EmailMessage
from email.utils import formatdate

from attrs import field, frozen

from monrest.config import MailConfig
from monrest.reports.files import FORMATS, File, require_form
from monrest.reports.model import Report, addresses
from monrest.reports.settings import ReportSettings
from monrest.reports.sheet import Sheet

_LINE = 76


@frozen(kw_only=True)
class Letter:
    """A mail ready to be sent: lines end in a newline, none of them begins with a dot."""

    recipients: tuple[str, ...]
    message: bytes = field(repr=False)


def letter(
    report: Report,
    settings: ReportSettings,
    sheet: Sheet,
    files: Sequence[File],
    config: MailConfig,
    at: int,
    purpose: str,
    now: float,
) -> Letter:
    """The mail of a report that was made for the time ``at``; without recipients it is not sent."""
    to, cc = addresses(report.record["to"]), addresses(report.record["cc"])
    from email.policy import EmailPolicy

    # Lines are made as long as headers of mails may be, and what is not ASCII is encoded.
    message = EmailMessage(EmailPolicy(utf8=False, linesep="\n", raise_on_defect=True))
    say = sheet.spelling.say
    # The same for every try, so that a mail that comes twice is known to be one.
    seed = f"{report.number} {at} {purpose} {now}"
    digest = hashlib.sha256(seed.encode()).hexdigest()[:32]
    head = [
        f"From: {config.sender}",
        *_of_addresses("To", to),
        *_of_addresses("Cc", cc),
        _of_text("Subject", f"{config.subject_prefix}{say('Report')}: {report.name}"),
        f"Date: {formatdate(now)}",
        f"Message-ID: <{digest}@{config.sender.rpartition('@')[2]}>",
        "Auto-Submitted: auto-generated",
        *(_of_text(name, value) for name, value in config.headers.items()),
    ]
    lines = [report.name, "", *(f"{label}: {value}" for label, value in sheet.facts)]
    message.set_content("\n".join(lines) + "\n", cte="base64")
    wanted = (*settings.attach, *(("json",) if settings.attach_json else ()))
    for form in set(wanted) - {file.format for file in files}:
        require_form(form)
    for file in files:
        if file.format in wanted:
            ending, kind, _ = FORMATS[file.format]
            main, _, sub = kind.partition(";")[0].partition("/")
            message.add_attachment(
                file.data,
                maintype=main,
                subtype=sub,
                filename=f"{report.number if file.format == 'json' else 'report'}.{ending}",
            )
    begin = "".join(f"{line}\n" for line in head).encode("ascii")
    return Letter(recipients=tuple(dict.fromkeys((*to, *cc))), message=begin + message.as_bytes())


def _of_addresses(name: str, addresses: Sequence[str]) -> list[str]:
    """A header with addresses, one on each line."""
    return [f"{name}: " + ",\n ".join(addresses)] if addresses else []


def _of_text(name: str, text: str) -> str:
    """A header with any text.

    Headers of the library take encoded words inside of a text for what they mean, line ends too.
    """
    plain = text.isascii() and text.isprintable() and "=?" not in text
    whole = Header(text, "ascii" if plain else "utf-8", _LINE, name, errors="replace")
    return f"{name}: {whole.encode()}"
