"""Filters, as a Naemon evaluates them."""

from tests.table import each

ALL = ["alpha", "beta", "gamma"]


def hosts(bench, *filters):
    return bench.column("GET hosts", "Columns: name", *[f"Filter: {item}" for item in filters])


@each(
    ("line", "names"),
    [
        ("name = beta", ["beta"]),
        ("name = Beta", []),
        ("name != beta", ["alpha", "gamma"]),
        ("name =~ BETA", ["beta"]),
        ("name !=~ BETA", ["alpha", "gamma"]),
        ("name ~ ^.e", ["beta"]),
        ("name ~ a$", ALL),
        ("name ~ l.h", ["alpha"]),
        ("name ~ L.H", []),
        ("name ~~ L.H", ["alpha"]),
        ("name !~ et", ["alpha", "gamma"]),
        ("name !~~ ET", ["alpha", "gamma"]),
        ("name ~ et|mm", ["beta", "gamma"]),
        ("name ~", ALL),
        ("name < beta", ["alpha"]),
        ("name <= beta", ["alpha", "beta"]),
        ("name > beta", ["gamma"]),
        ("name >= beta", ["beta", "gamma"]),
        ("name !> beta", ["alpha", "beta"]),
        ("name !>= beta", ["alpha"]),
        ("name   =   beta  ", ["beta"]),
        ("notes =", ["beta", "gamma"]),
        ("notes_expanded ~ HOSTADDRESS", ["alpha"]),  # before the macros are replaced
        ("notes_expanded ~ 10.0.0.1", []),
        ("notes !=", ["alpha"]),
        ("alias = Alpha ü", ["alpha"]),
        ("alias ~ Alpha .$", []),  # one letter, two bytes
        ("alias ~ Alpha ..$", ["alpha"]),
        ("alias =~ ALPHA Ü", []),  # bytes, not letters
        ("alias =~ ALPHA ü", ["alpha"]),
        ("max_check_attempts = 3", ALL),
        ("max_check_attempts != 3", []),
        ("max_check_attempts > 2", ALL),
        ("max_check_attempts <= 2", []),
        ("max_check_attempts !<= 2", ALL),
        ("max_check_attempts ~ 9", ALL),
        ("max_check_attempts !~ 9", []),
        ("max_check_attempts =~ 9", ALL),
        ("state = text", ALL),
        ("state = -1", []),
        ("check_interval = 5.0", ALL),
        ("check_interval < 5.5", ALL),
        ("retry_interval >= 1.5", []),
        ("groups = ", ["gamma"]),
        ("groups =", ["gamma"]),
        ("groups !=", ["alpha", "beta"]),
        ("groups = red", []),
        ("groups != red", []),
        ("groups >= red", ["alpha"]),
        ("groups >= re", []),
        ("groups < red", ["beta", "gamma"]),
        ("groups !>= red", ["beta", "gamma"]),
        ("groups !< red", ["alpha"]),
        ("groups <= red", ALL),
        ("groups !<= red", ALL),
        ("groups > red", ALL),
        ("groups ~ nothing", ALL),
        ("contacts >= ben", ["beta"]),
        ("custom_variables = COLOUR red", ["alpha"]),
        ("custom_variables ~ COLOUR e", ["alpha", "beta"]),
        ("custom_variables ~~ COLOUR E", ["alpha", "beta"]),
        ("custom_variables = COLOUR", ["gamma"]),
        ("custom_variables != COLOUR red", ["beta", "gamma"]),
        ("custom_variables = colour red", []),
        ("custom_variables = _COLOUR red", []),
        ("custom_variable_names >= SIZE", ["alpha"]),
        ("custom_variable_values >= blue", ["beta"]),
        ("nope = alpha", []),
        ("nope != alpha", []),
    ],
)
def test_operators(bench, line, names):
    assert hosts(bench, line) == names


def test_filters_are_joined_by_and(bench):
    assert hosts(bench, "groups >= both", "name != beta") == ["alpha"]


