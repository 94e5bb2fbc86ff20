"""Reading and refusing configurations, addresses of sites and listeners among them."""

import contextlib
import json
import tomllib
from operator import attrgetter
from pathlib import Path

import pytest
from attrs import evolve, fields, has, resolve_types
from hypothesis import given
from hypothesis import strategies as st

from monrest.cli.main import main
from monrest.config import (
    Config,
    ConfigError,
    DisplayConfig,
    load,
    loads,
    parse_address,
    parse_listener,
)
from monrest.config.layers import Layers, keys_of
from tests.table import each

SAMPLE = Path(__file__).parent.parent / "etc" / "monrest.toml"
SITE = '[[sites]]\nid = "a"\nname = "A"\naddress = "unix:/run/a"\n'


def problems(text):
    with pytest.raises(ConfigError) as refused:
        loads(text)
    return refused.value.problems


def test_the_defaults_are_those_of_the_contract():
    config = loads("")
    assert config.server.listen == ("tcp:8080:interface=127.0.0.1",)
    assert config.server.var_dir == "/var/lib/monrest"
    assert (config.server.request_timeout, config.server.workers) == (40.0, 1)
    assert (config.server.max_url, config.server.max_body) == (131072, 2_097_152)
    assert config.server.drain_timeout == 30.0
    assert config.server.memory_limit == 512 << 20
    assert config.names.root == "/mon/r"
    assert config.names.header("Auth-Key") == "x-mon-auth-key"
    assert config.auth.secret_key_file == "/var/lib/monrest/secret.key"
    assert config.database.url == "sqlite:////var/lib/monrest/monrest.sqlite"
    assert config.auth.trusted_proxies == ("127.0.0.1",)
    assert config.display.show_full_commandline == 1
    assert config.sites == ()


def test_a_site_has_the_defaults_of_the_contract():
    (site,) = loads(SITE).sites
    assert (site.section, site.hidden, site.connections, site.timeout) == ("Default", False, 4, 30)
    assert site.tls_verify is True
    assert site.configtool is None
    assert site.where().local


def test_var_dir_is_substituted_everywhere():
    config = loads(
        '[server]\nvar_dir = "/srv/m"\nlisten = ["unix:{var_dir}/http"]\n'
        + SITE.replace("/run/a", "{var_dir}/live")
    )
    assert config.auth.secret_key_file == "/srv/m/secret.key"
    assert config.server.listen == ("unix:/srv/m/http",)
    assert config.sites[0].where().path == "/srv/m/live"


def test_whole_numbers_may_stand_for_numbers():
    assert loads("[server]\nrequest_timeout = 3\n").server.request_timeout == 3.0
    assert loads("[server]\nrequest_timeout = 0.5\n").server.request_timeout == 0.5


@each(
    ("text", "seconds"),
    [("90s", 90), ("1h30m", 5400), ("70d", 6_048_000), ("1.5h", 5400), ("500ms", 0.5), ("2w", 1_209_600),
     ("1 hour 30 minutes", 5400)],
)  # fmt: skip
def test_durations_have_units(text, seconds):
    assert loads(f'[auth]\nsession_idle = "{text}"\n').auth.session_idle == seconds


def test_durations_have_units_wherever_one_stands():
    defaults = loads("")
    durations = [
        f"{name}.{key}"
        for name, table in keys_of(Config).items()
        if has(table)
        for key, kind in keys_of(table).items()
        if kind is float
    ]
    assert len(durations) > 20
    lines = [f'{one} = "{attrgetter(one)(defaults):.0f}s"\n' for one in durations]
    config = loads("".join(lines) + SITE + 'timeout = "0.5m"\n')
    assert (config.sites[0].timeout, evolve(config, sites=())) == (30.0, defaults)


@each(("text", "minutes"), [("5m", 5), ("1h", 60), ("0m", 0), ("120s", 2)])
def test_minutes_have_units(text, minutes):
    assert loads(f'[bp]\nrefresh_interval = "{text}"\n').bp.refresh_interval == minutes


