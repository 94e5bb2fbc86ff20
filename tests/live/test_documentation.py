"""Every example of the guide, the how-to pages, the tutorial and the README works as it is written."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tomllib
from copy import copy
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import quote, urlsplit

import pytest
import yaml
from jinja2.nativetypes import NativeEnvironment
from standardwebhooks.webhooks import Webhook

from monrest.cli import client_settings
from monrest.config import loads
from monrest.reports.own import read_template
from tests.fakes.nagios4 import Nagios4
from tests.forks import CLIENT, SCRIPT, ran, start

from .harness.client import Client
from .harness.cores import HOST_RESULTS, Icinga2Core
from .harness.daemon import free_port
from .harness.demo import Demo
from .harness.pages import DOCS, Shell, blocks, commands, inline, syntax, unlike
from .harness.waiting import until

BLOCKS = blocks()

NOT_RUN = {
    "make": "runs the tests, or the demo as harness.demo does",
    "apt": "installs a package",
    "editor": "a person types",
    "systemctl": "there is no systemd",
    "journalctl": "there is no systemd",
    "python3 -m venv": "installs into /opt",
    "/opt/monrest/bin": "is in /opt",
    "ln -s": "writes to /usr",
    "mkdir": "writes to /etc and /var/lib",
    "mv": "writes to /etc",
    "monrest config example --sysusers >": "makes a user",
    "sqlite3": "reads /var/lib",
    "pg_dump": "needs a PostgreSQL",
    "createuser": "needs a PostgreSQL",
    "createdb": "needs a PostgreSQL",
    "monrest import": "test_import has an old front end",
    "monrest serve": "test_the_first_minutes_on_a_core starts it",
    "monrest check-config --connect": "test_the_first_minutes_on_a_core has a core",
    "#!/bin/sh\ncopy=$(mktemp)": "needs a Naemon",
}
"""Command lines, by how they begin, of which only the syntax is tested, and why."""

NOT_RUN_INLINE = {
    "monrest import": "names the command",
    "monrest r": "names the command",
    "monrest r -m POST /mon/cluster/restart": "there is no cluster",
    "monrest r -k": "names the option",
    "monrest key create": "names the command",
    "monrest serve": "test_the_first_minutes_on_a_core starts it",
    "monrest serve --demo": "is what all of this runs before",
}
"""The same for those in sentences and tables, where capital letters stand for something as well."""

OUTPUT = {
    "guide/events.md": "a stream; test_events reads them",
    "tutorial.md": "the demo says it, and Demo.found reads it",
}
"""Pages with examples in the language ``text``: what is printed, and who compares it."""


@pytest.fixture(scope="module")
def shell(tmp_path_factory):
    demo = Demo(tmp_path_factory.mktemp("demo"))
    folder = tmp_path_factory.mktemp("reader")
    try:
        shell = Shell(folder, demo)
        for name, text in (
            ("prometheus/monrest.key", shell.key),
            ("monrest/client.key", shell.key),
            ("monrest/monrest.toml", "[server]\n"),
            ("monrest/key.pem", ""),
            ("monrest/cert.pem", ""),
            ("bash_completion.d/none", ""),
            ("systemd/system/none", ""),
        ):
            path = folder / "etc" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        yield shell
    finally:
        demo.stop()


def why_not(line):
    """The beginning of a line that is not run, if it is one."""
    return next((words for words in NOT_RUN if line.startswith(words)), None)


def check_commands(block, shell):
    asked = commands(block)
    for line, _shown in asked:
        assert syntax(line) == "", line
    asked = [(line, shown) for line, shown in asked if not why_not(line)]
    done = shell.run([line for line, _shown in asked])
    assert len(done) == len(asked), done
    for (line, shown), (status, output, error) in zip(asked, done, strict=True):
        assert_worked(line, status, output, error)
        if shown.strip():
            assert unlike(shown, output) == [], (line, output)


def assert_worked(line, status, output, error):
    plugin = line.startswith("monrest r") and (" -w " in line or " -c " in line)
    assert status in ((0, 1, 2) if plugin else (0,)), (line, output, error)
    # A column that does not exist is a warning; so is a week before the two days of a demo's log.
    told = [one for one in error.splitlines() if "no state is known" not in one]
    assert told == [] or "monrest key " in line, (line, error)
    if line.startswith("monrest"):
        assert output or ">" in line, line


def check_toml(block, shell):
    text = shell.local(block.text)
    document = tomllib.loads(text)
    if "Listen" in document:
        assert block.page == "howto/lmd.md", "the configuration of an LMD"
    elif "url" in document:
        path = shell.folder / "client.toml"
        path.write_text(text)
        path.chmod(0o600)
        found = client_settings.settings([], {}, [str(path)])
        assert found.url_source == str(path)
        assert found.key == shell.key
    else:
        loads(text if "sites" in document else text + SITE)


SITE = """
[[sites]]
id = "prod"
name = "Production"
address = "unix:/run/naemon/live"
"""


def check_yaml(block, shell):
    document = yaml.safe_load(block.text)
    path = shell.folder / "page.yml"
    if "scrape_configs" in document:
        path.write_text(shell.local(block.text))
        judge("promtool", "check", "config", path)
        (scraped,) = yaml.safe_load(shell.local(block.text))["scrape_configs"]
        key = Path(scraped["authorization"]["credentials_file"]).read_text()
        with Client(shell.port, None, None, root="") as client:
            bearer = {"Authorization": f"Bearer {key}"}
            assert client.get("/metrics", headers=bearer).status == 200
    elif "route" in document:
        names = [{"name": one} for one in re.findall(r"receiver: (.*)", block.text)]
        path.write_text(yaml.safe_dump({**document, "receivers": names}))
        judge("amtool", "check-config", path)
    elif isinstance(document, list):
        run_tasks(document, shell)
    else:
        assert set(document) == {"vars"}, "a play"


def judge(program, *arguments):
    if shutil.which(program) is None:
        assert "MONREST_CI" not in os.environ, f"{program} is missing"
        pytest.skip(f"{program} is not installed")
    ran = subprocess.run([program, *arguments], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def run_tasks(tasks, shell):
    """Send what the tasks of a play would send, for the host web01."""
    (play,) = (
        yaml.safe_load(one.text)["vars"]
        for one in BLOCKS
        if one.page == "howto/ansible.md" and one.text.startswith("vars:")
    )
    values = {
        "inventory_hostname": "web01",
        "ansible_facts": {"user_id": "root", "default_ipv4": {"address": "192.0.2.1"}},
        "vault_monrest_key": shell.key,
    }

    def filled(value):
        if isinstance(value, dict):
            return {name: filled(one) for name, one in value.items()}
        if isinstance(value, list):
            return [filled(one) for one in value]
        if isinstance(value, str):
            return NativeEnvironment().from_string(shell.local(value)).render(values)
        return value

    values |= filled(play)
    sent = [task["ansible.builtin.uri"] for task in tasks if "ansible.builtin.uri" in task]
    with Client(shell.port, None, None, root="") as client:
        for task in map(filled, sent):
            assert set(task) <= {"url", "method", "headers", "body_format", "body"}
            path = task["url"].partition(f":{shell.port}")[2]
            response = client.json(
                task.get("method", "GET"), path, task.get("body"), headers=task["headers"]
            )
            assert response.status == 200, (task, response)
            assert "x-mon-warnings" not in response.headers, response
            if path.endswith("/config/objects"):
                response = client.json("POST", "/mon/r/config/revert", headers=task["headers"])
                assert response.status == 200, response


def check_json(block, shell):
    assert block.page == "howto/webhooks.md", "this is sent to no path"
    with Client(shell.port, shell.key) as client:
        response = client.json("POST", "/mon/webhooks", json.loads(block.text))
        assert response.status == 200, response


def check_python(block, shell):
    text = shell.local(block.text)
    compile(text, str(block), "exec")
    if "serve_forever" in text:
        return  # test_the_receiver_of_webhooks
    path = shell.folder / "example.py"
    path.write_text(f"URL, KEY = {shell.url!r}, {shell.key!r}\n{text}")
    status, output = ran([sys.executable, path], program=SCRIPT, env=shell.environment)
    assert status == 0, output
    assert output
    if "inventory" in text:
        assert json.loads(output)["_meta"]["hostvars"]["web01"]["ansible_host"]
    if "outcome.effect" in text:
        assert "seen" in output.splitlines()


def check_nagios(block, shell):
    core = Nagios4(shell.folder / "nagios4")
    (core.objects / "page.cfg").write_text(GENERIC + block.text)
    verdict = core.judge()
    assert verdict.accepts, verdict.output


GENERIC = """
define timeperiod {
    timeperiod_name  always
    alias            always
}
define contact {
    contact_name                   admin
    host_notification_commands     check_monrest
    service_notification_commands  check_monrest
    host_notification_period       always
    service_notification_period    always
}
define host {
    host_name           monitor
    check_command       check_monrest
    max_check_attempts  1
    contacts            admin
    check_period        always
}
define service {
    name                   generic-service
    register               0
    max_check_attempts     1
    check_interval         1
    retry_interval         1
    notification_interval  1
    contacts               admin
    check_period           always
    notification_period    always
}
"""


def check_icinga2(block, shell):
    core = Icinga2Core(shell.folder / "icinga2")
    (program, daemon, _option, _site, *defines) = core.arguments()
    path = shell.folder / "page.conf"
    path.write_text('object IcingaApplication "app" { }\n' + block.text)
    ran = subprocess.run(
        [program, daemon, "-C", "-c", path, *defines], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stdout
    assert "Instantiated 1 CheckCommand." in ran.stdout


def check_lines(block, _shell):
    """Directives of a proxy: brackets that fit, and lines that end as they must."""
    lines = [line.strip() for line in block.text.splitlines() if line.strip()]
    depth = 0
    for line in lines:
        if block.language == "nginx":
            assert line.endswith((";", "{")) or line == "}", line
            depth += line.count("{") - line.count("}")
        elif block.language == "apache":
            depth += line.startswith("<") - 2 * line.startswith("</")
        else:
            assert line.split()[0] in {"backend", "option", "default-server", "server"}, line
        assert depth >= 0, line
    assert depth == 0
    assert "/mon/" in block.text


def check_template(block, _shell):
    """Its parts are tests/reports/test_sources.py's."""
    assert read_template("page.tt", block.text).title == "Customer report"