@each(
    ("lines", "names"),
    [
        (["Filter: name = beta", "Filter: name = gamma", "Or: 2"], ["beta", "gamma"]),
        (["Filter: name = beta", "Filter: state = 0", "And: 2"], ["beta"]),
        (["Filter: name = beta", "Negate:"], ["alpha", "gamma"]),
        (["Filter: name = beta", "Negate: whatever"], ["alpha", "gamma"]),
        (["And: 0"], ALL),
        (["Or: 0"], []),
        (["Filter: name = beta", "Or: 1"], ["beta"]),
        (["Filter: name = alpha", "Filter: name = beta", "Filter: groups >= red", "And: 2", "Or: 2"], ["alpha"]),
        (["Filter: name = alpha", "Filter: name = beta", "Or: 2", "Negate:", "Filter: state = 0"], ["gamma"]),
    ],
)  # fmt: skip
def test_the_stack(bench, lines, names):
    assert bench.column("GET hosts", "Columns: name", *lines) == names


@each(
    "lines",
    [
        ["Filter:"],
        ["Filter: name"],
        ["Filter: name == alpha"],
        ["Filter: name like a"],
        ["Filter: name ~ (("],
        ["Filter: name ~ a{2}"],
        ["Filter: name ~ }"],
        ["And: 1"],
        ["Or: 2", "Filter: name = alpha"],
        ["And: x"],
        ["And: -1"],
        ["Negate:"],
    ],
)
def test_bad_filters(bench, lines):
    code, body = bench.status("GET hosts", "Columns: name", *lines)
    assert code == 400
    assert body.endswith("\n")
    assert len(body) > 2


def test_an_index_finds_what_a_scan_finds(bench):
    def services(*lines):
        return bench.ask("GET services", "Columns: host_name description", *lines)

    on_alpha = [["alpha", "disk /var"], ["alpha", "load"]]
    assert services("Filter: host_name = alpha") == on_alpha
    assert services("Filter: host_name = nope") == []
    assert services("Filter: host_name = alpha", "Filter: description = load") == on_alpha[1:]
    both = ["Filter: host_name = beta", "Filter: host_name = alpha", "Or: 2"]
    assert sorted(services(*both)) == [*on_alpha, ["beta", "C:\\ a; b"]]
    assert services("Filter: host_name != alpha", "And: 1") == [["beta", "C:\\ a; b"]]
    assert services("Filter: host_name = alpha", "Negate:") == [["beta", "C:\\ a; b"]]
    either = ["Filter: host_name = beta", "Filter: description = load", "Or: 2"]
    assert len(services(*either)) == 2


def test_members_of_groups(bench):
    def groups(table, line):
        return bench.column(f"GET {table}", "Columns: name", f"Filter: {line}")

    assert groups("hostgroups", "members >= beta") == ["both"]
    assert groups("servicegroups", "members >= alpha|disk /var") == ["disks"]
    assert groups("servicegroups", "members >= alpha|load") == []
    assert groups("hostgroups", "members =") == ["empty"]


def test_modified_attributes_are_bits(bench):
    bench.command("DISABLE_HOST_CHECK;alpha")
    bench.command("DISABLE_HOST_NOTIFICATIONS;alpha")
    bench.command("DISABLE_HOST_NOTIFICATIONS;beta")
    both = "modified_attributes_list {} notifications_enabled,active_checks_enabled"
    assert hosts(bench, both.format("=")) == ["alpha"]
    assert hosts(bench, both.format("~")) == ["alpha"]
    assert hosts(bench, both.format("~~")) == ["alpha", "beta"]
    assert hosts(bench, "modified_attributes_list = 1") == ["beta"]
    assert hosts(bench, "modified_attributes_list !~ 2") == ["beta", "gamma"]


def test_invalid_bytes_can_be_filtered(bench):
    bench.host("alpha").notes = "lat\udce9n"
    request = b"GET hosts\nColumns: name\nFilter: notes ~ lat\xe9n\n\n"
    assert bench.raw(request) == b"alpha\n"