REFUSED = {
    "duration without a unit that exists": (
        '[logcache]\nkeep = "70 moons"\n',
        'logcache.keep: expected a number of seconds, or a duration such as "90s", "1h30m" or "70d", '
        "got the text '70 moons'",
    ),
    "duration before the beginning": (
        SITE + 'timeout = "-5s"\n',
        'sites[0].timeout: expected a number of seconds, or a duration such as "90s", "1h30m" or '
        "\"70d\", got the text '-5s'",
    ),
    "duration beyond what is allowed": (
        '[auth]\ngrace = "2h"\n',
        "auth.grace: expected 0 to 3600 seconds, got 7200",
    ),
    "parts of minutes": (
        '[bp]\nrefresh_interval = "90s"\n',
        "bp.refresh_interval: expected a whole number of minutes, or a duration of whole minutes "
        "such as \"5m\", got the text '90s'",
    ),
    "unknown table": ("[sever]\n", "sever: unknown key"),
    "unknown key": ("[server]\nlisten_on = 1\n", "server.listen_on: unknown key"),
    "unknown key of a site": (SITE + "tiemout = 1\n", "sites[0].tiemout: unknown key"),
    "table expected": ("server = 5\n", "server: expected a table, got a number 5"),
    "text for a number": (
        '[server]\nrequest_timeout = "40"\n',
        'server.request_timeout: expected a number of seconds, or a duration such as "90s", "1h30m" '
        "or \"70d\", got the text '40'",
    ),
    "boolean for a number": (
        "[server]\nrequest_timeout = true\n",
        'server.request_timeout: expected a number of seconds, or a duration such as "90s", "1h30m" '
        'or "70d", got a boolean True',
    ),
    "fraction for a whole number": (
        "[server]\nmax_url = 3000.5\n",
        "server.max_url: expected a whole number, got a number 3000.5",
    ),
    "number for a text": (
        "[server]\nvar_dir = 5\n",
        "server.var_dir: expected a text, got a number 5",
    ),
    "text for a flag": (
        '[auth]\napi_keys_enabled = "false"\n',
        "auth.api_keys_enabled: expected true or false, got the text 'false'",
    ),
    "text for a list": (
        '[server]\nlisten = "tcp:1"\n',
        "server.listen: expected a list of texts, got the text 'tcp:1'",
    ),
    "text for tables": ("sites = 'x'\n", "sites: expected a list of tables, got the text 'x'"),
    "number in a list": (
        "[server]\nlisten = [3]\n",
        "server.listen[0]: expected a text, got a number 3",
    ),
    "roles as a list": ("[auth]\nroles = []\n", "auth.roles: expected a table, got a list"),
    "role as a text": (
        '[auth.roles]\nadmin = "admin"\n',
        "auth.roles.admin: expected a list of texts, got the text 'admin'",
    ),
    "missing key": (
        '[[sites]]\nid = "a"\nname = "A"\n',
        "sites[0].address: missing, but required",
    ),
    "core type": (
        SITE + '[sites.configtool]\ncore_type = "zabbix"\n',
        "sites[0].configtool.core_type: expected one of auto, naemon, nagios, icinga, shinken, "
        "got the text 'zabbix'",
    ),
    "broken TOML": ("[server\n", "line 1"),
}


@each(("text", "problem"), REFUSED.values(), ids=REFUSED)
def test_wrong_types_and_keys(text, problem):
    (found,) = problems(text)
    assert problem in found


CLUSTER = """
[database]
url = "postgresql+psycopg://m@h/d"
[cluster]
nodes = ["http://a", "http://b"]
"""

