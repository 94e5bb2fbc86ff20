"""Where to connect and as whom: every source, their order, and which key goes where."""

import pytest

from monrest.cli.client_settings import settings
from monrest.cli.options import DEFAULT_URL
from monrest.cli.output import ClientError
from monrest.client.exchange import ServerAddress, parse_address
from tests.table import each

UNIX = "unix:/run/m.sock"
HTTP = "http://a.example:8080"
OTHER = "http://b.example:8080"


@pytest.fixture
def read(tmp_path, capfd):
    """Read settings from options, environment and two files; standard error must stay empty."""

    def made(options=(), environment=None, user=None, system=None, mode=0o600):
        paths = [tmp_path / "user.toml", tmp_path / "system.toml"]
        for path, text in zip(paths, (user, system), strict=True):
            if text is not None:
                path.write_text(text)
                path.chmod(mode)
        return settings(options, environment or {}, [str(path) for path in paths])

    yield made
    assert capfd.readouterr().err == ""


def chosen(found):
    return (str(found.address), found.key, found.user, found.insecure)


def file(url="", key="", user="", insecure=None):
    lines = [
        f'{name} = "{value}"'
        for name, value in (("url", url), ("key", key), ("user", user))
        if value
    ]
    return "\n".join(
        [*lines, *([] if insecure is None else [f"insecure = {str(insecure).lower()}"])]
    )


def test_the_default(read):
    found = read()
    assert (str(found.address), found.url_source, found.key) == (DEFAULT_URL, "the default", "")
    assert found.timeout == 60


def test_each_source_alone(read):
    everything = file(HTTP, "k", "u", insecure=True)
    expected = (f"{HTTP}/mon/r", "k", "u", True)
    assert chosen(read(user=everything)) == expected
    assert chosen(read(user="", system=everything)) == expected
    options = [("url", HTTP), ("key", "k"), ("auth", "u"), ("insecure", "")]
    assert chosen(read(options)) == expected
    environment = {"MONREST_URL": HTTP, "MONREST_KEY": "k", "MONREST_USER": "u"}
    assert chosen(read(environment=environment)) == (*expected[:3], False)


def test_their_order(read):
    options = [("url", UNIX), ("key", "o"), ("auth", "ou")]
    environment = {"MONREST_URL": HTTP, "MONREST_KEY": "e", "MONREST_USER": "eu"}
    user, system = file(OTHER, "f", "fu"), file(HTTP, "s", "su")
    assert chosen(read(options, environment, user, system)) == (UNIX, "o", "ou", False)
    assert chosen(read((), environment, user, system)) == (f"{HTTP}/mon/r", "e", "eu", False)
    assert chosen(read((), {}, user, system)) == (f"{OTHER}/mon/r", "f", "fu", False)


def test_the_last_option_counts(read):
    assert read([("key", "a"), ("key", "b")]).key == "b"


def test_environment_and_options_go_together(read):
    found = read([("url", UNIX)], {"MONREST_KEY": "k", "MONREST_USER": "u"})
    assert chosen(found) == (UNIX, "k", "u", False)
    assert found.key_source == "the environment (MONREST_KEY and MONREST_USER)"


def test_a_key_of_a_file_stays_with_its_url(read):
    mine = file(HTTP, "k", "u", insecure=True)
    found = read([("url", OTHER)], user=mine)
    assert chosen(found) == (f"{OTHER}/mon/r", "", "", False)
    assert found.unused_key.endswith("user.toml")
    assert chosen(read((), {"MONREST_URL": OTHER}, mine))[1:] == ("", "", False)
    # the url of the user's file, the key of the machine's
    assert chosen(read(user=file(OTHER), system=mine)) == (f"{OTHER}/mon/r", "", "", False)
    # the url of the machine's, or the default, and a key of the user's own
    assert chosen(read(user=file(key="k"), system=file(HTTP)))[:2] == (f"{HTTP}/mon/r", "k")
    assert chosen(read(user=file(key="k"), system=""))[:2] == (DEFAULT_URL, "k")