def check_javascript(block, shell):
    """No browser runs it here: what it asks for has the fields that it reads."""
    (path,) = re.findall(r'EventSource\("(.+)"\)', block.text)
    with Client(shell.port, shell.key, None, root="") as client:
        ending = {"format": "ndjson", "since": "-1d", "limit": 1}
        event = json.loads(client.get(path, ending).text.splitlines()[-1])
    assert set(re.findall(r"data\.(\w+)", block.text)) == event["data"].keys()


def check_output(block, _shell):
    assert block.page in OUTPUT


CHECKS = {
    "sh": check_commands,
    "console": check_commands,
    "toml": check_toml,
    "yaml": check_yaml,
    "json": check_json,
    "python": check_python,
    "nagios": check_nagios,
    "icinga2": check_icinga2,
    "nginx": check_lines,
    "apache": check_lines,
    "haproxy": check_lines,
    "jinja": check_template,
    "javascript": check_javascript,
    "text": check_output,
}


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_an_example(block, shell):
    assert block.language in CHECKS, (
        "say its language behind ```, and add a check if it is a new one"
    )
    CHECKS[block.language](block, shell)


def test_what_is_not_run_is_there():
    lines = {line for block in BLOCKS for line, _shown in commands(block)}
    unused = {words for words in NOT_RUN if not any(line.startswith(words) for line in lines)}
    texts = {text for _page, text in inline()}
    assert (unused, NOT_RUN_INLINE.keys() - texts) == (set(), set())