WRONG_VALUES = {
    "endpoint kind": ('[server]\nlisten = ["nonsense:1"]\n', "server.listen[0]: expected an end"),
    "endpoint argument": ('[server]\nlisten = ["tcp:80:foo=1"]\n', "server.listen[0]: tcp end"),
    "no endpoint": ("[server]\nlisten = []\n", "server.listen: expected at least one"),
    "key file": (
        '[server]\nlisten = ["ssl:443:privateKey=/nonexistent/key"]\n',
        "server.listen[0]: privateKey: expected a readable file",
    ),
    "relative folder": ('[server]\nvar_dir = "var"\n', "server.var_dir: expected an absolute"),
    "folder is a file": ('[server]\nvar_dir = "/etc/passwd"\n', "server.var_dir: expected a dir"),
    "no time": ("[server]\nrequest_timeout = 0\n", "server.request_timeout: expected a number ab"),
    "endless": ("[server]\nrequest_timeout = inf\n", "server.request_timeout: expected a numb"),
    "no number": ("[server]\nrequest_timeout = nan\n", "server.request_timeout: expected a n"),
    "endless drain": ("[server]\ndrain_timeout = inf\n", "server.drain_timeout: expected 0"),
    "proxy": ('[auth]\ntrusted_proxies = ["here"]\n', "auth.trusted_proxies[0]: expected an IP"),
    "negative drain": ("[server]\ndrain_timeout = -1\n", "server.drain_timeout: expected 0"),
    "workers": ("[server]\nworkers = -1\n", "server.workers: expected 0 to 64, got -1"),
    "tiny URLs": ("[server]\nmax_url = 10\n", "server.max_url: expected 1024"),
    "tiny memory": ('[server]\nmemory_limit = "64MB"\n', "server.memory_limit: expected at least"),
    "bare memory": ("[server]\nmemory_limit = 512\n", "server.memory_limit: expected a size like"),
    "odd memory": ('[server]\nmemory_limit = "5 MiB"\n', "server.memory_limit: expected a size"),
    "bodies beyond memory": (
        '[server]\nmemory_limit = "128MB"\nmax_body = 33554433\n',
        "server.max_body: expected at most 33554432 bytes, a quarter of server.memory_limit",
    ),
    "tiny bodies": ("[server]\nmax_body = 10\n", "server.max_body: expected at least"),
    "word": ('[names]\napp = "Mon/"\n', "names.app: expected lower-case letters and digits"),
    "database": ('[database]\nurl = "mysql://x"\n', "database.url: expected sqlite:///"),
    "node": ('[cluster]\nnodes = ["http://a?b"]\n', "cluster.nodes[0]: expected http(s)://HOST"),
    "node with a password": ('[cluster]\nnodes = ["http://a:b@c"]\n', "cluster.nodes[0]: expected"),
    "node's port": ('[cluster]\nnodes = ["http://a:70000"]\n', "cluster.nodes[0]: expected http"),
    "node twice": (
        CLUSTER.replace('"http://b"', '"http://A/"'),
        "cluster.nodes[1]: the same as cluster.nodes[0]: 'http://A/'",
    ),
    "nodes without a database": (
        '[cluster]\nnodes = ["http://a", "http://b"]\n',
        "cluster.nodes: several nodes need one PostgreSQL in database.url",
    ),
    "heartbeat": ("[cluster]\nheartbeat_interval = 0\n", "cluster.heartbeat_interval: expected 1"),
    "notice": ("[cluster]\nrestart_notice = -1\n", "cluster.restart_notice: expected 0 to 3600"),
    "lmd": ('[lmd]\naddress = "tls:h:1"\n', "lmd.address: expected unix:PATH or tcp:HOST:PORT"),
    "lmds": (
        '[lmd]\naddress = ["unix:/x", "unix:/x"]\n',
        "lmd.address[1]: the same address twice: 'unix:/x'",
    ),
    "lmd list": ("[lmd]\naddress = [1]\n", "lmd.address: expected a text or a list of texts"),
    "no lmd": ("[lmd]\naddress = []\n", "lmd.address: expected at least one address"),
    "lmd connections": (
        '[lmd]\naddress = "unix:/x"\nconnections = 0\n',
        "lmd.connections: expected 1 to 1000",
    ),
    "lmd site": (
        '[lmd]\naddress = "unix:/x"\n[[lmd.sites]]\nid = "a"\n[[sites]]\nid = "a"\nname = "A"\n'
        'address = "unix:/y"\n',
        "lmd.sites[0].id: the same id as sites[0]: 'a'",
    ),
    "lmd sites": (
        '[[lmd.sites]]\nid = "a"\n',
        "lmd.address: expected the address of the LMD whose sites are in lmd.sites",
    ),
    "replacement of no group": (
        "[auth]\nuser_replace = ['a', '\\1']\n",
        "auth.user_replace[1]: expected a text with",
    ),
    "replacement that ends in a backslash": (
        "[auth]\nuser_replace = ['a', 'x\\']\n",
        "auth.user_replace[1]: expected a text with",
    ),
    "unknown role": ('[auth.roles]\nking = ["a"]\n', "auth.roles.king: unknown role"),
    "role twice": (
        '[auth.roles]\nadmin = ["a"]\nauthorized_for_admin = ["b"]\n',
        "auth.roles.authorized_for_admin: the same role as auth.roles.admin",
    ),
    "password file": (
        '[auth]\nhtpasswd_file = "/nonexistent/x"\n',
        "auth.htpasswd_file: expected a readable file",
    ),
    "command line": ("[display]\nshow_full_commandline = 3\n", "display.show_full_commandline"),
    "first day of the week": (
        "[display]\nfirst_day_of_week = 7\n",
        "display.first_day_of_week: expected 0 (Sunday) or 1 (Monday), got 7",
    ),
    "hidden": (
        '[display]\ncommandline_obfuscate_pattern = ["ok", "("]\n',
        "display.commandline_obfuscate_pattern[1]: expected a regular expression",
    ),
    "source": (
        '[display]\nshow_full_commandline_source = "a,b"\n',
        "display.show_full_commandline_source: expected a name",
    ),
    "zone": ('[display]\ntimezone = "Mars/Olympus"\n', "display.timezone: no such time zone"),
    "zone outside": ('[display]\ntimezone = "../../etc/passwd"\n', "display.timezone: no such"),
    "site id": (SITE.replace('"a"', '"a,b"'), "sites[0].id: expected up to 64 letters"),
    "reserved id": (SITE.replace('"a"', '"ALL"'), "sites[0].id: expected up to 64 letters"),
    "same id": (SITE + SITE, "sites[1].id: the same id as sites[0]: 'a'"),
    "name": (SITE.replace('"A"', '"A\\n"'), "sites[0].name: expected a printable text"),
    "address": (SITE.replace("unix:/run/a", "ftp:x"), "sites[0].address: expected unix:PATH"),
    "federation": (
        SITE.replace("unix:/run/a", "https://other/mon"),
        "sites[0].auth_key: expected the API key of a superuser",
    ),
    "a key for a core": (SITE + 'auth_key = "x"\n', "sites[0].auth_key: expected only with"),
    "federation without a path": (
        SITE.replace("unix:/run/a", "https://other") + 'auth_key = "x"\n',
        "sites[0].address: expected unix:PATH",
    ),
    "federation with a password": (
        SITE.replace("unix:/run/a", "https://me:secret@other/mon") + 'auth_key = "x"\n',
        "sites[0].address: expected unix:PATH",
    ),
    "federation with a port that is none": (
        SITE.replace("unix:/run/a", "https://other:70000/mon") + 'auth_key = "x"\n',
        "sites[0].address: expected unix:PATH",
    ),
    "object configuration of the other side": (
        SITE.replace("unix:/run/a", "https://other/mon")
        + 'auth_key = "x"\n[sites.configtool]\nobj_check_cmd = "true"\n',
        "sites[0].configtool: expected on the other side",
    ),
    "TLS without TLS": (
        SITE.replace("unix:/run/a", "http://other/mon")
        + 'auth_key = "x"\ntls_ca_file = "/etc/passwd"\n',
        "sites[0]: tls_* keys need an address of the form tls:HOST:PORT or https",
    ),
    "connections": (SITE + "connections = 0\n", "sites[0].connections: expected 1 to 1000"),
    "time-out": (SITE + "timeout = -1\n", "sites[0].timeout: expected a number above 0"),
    "certificate": (
        SITE.replace("unix:/run/a", "tls:a:1") + 'tls_ca_file = "/nonexistent/ca"\n',
        "sites[0].tls_ca_file: expected a readable file",
    ),
    "key alone": (
        SITE.replace("unix:/run/a", "tls:a:1") + 'tls_key_file = "/etc/passwd"\n',
        "sites[0].tls_cert_file: expected the certificate",
    ),
    "TLS over a Unix socket": (SITE + 'tls_ca_file = "/etc/passwd"\n', "sites[0]: tls_* keys"),
    "folder of objects": (
        SITE + '[sites.configtool]\nobj_dir = ["conf.d"]\n',
        "sites[0].configtool.obj_dir[0]: expected an absolute path, got 'conf.d'",
    ),
    "pattern for all sites": (
        '[configtool]\nobj_readonly = ["("]\n',
        "configtool.obj_readonly[0]: expected a regular expression",
    ),
    "time of commands": (
        "[jobs]\ntimeout = 0\n",
        "jobs.timeout: expected a number above 0",
    ),
    "number of dashboards": (
        "[panorama]\nnew_files_start_at = 0\n",
        "panorama.new_files_start_at: expected 1 to",
    ),
    "folder of dashboards": (
        '[panorama]\nfolder = "x"\n',
        "panorama.folder: expected an absolute path, got 'x'",
    ),
    "node without a site": (
        '[[nodecontrol.nodes]]\nsite = "x"\n',
        "nodecontrol.nodes[0].site: expected the id of a site, got 'x'",
    ),
    "two nodes of a site": (
        SITE + '[[nodecontrol.nodes]]\nsite = "a"\n[[nodecontrol.nodes]]\nsite = "a"\n',
        "nodecontrol.nodes[1].site: 'a' has an entry already",
    ),
    "nodes at the same time": (
        "[nodecontrol]\nparallel_tasks = 0\n",
        "nodecontrol.parallel_tasks: expected 1 to 100, got 0",
    ),
    "editor": (
        '[[editor]]\nname = "a"\n[[editor.files]]\nfolder = ["a"]\nfilter = ["("]\n',
        "editor[0].files[0].folder[0]: expected an absolute path, got 'a'",
    ),
    "pattern": (
        SITE + '[sites.configtool]\nobj_readonly = ["("]\n',
        "sites[0].configtool.obj_readonly[0]: expected a regular expression",
    ),
}


