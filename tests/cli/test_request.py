"""``monrest r`` against a fake daemon: what is sent, what is printed, how it ends."""

import gzip
import json

from tests.table import each

OK = (200, {"up": 17, "down": 2, "nested": {"x": 1}})


def root(path):
    return f"/mon/r{path}"


SENT = {
    # words: (method, target, decoded body or None)
    ("/hosts",): ("GET", "/mon/r/hosts", None),
    ("hosts",): ("GET", "/mon/r/hosts", None),
    ("/hosts/",): ("GET", "/mon/r/hosts", None),
    ("/",): ("GET", "/mon/r/", None),
    ("-t", "/"): ("GET", "/mon/r/text/index", None),
    ("/hosts?q=state > 0&x=a+b",): ("GET", "/mon/r/hosts?q=state%20%3E%200&x=a%2Bb", None),
    ("/hosts?q=***a & b#c***",): ("GET", "/mon/r/hosts?q=***a%20&%20b%23c***", None),
    ("/services/web%2F01/Disk%20C",): ("GET", "/mon/r/services/web%2F01/Disk%20C", None),
    ("/services/100%/Größe",): ("GET", "/mon/r/services/100%25/Gr%C3%B6%C3%9Fe", None),
    ("--csv", "/hosts"): ("GET", "/mon/r/csv/hosts", None),
    ("--xls", "/hosts"): ("GET", "/mon/r/xls/hosts", None),
    ("--human", "/hosts"): ("GET", "/mon/r/human/hosts", None),
    ("--text", "/hosts"): ("GET", "/mon/r/text/hosts", None),
    ("-t", "/hosts"): ("GET", "/mon/r/text/hosts", None),
    ("--json", "/hosts"): ("GET", "/mon/r/json/hosts", None),
    ("/hosts", "-t"): ("GET", "/mon/r/text/hosts", None),
    ("-t", "/v1/hosts"): ("GET", "/mon/r/v1/text/hosts", None),
    ("-b", "a,b", "-b", "c/d", "/hosts"): ("GET", "/mon/r/sites/a,b,c%2Fd/hosts", None),
    ("-b", "a", "--csv", "/hosts?limit=1"): ("GET", "/mon/r/csv/sites/a/hosts?limit=1", None),
    ("-m", "delete", "/x"): ("DELETE", "/mon/r/x", None),
    ("-m", "PATCH", "-d", "a=1", "/x"): ("PATCH", "/mon/r/x", {"a": "1"}),
    ("-d", "", "/x"): ("POST", "/mon/r/x", None),
    ("-d", "a=1", "/x"): ("POST", "/mon/r/x", {"a": "1"}),
    ("-da=1", "/x"): ("POST", "/mon/r/x", {"a": "1"}),
    ("--data=a=1", "/x"): ("POST", "/mon/r/x", {"a": "1"}),
    ("-d", "a=1", "-d", "a=2", "-d", "a=3", "/x"): ("POST", "/mon/r/x", {"a": ["1", "2", "3"]}),
    ("-d", "a=1", "-D", "a=2", "/x"): ("POST", "/mon/r/x", {"a": "2"}),
    ("-D", "a=1", "/x"): ("POST", "/mon/r/x", {"a": "1"}),
    ("-d", "t=+60m", "-d", "c=a+b%2Bc=d", "/x"): (
        "POST", "/mon/r/x", {"t": "+60m", "c": "a b+c=d"}),
    ("-d", "a=1", "-d", '{"a": [2], "b": null}', "/x"): (
        "POST", "/mon/r/x", {"a": [2], "b": None}),
    ("-d", '{"a": [2]}', "-d", "a=3", "/x"): ("POST", "/mon/r/x", {"a": [2, "3"]}),
    ("-d", '[{"cmd": "x"}]', "/cmd"): ("POST", "/mon/r/cmd", [{"cmd": "x"}]),
    ("-d", "ü=é", "/x"): ("POST", "/mon/r/x", {"ü": "é"}),
    ("-m", "GET", "-d", "a=1", "-d", "a=b c", "/x?y=1"): (
        "GET", "/mon/r/x?y=1&a=1&a=b%20c", None),
    ("-m", "GET", "-d", '{"n": null, "t": true, "o": {"a": 1}, "l": [1, "+"]}', "/x"): (
        "GET", "/mon/r/x?t=1&o=%7B%22a%22%3A1%7D&l=1&l=%2B", None),
    ("-m", "DELETE", "-d", "a=1", "/x"): ("DELETE", "/mon/r/x", {"a": "1"}),
    ("--", "/hosts"): ("GET", "/mon/r/hosts", None),
}  # fmt: skip


