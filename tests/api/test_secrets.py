"""Secrets of a configuration are hidden under any key."""

import orjson
from attrs import asdict
from hypothesis import assume, given
from hypothesis import strategies as st

from monrest.config import Config
from monrest.instance.hidden_settings import HIDDEN, display_value, without_secrets
from tests.table import each


@each(
    ("value", "expected"),
    [
        ({"b": 1, "a": {"d": None, "c": ("x",)}}, {"a": {"c": ["x"], "d": None}, "b": 1}),
        ({"auth_key": "s", "API_KEYS": ["s", ""]}, {"API_KEYS": ["***", ""], "auth_key": "***"}),
        ({"auth": {"default_user": "ann"}}, {"auth": {"default_user": "ann"}}),
        ({"api_keys_enabled": True, "max_keys": 3}, {"api_keys_enabled": True, "max_keys": 3}),
        ({"headers": {"X-Auth-Token": "s"}}, {"headers": {"X-Auth-Token": "***"}}),
        ({"secret_key_file": "/x"}, {}),
    ],
)  # fmt: skip
def test_what_is_hidden(value, expected):
    assert orjson.dumps(display_value(value)) == orjson.dumps(expected)


@each(
    ("text", "expected"),
    [
        ("postgresql://u:s@h/d", "postgresql://***@h/d"),
        ("postgresql://u:s@s@h/d?password=s&x=1", "postgresql://***@h/d?password=***&x=1"),
        ("postgresql://u:1/s@h/d", "postgresql://***@h/d"),
        ("postgresql://u:a s@h/d", "postgresql://***@h/d"),
        ("postgresql://u:a?s@h/d", "postgresql://***@h/d"),
        ("https://s@h/", "https://***@h/"),
        ("curl https://u:s@h/ http://i/", "curl https://***@h/ http://i/"),
        ("curl -H 'X-Auth-Key: s s' http://i/", "curl -H 'X-Auth-Key: ***' http://i/"),
        ('curl -H "Authorization: Bearer s"', 'curl -H "Authorization: Bearer ***"'),
        ("curl -u admin:s http://i/", "curl -u admin:*** http://i/"),
        ("curl --user='admin:s' http://i/", "curl --user='admin:***' http://i/"),
        ("smbclient -U ann%s //h/c", "smbclient -U ann%*** //h/c"),
        ("PGPASSWORD=s psql", "PGPASSWORD=*** psql"),
        ("tool --password s --port 1", "tool --password *** --port 1"),
        ("tool --password='s s' x", "tool --password=*** x"),
        ('tool --api-token="s \\" s" x', "tool --api-token=*** x"),
        ("""post '{"token": "s"}'""", """post '{"token": ***}'"""),
        ('tool -d "a=1&password=s s" x', 'tool -d "a=1&password=***" x'),
        ("sshpass -p s ssh h", "sshpass -p *** ssh h"),
        ("mysql -h db -ps x", "mysql -h db -p*** x"),
    ],
)  # fmt: skip
def test_inside_of_texts(text, expected):
    assert without_secrets(text) == expected


@each(
    "text",
    [
        "sqlite:////var/lib/a@b.sqlite", "tls:monkeys.example:6557", "http://auth.example:80/mon",
        "ssl:443:privateKey=/x:certKey=/y", "icinga2 daemon -C", "systemctl reload naemon",
        "https://h/mon?to=a@b", "ssh -i /etc/id node1 facts", "unix:/run/naemon/live",
        "http://h/keys/x", "monrest@localhost",
    ],
)  # fmt: skip
def test_what_stays(text):
    assert without_secrets(text) == text


SECRET = "h\u00fcsh"


@given(
    st.sampled_from(["auth_key", "password", "API_Token", "client-secret", "x.pass"]),
    st.sampled_from(["{0}={1}", "--{0}={1}", "--{0} {1}", "-{0} \"{1}\"", "{0}: {1}",
                     "x://u:{1}@h/{0}", "p '{{\"{0}\": \"{1}\"}}'", "x?a=1&{0}={1}&b=2"]),
    st.text(alphabet="ab /?#%+", max_size=6),
)  # fmt: skip
def test_no_form_shows_it(name, form, before):
    text = form.format(name, SECRET)
    assume("=" not in before)
    assert SECRET not in without_secrets(f"{before} {text}")
    assert SECRET not in without_secrets(text)
    assert SECRET not in orjson.dumps(display_value({name: before + SECRET})).decode()


@each("text", ["key" * 7000, "--key" * 4000, "mysql " * 4000, "-u " * 7000, "'" + "key " * 5000])
def test_long_texts_are_no_trouble(text):
    """These would take minutes if every way to read them was tried."""
    assert without_secrets(text * 5).startswith(text[:3])


def test_nothing_of_the_defaults_is_hidden():
    assert HIDDEN not in orjson.dumps(display_value(asdict(Config()))).decode()
