"""The mail that brings a report to its readers (section 5.6). Pure."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from email.message import EmailMessage
from email.policy import EmailPolicy
from email.utils import formatdate

from attrs import field, frozen

from monrest.config import MailConfig
from monrest.reports.files import FORMATS, File
from monrest.reports.record import Report, addresses
from monrest.reports.settings import Settings
from monrest.reports.sheet import Sheet

# Lines are made as long as headers of mails may be, and what is not ASCII is encoded.
_POLICY = EmailPolicy(utf8=False, linesep="\n", raise_on_defect=True)


@frozen(kw_only=True)
class Letter:
    """A mail ready to be sent: lines end in a newline, none of them begins with a dot."""

    recipients: tuple[str, ...]
    message: bytes = field(repr=False)


def letter(
    report: Report,
    settings: Settings,
    sheet: Sheet,
    files: Sequence[File],
    config: MailConfig,
    at: int,
    purpose: str,
    now: float,
) -> Letter:
    """The mail of a report that was made for the time ``at``; no recipients: it is for nobody."""
    to, cc = addresses(report.record["to"]), addresses(report.record["cc"])
    message = EmailMessage(_POLICY)
    message["From"] = config.sender
    if to:
        message["To"] = ", ".join(to)
    if cc:
        message["Cc"] = ", ".join(cc)
    say = sheet.spelling.say
    message["Subject"] = f"{config.subject_prefix}{say('Report')}: {report.name}"
    message["Date"] = formatdate(now)
    # The same for every try, so that a mail that comes twice is known to be one.
    seed = f"{report.number} {at} {purpose} {now}"
    digest = hashlib.sha256(seed.encode()).hexdigest()[:32]
    message["Message-ID"] = f"<{digest}@{config.sender.rpartition('@')[2]}>"
    message["Auto-Submitted"] = "auto-generated"
    for name, value in config.headers.items():
        message[name] = value
    lines = [report.name, "", *(f"{label}: {value}" for label, value in sheet.facts)]
    message.set_content("\n".join(lines) + "\n", cte="base64")
    wanted = (*settings.attach, *(("json",) if settings.attach_json else ()))
    for one in files:
        if one.format in wanted:
            ending, kind, _ = FORMATS[one.format]
            main, _, sub = kind.partition(";")[0].partition("/")
            message.add_attachment(
                one.data,
                maintype=main,
                subtype=sub,
                filename=f"{report.number if one.format == 'json' else 'report'}.{ending}",
            )
    return Letter(recipients=tuple(dict.fromkeys((*to, *cc))), message=message.as_bytes())