@each("words", SENT)
def test_what_is_sent(fake, monrest, words):
    fake.seen.clear()
    method, target, body = SENT[words]
    fake.answers[target.partition("?")[0]] = OK
    ran = monrest("r", *words)
    (seen,) = fake.seen
    assert (seen.method, seen.target) == (method, target)
    assert (json.loads(seen.body) if seen.body else None) == body
    if body is not None:
        assert seen.headers["Content-Type"] == "application/json"
    assert seen.headers["User-Agent"].startswith("monrest/")
    assert (ran.status, ran.out, ran.err) == (0, json.dumps(OK[1]), "")


def test_parameters_from_files(fake, monrest, tmp_path):
    fake.answers[root("/cmd")] = OK
    bulk = tmp_path / "bulk.json"
    bulk.write_text('\ufeff[{"cmd": "ä"}]', "utf-8")
    assert monrest("r", "-d", f"@{bulk}", "/cmd").status == 0
    bulk.write_text('{"cmd": 1, "b": 2}')
    assert monrest("r", "-d", "cmd=0", "-d", f"@{bulk}", "-D", "b=3", "/cmd").status == 0
    assert [seen.json for seen in fake.seen] == [[{"cmd": "ä"}], {"cmd": 1, "b": "3"}]


def test_key_and_user_of_a_request(fake, monrest):
    fake.answers[root("/x")] = OK
    monrest("r", "--key", "secret_1", "-A", "jürgen", "/x")
    monrest("-A", "a", "r", "/x")
    monrest("-A", "a", "r", "/x", "-A", "b")
    first, second, third = [seen.headers for seen in fake.seen]
    assert first["X-Mon-Auth-Key"] == "secret_1"
    assert first["X-Mon-Auth-User"].encode("latin-1").decode() == "jürgen"
    assert "X-Mon-Auth-Key" not in second
    assert (second["X-Mon-Auth-User"], third["X-Mon-Auth-User"]) == ("a", "b")


def test_another_root(fake, monrest):
    fake.answers["/proxy/foo/r/x"] = OK
    words = ("--url", f"{fake.url}/proxy/foo/r/", "--key", "k", "/x")
    assert monrest("rest", *words).status == 0  # the same as r
    assert fake.seen[0].headers["X-Foo-Auth-Key"] == "k"