@each(("text", "problem"), WRONG_VALUES.values(), ids=WRONG_VALUES)
def test_wrong_values(text, problem):
    assert problems(text)[0].startswith(problem)


def test_every_problem_is_told_at_once():
    assert len(problems("[server]\nworkers = -2\nlisten = []\n[names]\napp = ''\n")) == 3
    assert len(problems('[server]\nworkers = "2"\nbogus = 1\n[auth]\nroles = 3\n')) == 3


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot be read: No such file.*monrest config example"):
        load(tmp_path / "none.toml")
    binary = tmp_path / "binary.toml"
    binary.write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="expected UTF-8"):
        load(binary)


def test_the_sample_is_good_and_shows_every_default():
    listen = ["tcp:8080:interface=127.0.0.1", "unix:/run/monrest/monrest.sock"]
    assert load(SAMPLE) == loads(
        f'[server]\nlisten = {json.dumps(listen)}\n[auth.roles]\nadmin = ["admin"]\n'
    )
    text = SAMPLE.read_text()
    shown = tomllib.loads(text)
    lists = ("sites", "editor")
    tables = [table for table in fields(resolve_types(Config)) if table.name not in lists]
    assert len(tables) == 19
    for table in tables:
        assert set(shown[table.name]) == {key.name for key in fields(table.type)}