def test_commands_in_sentences_and_tables(shell):
    # Words in capitals stand for something, but for those of a template.
    asked = [
        text
        for _page, text in inline()
        if text.startswith("monrest ")
        and text not in NOT_RUN_INLINE
        and not why_not(text)
        and not re.search(r"(?<![{\w])[A-Z]{2,}|<|…", text)
    ]
    assert len(asked) > 10
    done = shell.run(asked)
    assert len(done) == len(asked), done
    for line, (status, output, error) in zip(asked, done, strict=True):
        assert_worked(line, status, output, error)


def test_addresses_of_panels(shell):
    asked = [text for _page, text in inline() if text.startswith("https://HOST/mon/r/")]
    assert len(asked) == 5
    with Client(shell.port, shell.key, None, root="") as client:
        for url in asked:
            url = url.replace("${__from:date:seconds}", "0").replace("${__to:date:seconds}", "now")
            path = urlsplit(url)
            response = client.get(path.path + "?" + quote(path.query, safe="=&"))
            assert response.status == 200, (url, response)
            assert "x-mon-warnings" not in response.headers, (url, response)


def test_queries_of_the_metrics(shell):
    page = (DOCS / "guide" / "metrics.md").read_text().partition("## Useful queries")[2]
    found = re.findall(r"^\| .+? \| `(.+)` \|$", page, re.MULTILINE)
    assert len(found) == 6
    rules = [{"record": f"query:{number}", "expr": one} for number, one in enumerate(found)]
    path = shell.folder / "rules.yml"
    path.write_text(yaml.safe_dump({"groups": [{"name": "page", "rules": rules}]}))
    judge("promtool", "check", "rules", path)