WRONG = {
    ("r", "--nonsense", "/x"): "option --nonsense not recognized",
    ("r", "-z", "/x"): "option -z not recognized",
    ("r", "--warnign", "x:1", "/x"): "option --warnign not recognized, did you mean --warning?",
    ("r", "--ver", "/x"): "option --ver not a unique prefix, did you mean --verbose or --version?",
    ("r", "--backgrund", "/x"): "option --backgrund not recognized, did you mean --background?",
    ("--verbos", "--versoin"): "option --versoin not recognized, did you mean --version?",
    ("r", "/x", "-m"): "option -m requires argument",
    ("r", "--csv=1", "/x"): "option --csv must not have an argument",
    ("r", "-d", "novalue", "/x"): "--data: expected KEY=VALUE, a JSON object or @FILE",
    ("r", "-D", "=x", "/x"): "--rawdata: expected KEY=VALUE",
    ("r", "-d", "{broken", "/x"): "--data: expected a JSON object or list: Expecting",
    ("r", "-d", "a=%ff", "/x"): "--data: a: expected percent-encoded UTF-8",
    ("r", "-d", "@/nonexistent", "/x"): "--data @/nonexistent: No such file",
    ("r", "-d", "[" * 100_000, "/x"): "--data: nested too deeply",
    ("r", "-d", "[]", "-d", "a=1", "/x"): "--data: a JSON list is a request of its own",
    ("r", "-m", "GET", "-d", "[]", "/x"): "--data: a JSON list goes with POST",
    ("r", "-m", "G T", "/x"): "--method: expected a word",
    ("r", "--csv", "-t", "/x"): "/x: expected one output format, got csv, text",
    ("r", "-H", "A: b", "/x"): "--header: goes with URLs with http:// or https://",
    ("r", "-H", "A b", "http://x/"): "--header: expected 'NAME: VALUE'",
    ("r", "-H", "A: b\nC: d", "http://x/"): "--header: expected 'NAME: VALUE'",
    ("r", "--csv", "http://x/"): "--csv: goes with paths of the API",
    ("r", "--background", "{}"): "--background: goes with paths of the API",
    ("r", "{broken"): "{broken: expected JSON",
    ("r", "--rename", "x", "/x"): "--rename: expected OLD:NEW",
    ("r", "-o", "a", "/x", "-o", "b"): "multiple -o/--output parameter are not supported.",
    ("r", "--perffilter", "(", "/x"): "--perffilter: '(' is no regular expression",
    ("r", "--perfunit", "x", "/x"): "--perfunit: expected LABEL:UNIT",
    ("r", "--timeout", "x", "/x"): "--timeout: expected seconds",
    ("r", "--timeout", "0", "/x"): "--timeout: expected seconds",
    ("r", "--timeout", "nan", "/x"): "--timeout: expected seconds",
    ("r", "--url", "ftp://x", "/x"): "the URL of the command line: expected unix:PATH, http://HOST:PORT",
    ("r", "--url", "http://h/other", "/x"): "the URL of the command line: expected unix:PATH",
    ("r", "--key", "a b\u00e9", "/x"): "the key of the command line: expected letters",
    ("r", "--key", "@/nonexistent", "/x"): "the key of the command line: /nonexistent: No such",
    ("r", "-A", "a\nb", "/x"): "--auth: expected a name without control characters",
    ("r",): "r: expected URL",
    ("r", "-t"): "r: expected URL",
    ("completion",): "completion: expected one of bash",
    ("key", "revoke"): "key revoke: expected ID",
    ("r", "--color", "red", "/x"): "--color: expected auto, always, never, got 'red'",
    ("r", "--watch", "0", "/x"): "--watch: expected 0.1 to 86400 seconds, got '0'",
    ("r", "--watch", "2", "-d", "a=1", "/x"): "--watch: goes with requests that change nothing",
    ("r", "--watch", "2", "--background", "/x"): "--watch: goes with requests that change nothing",
    ("r", "--string", "--command", "x"): "expected --string or --command, not both",
    ("r", "--string", "--csv", "x"): "--csv: goes with paths of the API, not with x",
    ("r", "--command", "-d", "a=1", "x"): "--data: goes with paths of the API, not with x",
    ("check-config", "a", "b"): "expected one FILE",
    ("completion", "ksh"): "completion: expected one of bash, fish, tcsh, zsh",
    ("key", "list", "x"): "unexpected 'x'",
    ("key", "create", "--user", "a", "--superuser"): "expected --user or --superuser, not both",
    ("key", "create", "--force-user", "a"): "--force-user: goes with --superuser",
    ("--nonsense",): "option --nonsense not recognized",
}  # fmt: skip


@each("words", WRONG)
def test_wrong_command_lines(fake, monrest, words):
    ran = monrest(*words)
    assert (ran.status, ran.out) == (3 if "-o" in words else 1 if "--key" in words else 2, "")
    assert WRONG[words] in ran.err
    assert "Traceback" not in ran.err
    assert fake.seen == []


