"""What a user sees of monrest, as text: answers of a frozen demo, the description of the API, help."""

import gzip
import hashlib
import json
import re
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path

from monrest import __version__
from monrest.explorer.examples import example_requests
from tests.forks import CLIENT, REPOSITORY, ran
from tests.live.harness.client import Client
from tests.live.harness.demo import Demo
from tests.live.harness.documented import VARYING, part
from tests.live.harness.waiting import until

FOLDER = Path(__file__).parent
REQUESTS = FOLDER / "requests.txt"

WHOLE = 2000
"""Characters of a body that are kept; of a longer one its beginning and a digest."""

SURELY_WHOLE = 8192
"""Bytes of a body that are made in one piece: up to there a client may keep it."""

HELP = (
    *("", "r", "events", "sites", "key", "key create", "key list", "key revoke", "serve"),
    *("config", "config show", "config example", "check-config", "import", "completion"),
)

NOT_KEPT = {"server", "date", "x-request-id", "content-length", "transfer-encoding", "connection"}
"""Headers that are others each time, or of the transport."""

CHANGING = (
    *VARYING,
    (re.compile(rf"(?<![\d.]){re.escape(__version__)}(?![\d.])"), "VERSION"),
    (re.compile(re.escape(str(REPOSITORY))), "/srv/monrest"),
    (re.compile(r'(?<="mon_release_date":")[^"]*'), "DATE"),
    (re.compile(r'(PID=|"(?:nagios_pid|pid|host_id|requests|connections)":)\d+'), r"\g<1>0"),
    (
        re.compile(
            r'("template":"[^"]*","time":|"(?:update_duration|data_size|index_size)":)[\d.e-]+'
        ),
        r"\g<1>0.0",
    ),
    (re.compile(r'(?<="instances":\[")\w+'), "0123456789abcdef"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ \+0000"), "DATE"),
    # Places in a stream: how many events there were before depends on what was seen together.
    (re.compile(r'((?:id: |snapshot:|"cursor":")@)\d+'), r"\g<1>0"),
    (re.compile(r'(?<="mtime":)\d+'), "0"),
    # Lines in the log cache depend on whether its regular update came in between.
    (re.compile(r'\A(\{"code":200,"errors":\[\],"insert_count":)\d+'), r"\g<1>0"),
    (re.compile(r'\A(\[\{"cache_version":.*"items":)\d+'), r"\g<1>0"),
)
"""What differs from one demo, machine or release to the next."""

LINE = re.compile(
    r"(?P<method>[A-Z]+) (?P<path>/\S*)"
    r"(?P<headers>( \[-?[A-Za-z][\w-]*(: [^\]]*)?\])*)"
    r"( (?P<body>(?!-> ).+?))?"
    r"(?P<keeps>( -> \w+=\S+)*)"
)


@contextmanager
def frozen_demo():
    """A client of a demo whose date stands still."""
    line = [sys.executable, "-m", "tests.contract.frozen"]
    line += ["--nodaemon", "--pidfile=", "monrest", "--demo", "--port", "0"]
    with tempfile.TemporaryDirectory() as folder:
        demo = Demo(Path(folder), program="", line=line)
        try:
            _address, port, key = demo.found()
            with Client(port, key) as client:
                until(lambda: filled_cache(client), "the log cache has its first lines")
                yield client
        finally:
            demo.stop()


def filled_cache(client):
    (row,) = client.rows("/mon/logcache/stats")
    return row["last_update"] and not row["mode"]


def requests():
    """Each request as it is written, with its method, path, headers, body and what it keeps."""
    for line in REQUESTS.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            found = LINE.fullmatch(line)
            assert found, f"no request: {line}"
            method, path, body = found["method"], found["path"], found["body"]
            headers = re.findall(r"\[(-?[\w-]+)(?:: ([^\]]*))?\]", found["headers"])
            keeps = dict(re.findall(r"-> (\w+)=(\S+)", found["keeps"]))
            yield line, method, path, dict(headers), body, keeps
    for one in example_requests():
        path = one.path.replace(" ", "%20").replace("^", "%5E")
        body = None if one.body is None else json.dumps(one.body, ensure_ascii=False)
        line = f"{one.method} {path}{'' if body is None else ' ' + body}"
        yield line, one.method, path, {}, body, one.keeps


def send(client, method, path, headers, body):
    """Send one request, with what the client sends of itself but for ``-Name``."""
    send = {**client.credentials(), "Accept": "*/*"}
    if body is not None:
        form = not body.startswith(("{", "["))
        send["Content-Type"] = "application/" + ("x-www-form-urlencoded" if form else "json")
    for name, value in headers.items():
        if name.startswith("-"):
            del send[name[1:]]
        else:
            send[name] = value
    with Client(client.port, None, None, "" if path.startswith("//") else client.root) as other:
        other.connection, client.connection = client.connection, None
        try:
            return other.request(
                method,
                path[1:] if path.startswith("//") else path,
                body=None if body is None else body.encode(),
                headers=send,
            )
        finally:
            client.connection, other.connection = other.connection, None


def answers(client):
    """The requests with their answers as blocks of text, in order."""
    known = {}
    for line, method, path, headers, body, keeps in requests():
        path, body = filled(path, known), body and filled(body, known)
        headers = {name: filled(value, known) for name, value in headers.items()}
        response = send(client, method, path, headers, body)
        while response.status == 302:  # the job is not done yet
            response = send(client, method, path, headers, body)
        for name, way in keeps.items():
            # An answer without it is another one than before, which is all that need be said.
            with suppress(KeyError, IndexError, TypeError, ValueError):
                at = way.removeprefix("@")
                known[name] = response.headers[at] if at != way else part(response.json, way)
        if method != "GET" or "background=" in path:
            jobs_end(client)
        # What a webhook has sent by now depends on how busy the machine is.
        sending = path.partition("?")[0].endswith("/deliveries")
        yield line, str(response.status) if sending else shown(response)


def filled(text, known):
    for name, value in known.items():
        text = text.replace("{" + name + "}", str(value))
    return text


def shown(response):
    """Status, headers and body of an answer, without what is another one each time."""
    body = response.body
    if response.headers.get("content-encoding") == "gzip":
        body = gzip.decompress(body)
    binary = response.type.startswith("application/vnd.") and response.status == 200
    text = "(a file)" if binary else body.decode("utf-8")
    same = steady(text)
    lines = [str(response.status)]
    for name, value in sorted(response.headers.items()):
        if name == "etag" and (binary or same != text or "content-encoding" in response.headers):
            value = "…"
        # Whether a longer body is made as a whole depends on how busy the machine is.
        if name in ("etag", "cache-control") and len(body) > SURELY_WHOLE:
            continue
        if name not in NOT_KEPT:
            lines.append(f"{name}: {steady(value)}")
    if len(same) > WHOLE:
        same = f"{same[:WHOLE]} … {len(same)} characters, sha256 {digest(same)}"
    return "\n".join([*lines, "", same]).rstrip("\n")


def steady(text):
    for pattern, instead in CHANGING:
        text = pattern.sub(instead, text)
    return text


def jobs_end(client):
    """Wait for jobs, so that the next request finds them done however busy the machine is."""
    until(lambda: client.rows("/mon/jobs?is_running=1&columns=id") == [], "all jobs have ended")


def description(client):
    """``/openapi.json``: of each operation the parameters, statuses and a digest, of each schema its fields."""
    document = client.get("/openapi.json").json
    document["info"]["version"] = "VERSION"
    for path, operations in document.pop("paths").items():
        for method, one in operations.items():
            parameters = (
                each.get("name") or each["$ref"].rpartition("/")[2]
                for each in one.get("parameters", ())
            )
            yield (
                f"{method.upper()} {path}",
                " ".join([*parameters, *one["responses"], digest(one)]),
            )
    for kind, components in document.pop("components").items():
        for name, one in components.items():
            yield f"{kind}/{name}", " ".join([*one.get("properties", ()), digest(one)])
    yield "all else", json.dumps(document, ensure_ascii=False, indent=1)


def digest(value):
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def help_texts():
    """What ``--help`` prints, of the command and of all of its subcommands."""
    for words in HELP:
        line = ["monrest", *words.split(), "--help"]
        status, text = ran(line, program=CLIENT, env={"COLUMNS": "100", "PATH": "/usr/bin:/bin"})
        yield " ".join(line), f"exit status {status}\n\n{text.rstrip()}"


def kept(name):
    """What a golden file has: its titles and texts."""
    blocks = f"\n{(FOLDER / name).read_text('utf-8')}".split("\n=== ")[1:]
    return [tuple(one.rstrip("\n").split("\n", 1)) for one in blocks]


def keep(name, blocks):
    lines = (f"=== {title}\n{text}\n" for title, text in blocks)
    (FOLDER / name).write_text("\n".join(lines), "utf-8")