def sample(first, last=None):
    """The keys and tables of the sample between two of its headings, which are comments there."""
    lines = [line.lstrip("# ") for line in SAMPLE.read_text().splitlines()]
    end = None if last is None else lines.index(last)
    lines = lines[lines.index(first) : end]
    return "\n".join(line for line in lines if " = " in line or line[:1] == "[")


def names(text, *tables):
    return all(f"{key.name} =" in text for table in tables for key in fields(type(table)))


def test_the_sample_names_every_key_of_what_is_a_list():
    text = sample("[[editor]]", "[[nodecontrol.nodes]]")
    (section,) = loads(text).editor
    (files,) = section.files
    assert (section.name, section.groups) == ("Add-ons", ("operators",))
    assert (files.folder, files.filter) == (("/etc/naemon/addons",), (r"\.conf$",))
    assert (files.syntax, files.show_summary_prompt) == ("ini", False)
    assert names(text, files)
    text = sample("[[lmd.sites]]", "[[editor]]")
    (site,) = loads(f'[lmd]\naddress = "unix:/x"\n{text}').lmd.sites
    assert (site.hidden, site.groups) == (True, ("operators",))
    assert names(text, site)
    text = sample("[[nodecontrol.nodes]]", "[[sites]]")
    (node,) = loads(SITE.replace('"a"', '"prod"') + text).nodecontrol.nodes
    assert node.gather.startswith("ssh")
    assert names(text, node)
    text = sample("[[sites]]")
    site = loads(text.replace('core_conf = "/etc/naemon/naemon.cfg"', 'core_conf = ""')).sites[0]
    assert names(f"{text}\nconfigtool = {{}}", site, site.configtool)


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    for read in (parse_address, parse_listener):
        with contextlib.suppress(ValueError):
            assert read(text).kind in text