@each(
    "words",
    [("-h",), ("--help",), ("r", "-h"), ("r", "/x", "--help"), ("-h", "r"), ("r", "-c", "a:1", "-h"),
     ("key", "-h"), ("key", "create", "-h"), ("-h", "nonsense")],
)  # fmt: skip
def test_help(fake, monrest, words):
    ran = monrest(*words)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("usage: monrest")
    assert fake.seen == []


@each("words", [(), ("key",), ("-q",)])
def test_without_a_command_the_usage_is_shown(fake, monrest, words):
    ran = monrest(*words)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith("usage: monrest")


@each("words", [("-V",), ("--version",), ("r", "-V"), ("r", "-V", "/x")])
def test_version(monrest, words):
    ran = monrest(*words)
    assert (ran.status, ran.out.split()[0]) == (0, "monrest")


def test_an_unknown_subcommand(monrest):
    ran = monrest("nonsense", "-x")
    assert (ran.status, ran.out) == (2, "")
    assert "no such command: nonsense" in ran.err
    assert "did you mean monrest key create?" in monrest("key", "creat").err


def test_bodies_are_printed_as_they_came(fake, monrest):
    fake.answers[root("/a")] = (200, b'{"x": 1}\n')
    fake.answers[root("/csv/b")] = (200, b"#a;b\n\xff\x00")
    ran = monrest("r", "/a", "--csv", "/b", '["json", "text"]')
    assert ran.status == 0
    assert ran.out.startswith('{"x": 1}\n#a;b\n')
    assert ran.out.endswith('["json", "text"]')