def test_the_receiver_of_webhooks(shell):
    (text,) = (one.text for one in BLOCKS if "serve_forever" in one.text)
    secret, port = "whsec_" + "c2VjcmV0" * 4, free_port()
    path = shell.folder / "receiver.py"
    path.write_text(text.replace("whsec_…", secret).replace("8000", str(port)))
    event = {"type": "state", "subject": "hosts/web01", "data": {"plugin_output": "down"}}
    body = json.dumps(event)
    now = datetime.now(UTC)
    signed = {
        "webhook-id": "1",
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(secret).sign("1", now, body),
    }
    with (shell.folder / "received").open("w") as output:
        process = start([sys.executable, "-u", path], output)
    try:
        with Client(port, None, None, root="") as client:

            def sent(headers):
                try:
                    return client.request("POST", "/", body=body, headers=headers).status
                except ConnectionRefusedError:
                    return None

            assert until(lambda: sent(signed), "the receiver answers") == 204
            assert sent({**signed, "webhook-id": "2"}) == 401
    finally:
        process.end()
    received = (shell.folder / "received").read_text()
    assert received.splitlines()[0] == "state hosts/web01 down"


class Answers(BaseHTTPRequestHandler):
    """Answers every request with the document of its server."""

    def do_GET(self):
        body = json.dumps(self.server.document).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments):
        pass


def plugin_lines():
    """The command lines of the table of checks, by what somebody wants to know, and of both examples."""
    page = (DOCS / "howto" / "plugin.md").read_text()
    found = dict(re.findall(r"^\| (.+?) \| `(monrest r .+?)` \|$", page, re.MULTILINE))
    found["nagios"] = "monrest r " + re.search(r"check_command +check_monrest!(.+)", page)[1]
    (found["the command line"],) = (
        line
        for block in BLOCKS
        if block.page == "guide/command-line.md" and block.language == "sh"
        for line, _shown in commands(block)
    )
    return found


def services(critical):
    return {"critical": critical, "total": 100}


VALUES = {
    "hosts that are down": [({"down": 0, "total": 20}, 0), ({"down": 1, "total": 20}, 2)],
    "sites that do not answer": [({"n": 0}, 0), ({"n": 1}, 2)],
    "checks that are late": [({"n": 20}, 0), ({"n": 21}, 1), ({"n": 100}, 1), ({"n": 101}, 2)],
    "how old the log cache is": [
        ({"age": 300}, 0),
        ({"age": 301}, 1),
        ({"age": 3600}, 1),
        ({"age": 3601}, 2),
    ],
    "nagios": [(services(5), 0), (services(6), 1), (services(10), 1), (services(11), 2)],
    "the command line": [(services(5), 0), (services(6), 1), (services(10), 1), (services(11), 2)],
}
"""Answers to each check of the pages, with the exit status that they must lead to."""


def client(line):
    """The arguments with which a fork does what ``monrest`` does."""
    code = "import sys; from monrest.cli.main import main; sys.exit(main())"
    return [sys.executable, "-c", code, *shlex.split(line.replace("\\\n", ""))[1:]]