def test_the_zone_is_the_configured_one_or_some_zone():
    assert str(DisplayConfig(timezone="Europe/Berlin").zone()) == "Europe/Berlin"
    assert DisplayConfig().zone() is not None


def test_check_config_says_what_is_wrong(tmp_path, capsys):
    path = tmp_path / "monrest.toml"
    path.write_text("[server]\nworkers = 65\n")
    assert main(["check-config", str(path)]) == 1
    assert "server.workers: expected 0 to 64, got 65" in capsys.readouterr().err
    path.write_text(SITE)
    assert main(["check-config", str(path)]) == 0
    assert capsys.readouterr().out == f"{path} is good: 1 site\n"
    path.write_text("")
    assert main(["check-config", str(path)]) == 0
    assert capsys.readouterr().out == f"{path} is good: 0 sites\n"


def layered(tmp_path, main="", environment=None, **more):
    path = tmp_path / "monrest.toml"
    path.write_text(main)
    (tmp_path / "conf.d").mkdir(exist_ok=True)
    for name, text in more.items():
        (tmp_path / "conf.d" / f"{name}.toml").write_text(text)
    return load(path, environment or {})


def test_unknown_keys_are_told_with_the_one_that_was_meant_and_the_line():
    text = "# one\n[server]\nlistn = 1\nsession_idle = 3\n[sever]\n" + SITE + 'addres = "x"\n'
    assert problems(text) == (
        "server.listn: unknown key, did you mean server.listen? (line 3)",
        "server.session_idle: unknown key, did you mean auth.session_idle? (line 4)",
        "sever: unknown key, did you mean server? (line 5)",
        "sites[0].addres: unknown key, did you mean sites[0].address? (line 10)",
    )
    assert problems(SITE + '[sites.configtool]\npre_obj_save_cmd = "x"\n') == (
        "sites[0].configtool.pre_obj_save_cmd: unknown key, did you mean "
        "configtool.pre_obj_save_cmd? (line 6)",
    )
    (role,) = problems('[auth.roles]\nadmn = ["a"]\n')
    assert role == "auth.roles.admn: unknown role, did you mean admin? (line 2)"


def test_both_stages_are_told_at_once():
    found = problems(
        '[server]\nworkers = 70\nmemory_limit = 3\nmax_body = 9000000000\n[[sites]]\nid = "a,b"\n'
    )
    assert [one.partition(": ")[0] for one in found] == [
        "server.memory_limit", "sites[0].address", "sites[0].name", "server.workers", "sites[0].id",
    ]  # fmt: skip


def test_a_line_is_that_of_the_statement():
    text = (
        '[server]\nlisten = [\n  "tcp:1",\n  3,\n]\n\n[lmd]\ntimeout = """\n[x]\n"""\n'
        "[[editor]]\nname = 'a'\n[[editor.files]]\nfolder = ['/a']\n[[editor]]\nname = 'b'\n"
        "[[editor.files]]\nfolder = ['/a']\n[[editor.files]]\nfolder = '/b'\n"
        "[mail]\nheaders.x = 5\n"
    )
    assert [one[one.rindex("(") :] for one in sorted(problems(text))] == [
        "(line 20)", "(line 8)", "(line 22)", "(line 2)",
    ]  # fmt: skip


def test_an_origin_is_that_of_the_key_or_of_the_table_around_it():
    layers = Layers()
    layers.add_file("[auth]\ngrace = 1\n# none\nroles = {admin = ['a']}\n" + SITE, "f")
    paths = (
        ("auth", "grace"),
        ("auth", "roles", "admin"),
        ("sites", 0, "id"),
        ("auth", "lowercase_user"),
    )
    assert [layers.origin(path) for path in paths] == ["f, line 2", "f, line 4", "f, line 6", ""]


