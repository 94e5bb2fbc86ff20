"""Template inheritance, as the core does it."""

import pytest

from monrest.demo.definitions import parse, resolve


def resolved(kind, own, **templates):
    """The object made of ``own`` lines, with templates given as lines by name."""
    text = f"define {kind} {{\n" + "\n".join(own) + "\n}\n"
    for name, lines in templates.items():
        text += f"define {kind} {{\nname {name}\nregister 0\n" + "\n".join(lines) + "\n}\n"
    parsed = parse(text, "x.cfg")
    assert parsed.problems == []
    found, problems = resolve(parsed.definitions)
    assert problems == []
    return found[0]


@pytest.mark.parametrize(
    ("own", "templates", "value"),
    [
        (["use t", "hostgroups +g3"], {"t": ["hostgroups g1"]}, "g1,g3"),
        (["use t2,t1"], {"t2": ["hostgroups +g2"], "t1": ["hostgroups g1"]}, "g1,g2"),
        (
            ["use t1,t2", "hostgroups +g2"],
            {"t1": ["hostgroups g1"], "t2": ["hostgroups +g2"]},
            "g1,g2",
        ),
        (
            ["use middle", "hostgroups +z"],
            {"middle": ["use base", "hostgroups +y"], "base": ["hostgroups +x"]},
            "x,y,z",
        ),
        (["use t", "hostgroups null"], {"t": ["hostgroups g1"]}, None),
        (["use t2,t1"], {"t2": ["hostgroups g2"], "t1": ["hostgroups g1"]}, "g2"),
        (["use t", "hostgroups +g2"], {"t": ["hostgroups null"]}, "g2"),
        (["hostgroups +g2"], {}, "g2"),
    ],
)
def test_additive_lists(own, templates, value):
    assert resolved("host", own, **templates).values["hostgroups"] == value


def test_null_is_a_word_where_it_cancels_nothing():
    found = resolved("host", ["alias null", "address null"])
    assert (found.values["alias"], found.values["address"]) == ("null", "null")


def test_custom_variables_ignore_case_and_the_own_one_wins():
    found = resolved("host", ["use a,b", "_V own"], a=["_v 1", "_w 1"], b=["_W 2", "_X 3"])
    assert found.custom == {"V": "own", "W": "1", "X": "3"}


def test_name_and_register_are_not_inherited():
    found = resolved("host", ["use t"], t=["alias A"])
    assert found.registered
    assert "name" not in found.values
    assert found.values["alias"] == "A"


def test_time_periods_inherit_missing_rules():
    found = resolved(
        "timeperiod",
        ["timeperiod_name p", "use t", "monday 01:00-02:00"],
        t=["monday 00:00-24:00", "december 25 00:00-00:00"],
    )
    assert found.values["monday"] == "01:00-02:00"
    assert found.values["december 25"] == "00:00-00:00"


def test_loops_end_and_missing_templates_are_told_with_their_line():
    text = "define host {\nname a\nuse b\n}\ndefine host {\nname b\nuse a\nalias B\n}\n"
    found, problems = resolve(parse(text, "x.cfg").definitions)
    assert problems == []
    assert found[0].values["alias"] == "B"
    _, (problem,) = resolve(parse("define host {\nalias x\nuse nope\n}\n", "x.cfg").definitions)
    assert str(problem) == "x.cfg:3: template nope of type host not found"


def test_templates_are_searched_within_their_type_and_must_be_unique():
    text = "define host {\nname t\n}\ndefine service {\nname t\n}\ndefine host {\nname t\n}\n"
    _, (problem,) = resolve(parse(text, "x.cfg").definitions)
    assert str(problem) == "x.cfg:8: duplicate template name t"


def test_a_long_chain_of_templates():
    chain = {f"t{number}": [f"use t{number + 1}"] for number in range(3000)}
    found = resolved("host", ["use t0", "_v own"], **chain, t3000=["use t0", "alias A", "_W w"])
    assert (found.values["alias"], found.custom) == ("A", {"V": "own", "W": "w"})