def test_files_are_results(fake, monrest, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hosts").write_text('{"n": 5}')
    assert monrest("r", "-o", "{n}", "hosts").out == "5|'n'=5;;;;\n"
    assert monrest("r", "hosts").out == '{"n": 5}'
    assert fake.seen == []
    fake.answers[root("/hosts")] = fake.answers[root("/json/hosts")] = (200, b"[]")
    assert monrest("r", "/hosts").out == "[]"
    assert monrest("r", "-d", "", "hosts").out == "[]"
    assert monrest("r", "--json", "hosts").out == "[]"


def test_absolute_urls_get_their_headers_and_not_our_key(fake, monrest):
    fake.answers["/elsewhere"] = (200, {"n": 1})
    ran = monrest(
        "r", "--key", "secret", "-A", "u", "-b", "x",
        *("-H", "X-Own: ü", "-H", "Accept: text/plain", "-d", "a=1"), f"{fake.url}/elsewhere?b=1+1",
    )  # fmt: skip
    assert (ran.status, ran.out) == (0, '{"n": 1}')
    (seen,) = fake.seen
    assert (seen.method, seen.target, seen.json) == ("POST", "/elsewhere?b=1+1", {"a": "1"})
    assert seen.headers["X-Own"].encode("latin-1").decode() == "ü"
    assert not [name for name in seen.headers if "Auth" in name]
    assert "secret" not in str(seen)


def test_an_error_is_printed_alone(fake, monrest):
    fake.answers[root("/a")] = OK
    fake.answers[root("/b")] = (400, b'{"code":400}')
    for more in ((), ("-o", "{up}"), ("-c", "up:1")):
        ran = monrest("r", "/a", *more, "/b", "/a")
        assert (ran.status, ran.out) == (3 if more else 1, '{"code":400}')
    assert monrest("r", "/b", "-c", "x:1").status == 3


def test_any_success_is_one(fake, monrest):
    fake.answers[root("/a")] = (204, b"")
    assert monrest("r", "-m", "OPTIONS", "/a").status == 1  # the fake daemon has no OPTIONS
    assert monrest("r", "-m", "POST", "/a").status == 0


def test_templates_and_thresholds(fake, monrest):
    fake.answers[root("/a")] = OK
    fake.answers[root("/b")] = (200, {"up": 3, "free": 0.5})
    ran = monrest(
        "r", "-w", "up:10", "/a", "-w", "free:1:", "-c", "up:5", "/b",
        *("-o", "{STATUS} {up} {2:free%.2f}\\n{1:nested.x}", "--perfunit", "free:%", "--perffilter", "free|up"),
    )  # fmt: skip
    assert ran.status == 1
    assert ran.out == "WARNING 20 0.50\n1|'free'=0.5%;1:;;; 'up'=20;10;5;;\n"


@each(
    ("words", "status"),
    [
        (("-w", "up:20"), 0),
        (("-w", "up:16"), 1),
        (("-w", "up:16", "-c", "up:16"), 2),
        (("--warning=up:16", "--critical=down:5"), 1),
        (("-w", "nested.x:0"), 1),
        (("-w", "{nested::x}0"), 1),
        (("-c", "up:@17:17"), 2),
    ],
)
def test_exit_statuses_without_a_template(fake, monrest, words, status):
    fake.answers[root("/a")] = OK
    ran = monrest("r", *words, "/a")
    assert (ran.status, ran.out) == (status, json.dumps(OK[1]))


PARTIAL = {"X-Mon-Failed-Sites": "munich,b"}
MISSING = "no answer from munich, b"


def test_an_answer_without_all_sites_is_told(fake, monrest):
    fake.answers[root("/t")] = (200, b'{"up": 3}', PARTIAL)
    ran = monrest("r", "/t")
    assert (ran.status, ran.out) == (0, '{"up": 3}')
    assert ran.err == f"monrest: the answer is incomplete, {MISSING}\n"
    assert monrest("r", "-q", "/t").err == ""
    ran = monrest("r", "-o", "{up} up", "/t")
    assert (ran.status, ran.out) == (0, "3 up|'up'=3;;;;\n")
    assert MISSING in ran.err


@each(
    "words",
    [
        ("-w", "up:5", "/t"),
        ("-c", "up:1", "/t"),
        ("-w", "up:5", "-o", "{STATUS} {up}", "/t"),
        ("/t", "-c", "up:5", "/whole"),
    ],
)
def test_a_plugin_does_not_know_what_sites_would_have_said(fake, monrest, words):
    fake.answers[root("/t")] = (200, b'{"up": 3}', PARTIAL)
    fake.answers[root("/whole")] = OK
    ran = monrest("r", *words)
    assert (ran.status, ran.out) == (3, f"UNKNOWN - incomplete, {MISSING}\n")


def test_a_plugin_that_may_do_without_some_sites(fake, monrest):
    fake.answers[root("/t")] = (200, b'{"up": 3}', PARTIAL)
    ran = monrest("r", "--partial-ok", "-w", "up:5", "-c", "up:9", "-o", "{STATUS} {up}", "/t")
    assert (ran.status, ran.out) == (0, "OK 3|'up'=3;5;9;;\n")
    assert MISSING in ran.err
    assert monrest("r", "--partial-ok", "-w", "up:2", "/t").status == 1
    both = ("-w", "up:5", "--partial-ok", "/t", "-w", "up:5", "/t")
    assert monrest("r", *both).status == 3  # it belongs to its URL


def test_thresholds_belong_to_their_url(fake, monrest):
    fake.answers[root("/a")] = OK
    fake.answers[root("/b")] = (200, {"other": 1})
    assert monrest("r", "-w", "up:1", "/a", "/b").status == 1
    ran = monrest("r", "/a", "-w", "up:1", "/b", "-o", "x")
    text = "unknown variable up in thresholds, syntax is --warning=key:value\n"
    assert (ran.status, ran.out, ran.err) == (3, text, "")


def test_a_bad_threshold(fake, monrest):
    ran = monrest("r", "-c", "up", "/a")
    text = "unknown threshold format, syntax is --critical={key}threshold, got: up\n"
    assert (ran.status, ran.out, ran.err) == (3, text, "")
    assert fake.seen == []


def test_rename(fake, monrest):
    fake.answers[root("/a")] = OK
    ran = monrest("r", "--rename", "up:ok", "-w", "ok:16", "/a", "-o", "{ok} {up}")
    assert (ran.status, ran.out.partition("|")[0]) == (3, "17 {error:up does not exist}")
    assert monrest("r", "--rename", "up:ok", "/a").out == json.dumps(OK[1])


def test_results_that_are_no_objects(fake, monrest):
    fake.answers[root("/a")] = (200, b"[[1]]")
    fake.answers[root("/b")] = (200, b"not json")
    fake.answers[root("/c")] = (200, b"NaN")
    ran = monrest("r", "/a", "/b", "/c", "-o", "{1:0.0} {x} {RAW2}")
    assert (ran.status, ran.out) == (3, "1 {error:x does not exist} not json\n")


def test_gzip(fake, monrest):
    body = b'{"n": 1}' * 100_000
    packed = (200, gzip.compress(body), {"Content-Encoding": "gzip"})
    fake.answers[root("/a")] = packed
    assert monrest("r", "/a").out == body.decode()
    fake.answers[root("/a")] = (200, b"no gzip", {"Content-Encoding": "gzip"})
    assert "the answer broke off" in monrest("r", "/a").err


def test_a_cut_answer(fake, monrest):
    fake.answers[root("/a")] = (200, b"short", {"Content-Length": "100"})
    ran = monrest("r", "/a")
    assert ran.status == 1
    assert "the connection was cut in the middle" in ran.err
    ran = monrest("r", "-o", "{x}", "/a")
    assert (ran.status, ran.err) == (3, "")
    assert "the connection was cut in the middle" in ran.out


def test_only_distant_servers_are_asked_to_compress(fake, monrest, monkeypatch):
    fake.answers[root("/a")] = OK
    monrest("r", "/a")
    monkeypatch.setattr("monrest.client.exchange._LOOPBACK", frozenset())
    monkeypatch.setattr("monrest.client.exchange.ServerAddress.local", False)
    monrest("r", "/a")
    assert [seen.headers["Accept-Encoding"] for seen in fake.seen] == ["identity", "gzip"]


@each("code", [401, 403])
def test_refusals_say_which_key_was_used(fake, monrest, code):
    fake.answers[root("/a")] = (code, {"code": code})
    ran = monrest("r", "/a")
    assert (ran.status, json.loads(ran.out)) == (1, {"code": code})
    assert "without a key; --key, MONREST_KEY or key in" in ran.err
    ran = monrest("r", "--key", "geheim", "-A", "u", "/a")
    assert "with the key of the command line, user u" in ran.err
    assert "geheim" not in ran.err
    assert monrest("r", "-q", "/a").err == ""


def test_unknown_paths_have_neighbours(fake, monrest):
    urls = ["/hosts", "/hostgroups", "/hosts/<name>", "/hosts/<name>/services", "/services/totals"]
    fake.answers[root("/json/index")] = (200, [{"url": url} for url in urls])
    unknown = (404, {"code": 404, "message": "unknown rest path"})
    for path in ("/host", "/text/host", "/hosts/x/servics", "/x/y/z"):
        fake.answers[root(path)] = unknown
    assert "did you mean /hosts?" in monrest("r", "/host").err
    fake.answers[root("/csv/sites/a/host")] = unknown
    fake.answers[root("/json/sites/a/index")] = fake.answers[root("/json/index")]
    assert "did you mean /hosts?" in monrest("r", "--csv", "-b", "a", "/host").err
    assert "did you mean /hosts?" in monrest("r", "/text/host").err
    assert "did you mean /hosts/<name>/services?" in monrest("r", "/hosts/x/servics").err
    assert monrest("r", "/x/y/z").err == ""
    fake.answers[root("/a")] = (404, {"message": "no such job"})
    assert monrest("r", "/a").err == ""


def test_redirects_elsewhere_are_told(fake, monrest):
    fake.answers["/a"] = (301, b"", {"Location": "http://other/\x1b[2J"})
    ran = monrest("r", f"{fake.url}/a")
    assert ran.status == 1
    assert "301, the answer is at http://other/?[2J" in ran.err


def test_verbose(fake, monrest):
    fake.answers[root("/a")] = OK
    ran = monrest("r", "-v", "--key", "geheim", "/a")
    assert f"> GET /mon/r/a to {fake.url}" in ran.err
    assert "< 200 OK after" in ran.err
    assert "geheim" not in ran.err