def test_any_letter_in_a_text_leaves_the_lines_what_they_are():
    text = '[auth]\nlocked_message = "a\u2028b\x85c"\r\n[server]\r\nworkers = 70\n'
    assert problems(text) == ("server.workers: expected 0 to 64, got 70 (line 4)",)


def test_files_of_conf_d_win_and_add_sites(tmp_path):
    config = layered(
        tmp_path,
        "[server]\nworkers = 2\nmax_url = 4096\n" + SITE,
        b=SITE.replace('"a"', '"c"') + "timeout = 3\n",
        a=SITE.replace('"a"', '"b"') + "[server]\nworkers = 3\n",
    )
    assert [site.id for site in config.sites] == ["a", "b", "c"]
    assert (config.server.workers, config.server.max_url) == (3, 4096)
    with pytest.raises(ConfigError) as refused:
        layered(
            tmp_path,
            "[server]\nworkers = 2\n" + SITE,
            a=SITE.replace('"a"', '"b"'),
            b="\n" + SITE.replace('"a"', '"c"') + "timeout = 0\n",
        )
    place = f"({tmp_path}/conf.d/b.toml, line 6)"
    assert refused.value.problems == (
        f"sites[2].timeout: expected a number above 0, got 0.0 {place}",
    )


VARIABLES = {
    "MONREST__SERVER__LISTEN": ("tcp:1, tcp:2", lambda one: one.server.listen, ("tcp:1", "tcp:2")),
    "MONREST__server__workers": ("3", lambda one: one.server.workers, 3),
    "MONREST__SERVER__MEMORY_LIMIT": ("1GB", lambda one: one.server.memory_limit, 1 << 30),
    "MONREST__SERVER__ASCII_JSON": ("Yes", lambda one: one.server.ascii_json, True),
    "MONREST__AUTH__GRACE": ("1.5", lambda one: one.auth.grace, 1.5),
    "MONREST__LOGCACHE__KEEP": ("2d", lambda one: one.logcache.keep, 172800.0),
    "MONREST__BP__REFRESH_INTERVAL": ("1h", lambda one: one.bp.refresh_interval, 60),
    "MONREST__AUTH__ROLES__ADMIN": ("ann,bob", lambda one: one.auth.roles["admin"], ("ann", "bob")),
    "MONREST__AUTH__CONTACTGROUP_ROLES": (
        '{all_hosts = ["a"]}', lambda one: one.auth.contactgroup_roles, {"all_hosts": ("a",)}),
    "MONREST__AUTH__USER_REPLACE": (
        '["a,b", ""]', lambda one: one.auth.user_replace, ("a,b", "")),
    "MONREST__AUTH__TRUSTED_PROXIES": ("", lambda one: one.auth.trusted_proxies, ()),
    "MONREST__LMD__ADDRESS": ("unix:/x", lambda one: one.lmd.addresses, ("unix:/x",)),
    "MONREST__MAIL__SUBJECT_PREFIX": ("[1]", lambda one: one.mail.subject_prefix, "[1]"),
    "MONREST__MAIL__SECURITY": ("tls", lambda one: one.mail.security, "tls"),
    "MONREST__SITES__0__TIMEOUT": ("7", lambda one: one.sites[0].timeout, 7.0),
    "MONREST__SITES__0__CONFIGTOOL__OBJ_CHECK_CMD": (
        "true", lambda one: one.sites[0].configtool.obj_check_cmd, "true"),
    "MONREST__SITES__1__ID": ("z", lambda one: one.sites[1].id, "z"),
    "MONREST__SITES__1__NAME": ("Z", lambda one: one.sites[1].name, "Z"),
    "MONREST__SITES__1__ADDRESS": ("unix:/z", lambda one: one.sites[1].address, "unix:/z"),
    "MONREST__DATABASE__URL": (
        "sqlite:///{var_dir}/x", lambda one: one.database.url, "sqlite:////srv/x"),
    "MONREST__SERVER__VAR_DIR": ("/srv", lambda one: one.server.var_dir, "/srv"),
}  # fmt: skip


def test_variables_of_the_environment_win(tmp_path):
    environment = {name: text for name, (text, _, _) in VARIABLES.items()}
    config = layered(
        tmp_path,
        '[server]\nlisten = ["tcp:9"]\nworkers = 1\n' + SITE,
        {**environment, "MONREST_URL": "x", "HOME": "/"},
    )
    assert {name: found(config) for name, (_, found, _) in VARIABLES.items()} == {
        name: wanted for name, (_, _, wanted) in VARIABLES.items()
    }