def checked(line, environment):
    """Run a plugin: its exit status and the word before the colon."""
    status, output = ran(client(line), program=CLIENT, env=environment)
    return status, output.partition(":")[0]


def test_a_check_alarms_at_its_value_and_not_before(shell):
    lines = plugin_lines()
    assert lines.keys() == VALUES.keys()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    Thread(target=server.serve_forever, daemon=True).start()
    environment = {
        **shell.environment,
        "MONREST_URL": f"http://127.0.0.1:{server.server_port}/mon/r",
    }
    wrong = []
    for name, line in lines.items():
        for server.document, status in VALUES[name]:
            word = ("OK", "WARNING", "CRITICAL")[status]
            if (found := checked(line, environment)) != (status, word):
                wrong.append((name, server.document, found))
    server.shutdown()
    server.server_close()
    assert wrong == []


@pytest.fixture
def own(shell, alone, tmp_path):
    """A daemon with the configuration of the page about the first minutes, before a core."""
    own = copy(shell)
    own.core = alone
    own.replaced = {
        "tcp:8080": f"tcp:{free_port()}",
        "/tmp/monrest.sock": str(tmp_path / "monrest.sock"),
        '"/tmp/monrest"': f'"{tmp_path}/var"',
        "/run/naemon/live": str(alone.socket),
    }
    own.environment = {
        **os.environ,
        "PATH": shell.environment["PATH"],
        "MONREST_URL": f"unix:{tmp_path}/monrest.sock",
    }
    (config,) = (one.text for one in of_the_first_minutes("toml"))
    own.config = shell.folder / "monrest.toml"
    own.config.write_text(own.local(config))
    serve = next(
        line for one in of_the_first_minutes("sh") for line, _ in commands(one) if "serve" in line
    )
    with (shell.folder / "serve").open("w") as output:
        own.process = start(
            client(serve), output, program=CLIENT, cwd=shell.folder, env=own.environment
        )
    try:
        until((tmp_path / "monrest.sock").exists, "the daemon listens")
        yield own
    finally:
        own.process.terminate()
        own.process.wait(300)


def of_the_first_minutes(language):
    """The examples of a daemon that is tried before a core."""
    page = (DOCS / "guide" / "first-core.md").read_text()
    begin, end = (page[: page.index(f"## {title}")].count("\n") for title in ("Try it", "As a"))
    return [
        one
        for one in BLOCKS
        if (one.page, one.language) == ("guide/first-core.md", language) and begin < one.line < end
    ]


def test_the_first_minutes_on_a_core(own):
    lines = [line for block in of_the_first_minutes("sh") for line, _shown in commands(block)]
    lines.remove("monrest serve --config monrest.toml")
    assert lines[0].startswith("monrest check-config --connect")
    done = own.run(lines)
    for line, (status, output, error) in zip(lines, done, strict=True):
        assert (status, error) == (0, ""), (line, output)
    (prod,) = json.loads(done[-2][1])
    assert (prod["id"], prod["status"], prod["last_error"]) == ("prod", 0, "")


def test_checks_before_a_core(own):
    """Hosts and sites that are down are seen; an answer without all sites is unknown."""
    lines = plugin_lines()
    down = lines["hosts that are down"]
    assert checked(down, own.environment) == (2, "CRITICAL")
    own.core.command(*(f"PROCESS_HOST_CHECK_RESULT;{host};0;up" for host in HOST_RESULTS))
    until(lambda: checked(down, own.environment) == (0, "OK"), "all hosts are up")
    for name in ("sites that do not answer", "checks that are late", "how old the log cache is"):
        until(lambda line=lines[name]: checked(line, own.environment) == (0, "OK"), name)
    with own.config.open("a") as config:
        config.write('[[sites]]\nid = "away"\nname = "Away"\naddress = "unix:/no/where"\n')
    own.process.send_signal(signal.SIGHUP)
    sites = lines["sites that do not answer"]
    until(lambda: checked(sites, own.environment) == (2, "CRITICAL"), "the site is missed")
    assert checked(down, own.environment)[0] == 3
    partial = down.replace("/hosts", "--partial-ok /hosts")
    assert checked(partial, own.environment)[0] == 0