def test_a_key_in_a_file_of_its_own(read, tmp_path):
    path = tmp_path / "secret.key"
    path.write_text("abc_1\n")
    assert read([("key", f"@{path}")]).key == "abc_1"
    assert read(user=file(HTTP, f"@{path}")).key == "abc_1"
    path.write_text("")
    with pytest.raises(ClientError, match="the key of the command line: expected letters"):
        read([("key", f"@{path}")])
    path.write_bytes(b"\xff")
    with pytest.raises(ClientError, match="expected letters"):
        read([("key", f"@{path}")])


@each(
    ("text", "told"),
    [
        ("url = 1", "url: expected a text"),
        ('insecure = "yes"', "insecure: expected true or false"),
        ('colour = "red"', "colour: unknown key, expected url, key, user, insecure"),
        ("url = ", "not valid TOML"),
        ('url = "nonsense"', "user.toml: expected unix:PATH, http://HOST:PORT"),
    ],
)
def test_wrong_files(read, text, told):
    with pytest.raises(ClientError) as refused:
        read(user=text)
    assert "user.toml" in str(refused.value)
    assert told in str(refused.value)


def test_a_key_that_other_users_can_read(tmp_path, capfd):
    path = tmp_path / "client.toml"
    path.write_text('key = "k"')
    path.chmod(0o644)
    assert settings([], {}, [str(path)]).key == "k"
    assert f"chmod 600 {path}" in capfd.readouterr().err
    settings([("quiet", "")], {}, [str(path)])
    path.chmod(0o640)
    settings([], {}, [str(path)])
    path.write_text(f'url = "{HTTP}"')
    path.chmod(0o644)
    settings([], {}, [str(path)])
    assert capfd.readouterr().err == ""


def test_a_file_that_cannot_be_read(tmp_path, capfd):
    (tmp_path / "client.toml").mkdir()
    assert settings([], {}, [str(tmp_path / "client.toml")]).key == ""
    assert "Is a directory, going on without it" in capfd.readouterr().err


def test_where_the_file_of_the_user_is(tmp_path):
    from monrest.cli.client_settings import files_of

    assert files_of({"XDG_CONFIG_HOME": "/c"})[0] == "/c/monrest/client.toml"
    assert files_of({})[0].endswith("/.config/monrest/client.toml")
    assert files_of({})[1] == "/etc/monrest/client.toml"


URLS = {
    "unix:/a/b.sock": ServerAddress("unix", path="/a/b.sock"),
    "unix:/a/b.sock:/foo/r": ServerAddress("unix", path="/a/b.sock", root="/foo/r"),
    "http://h": ServerAddress("http", host="h"),
    "http://h:80/": ServerAddress("http", host="h", port=80),
    "https://h:8443/mon/r/": ServerAddress("https", host="h", port=8443),
    "https://h/proxy/foo/r": ServerAddress("https", host="h", root="/proxy/foo/r"),
    "http://[::1]:81": ServerAddress("http", host="::1", port=81),
}


@each("text", URLS)
def test_urls(text):
    found = parse_address(text)
    assert found == URLS[text]
    assert parse_address(str(found)) == found
    assert found.app == ("foo" if "foo" in text else "mon")


@each(
    "text",
    ["", "x", "unix:", "unix:relative", "unix:/a\n", "http://", "http://h:x", "http://h:99999",
     "http://u:p@h", "http://h/mon", "http://h/r", "http://h//r", "http://h/mon/r?x=1", "http://h/mon/r#x",
     "ftp://h", "unix:/a:/b", "http://h\n", "http://["],
)  # fmt: skip
def test_wrong_urls(text):
    with pytest.raises(ValueError, match="expected unix:PATH"):
        parse_address(text)


@each(
    ("text", "local"),
    [("unix:/a", True), ("http://127.0.0.1", True), ("http://localhost:1", True),
     ("http://[::1]", True), ("http://example.org", False), ("https://10.0.0.1", False)],
)  # fmt: skip
def test_what_is_local(text, local):
    assert parse_address(text).local is local