WRONG_VARIABLES = {
    ("SERVER__LISTN", "x"): "server.listn: unknown key, did you mean server.listen?",
    ("SERVER__WORKERS", "two"): "server.workers: expected a whole number, got the text 'two'",
    ("LOGCACHE__KEEP", "two"):
        'logcache.keep: expected a number of seconds, or a duration such as "90s", ',
    ("BP__REFRESH_INTERVAL", "x"):
        "bp.refresh_interval: expected a whole number of minutes, or a duration",
    ("SERVER__ASCII_JSON", "maybe"):
        "server.ascii_json: expected true or false, got the text 'maybe'",
    ("SITES", "a,b"): "sites[0]: expected a table, got the text 'a'",
    ("SERVER__WORKERS__X", "1"): "server.workers: expected a whole number, got a table",
    ("AUTH__ROLES", "admin"): "auth.roles: expected a table, got the text 'admin'",
}  # fmt: skip


@each(("variable", "text"), WRONG_VARIABLES)
def test_wrong_variables_are_named(tmp_path, variable, text):
    with pytest.raises(ConfigError) as refused:
        layered(tmp_path, "", {f"MONREST__{variable}": text})
    problem = refused.value.problems[0]
    assert problem.startswith(WRONG_VARIABLES[variable, text])
    assert problem.endswith(f" (environment, MONREST__{variable})")


def test_a_variable_of_an_element_that_cannot_be_is_named(tmp_path):
    with pytest.raises(ConfigError) as refused:
        layered(tmp_path, "", {"MONREST__SITES__2__ID": "x"})
    (problem,) = refused.value.problems
    assert problem == "MONREST__SITES__2__ID: expected a number up to 0, got 2"


def test_a_wrong_value_of_a_variable_names_it(tmp_path):
    with pytest.raises(ConfigError) as refused:
        layered(tmp_path, "[server]\nworkers = 2\n", {"MONREST__SERVER__WORKERS": "70"})
    assert refused.value.problems == (
        "server.workers: expected 0 to 64, got 70 (environment, MONREST__SERVER__WORKERS)",
    )


@each(
    ("text", "kind", "where"),
    [
        ("unix:/run/naemon/live", "unix", "/run/naemon/live"),
        ("tcp:core.example:6557", "tcp", ("core.example", 6557)),
        ("tcp:[::1]:6557", "tcp", ("::1", 6557)),
        ("tls:10.0.0.1:1", "tls", ("10.0.0.1", 1)),
        ("https://other:8443/mon", "https", "https://other:8443/mon"),
    ],
)
def test_addresses(text, kind, where):
    address = parse_address(text)
    assert address.kind == kind
    assert where in (address.path, address.url, (address.host, address.port))


@each(
    "text",
    ["", "unix:", "unix:relative", "tcp:host", "tcp:host:0", "tcp:host:65536", "tcp:a b:1",
     "tcp::1:1", "tls:host:x", "http:host", "http://", "unix:/a\n", "TCP:host:1"],
)  # fmt: skip
def test_wrong_addresses(text):
    with pytest.raises(ValueError, match="expected unix:PATH"):
        parse_address(text)


def test_listeners_keep_escaped_colons():
    listener = parse_listener(r"tcp6:8080:interface=\:\:1")
    assert listener.arguments == {"port": "8080", "interface": "::1"}
    assert parse_listener("tcp:port=80").arguments == {"port": "80"}
    assert parse_listener("systemd:domain=INET:name=monrest").files == ()
    assert parse_listener("ssl:1:privateKey=/k:certKey=/c").files == (
        ("privateKey", "/k"),
        ("certKey", "/c"),
    )


@each(
    "text",
    ["", "tcp", "tcp:", "tcp:x", "tcp:99999", "tcp:1:2", "ssl:1", "unix:x", "unix:/x:mode=9",
     "systemd:name=x", "systemd:domain=INET", "systemd:domain=INET:name=a:index=0"],
)  # fmt: skip
def test_wrong_listeners(text):
    with pytest.raises(ValueError, match="endpoint"):
        parse_listener(text)
