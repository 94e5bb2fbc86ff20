"""Every subcommand and option, once: parsing, ``--help``, the man page and completion read this."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_URL = "unix:/run/monrest/monrest.sock"
SYSTEM_FILE = "/etc/monrest/client.toml"


class Option(NamedTuple):
    """One option; without ``metavar`` it is a flag.

    ``completes``: what its value is, ``method`` or nothing special.
    """

    names: tuple[str, ...]
    metavar: str
    help: str
    completes: str = ""

    @property
    def key(self) -> str:
        """The long name without dashes."""
        return max(self.names, key=len).lstrip("-")


class OptionGroup(NamedTuple):
    """Options under one heading of the help."""

    title: str
    options: tuple[Option, ...]


class Positional(NamedTuple):
    """What follows the options; ``completes`` is ``file``, ``path`` (of the API) or nothing."""

    name: str
    help: str
    completes: str = ""
    choices: tuple[str, ...] = ()


class Subcommand(NamedTuple):
    """A subcommand; ``run`` is ``module:function``, imported when it is used.

    ``text`` are paragraphs, ``examples`` pairs of command line and what it does. A command with
    ``commands`` has subcommands and nothing else.
    """

    name: str
    summary: str
    run: str = ""
    text: tuple[str, ...] = ()
    usage: str = ""
    argument: Positional | None = None
    groups: tuple[OptionGroup, ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    aliases: tuple[str, ...] = ()
    commands: tuple[Subcommand, ...] = ()

    @property
    def options(self) -> tuple[Option, ...]:
        """The options of all groups."""
        return tuple(option for group in self.groups for option in group.options)


HELP = Option(("-h", "--help"), "", "show this text and exit with status 3")
VERSION = Option(("-V", "--version"), "", "show the version")

BACKEND = Option(("-b", "--backend"), "LIST", "sites to ask: ids, names or sections between "
                 "commas, ALL or LOCAL; repeatable")  # fmt: skip

CONNECTION = OptionGroup(
    "connection",
    (
        Option(("--url",), "URL", f"where the daemon listens: unix:PATH, http://HOST:PORT or "
               f"https://HOST:PORT, each with or without the root /mon/r (unix:PATH:/mon/r); "
               f"default: {DEFAULT_URL}"),
        Option(("--key",), "KEY", "the API key, or @FILE to read it from a file; over a Unix "
               "socket root and the daemon's own user need none"),
        Option(("-A", "--auth"), "USER", "act for this user, with his roles and not more"),
        Option(("-k", "--insecure"), "", "do not verify certificates of https"),
        Option(("--timeout",), "SECONDS", "give up when nothing arrives for so long; default: 60"),
        Option(("-v", "--verbose"), "", "tell on standard error what is sent, where and why"),
        Option(("-q", "--quiet"), "", "no hints and no progress bar on standard error"),
    ),
)  # fmt: skip

REQUEST = OptionGroup(
    "request (each URL has its own)",
    (
        Option(("-m", "--method"), "METHOD", "GET, POST, PATCH, DELETE, ...; default: GET, and "
               "POST as soon as there is -d or -D", "method"),
        Option(("-d", "--data"), "DATA", "parameters: KEY=VALUE, a JSON object, or @FILE with "
               "one (@- is standard input); repeatable. A repeated KEY is a list. In VALUE a "
               "leading + stays, other + are blanks, then percent-encoding is decoded. "
               "JSON replaces keys given before. A JSON list is sent as it is (POST /cmd). "
               '-d "" is a POST without data'),
        Option(("-D", "--rawdata"), "DATA", "like -d, but KEY=VALUE replaces the KEY"),
        Option(("-H", "--header"), "HEADER", '"NAME: VALUE", for URLs with http:// or https:// '
               "only; repeatable"),
        Option(("--background",), "", "run it as a background job and follow it, with a progress "
               "bar on a terminal; the result is then the result of the job"),
        Option(("--json",), "", "answer as JSON; this is the default"),
        Option(("--csv",), "", "answer as CSV"),
        Option(("--ndjson",), "", "answer as JSON, one row a line"),
        Option(("--xls",), "", "answer as an Excel file"),
        Option(("-t", "--text"), "", "answer as a table to read"),
        Option(("--human",), "", "the same as --text"),
    ),
)  # fmt: skip

CHECK = OptionGroup(
    "thresholds (each URL has its own)",
    (
        Option(("-w", "--warning"), "KEY:T", "exit with 1 when the value of KEY is below 0 or "
               "above the number T, or outside the range [@][START:][END]; @ means inside, ~ no "
               "lower limit. KEY may be nested as a.b or {a::b}; repeatable"),
        Option(("-c", "--critical"), "KEY:T", "the same, exit with 2"),
        Option(("--partial-ok",), "", "look at an answer in which sites are missing as well; "
               "else it is unknown (3), because nobody knows what they would have said"),
        Option(("--rename",), "OLD:NEW", "rename a key of the answer before thresholds and "
               "output look at it; repeatable"),
    ),
)  # fmt: skip

OUTPUT = OptionGroup(
    "output (once for all URLs)",
    (
        Option(("-o", "--output"), "TEMPLATE", "print this instead of the answers, followed by "
               "performance data; see TEMPLATES"),
        Option(("--perfunit",), "LABEL:UNIT", "unit of performance data whose label equals or "
               "matches LABEL; repeatable"),
        Option(("--perffilter",), "REGEX", "only performance data whose label matches; "
               "repeatable, one match is enough"),
    ),
)  # fmt: skip

_TEMPLATES = (
    "TEMPLATES: in -o, {KEY} is a value of the answer, added up over all answers that are "
    "objects, and {N:KEY} that of answer N, counted from 1. KEY may be nested, as a.b.0.c or "
    "a::b::0::c; "
    "objects and lists print as JSON, null as (null), booleans as 1 and 0. {EXPRESSION} "
    "calculates with + - * / and brackets, where what does not exist is 0 and what has no value "
    'prints (error); names with other characters go into quotes: {"my-key" / 2}. '
    "{KEY%.2f} formats as printf does, {KEY%strftime:%H:%M} as local time. {STATUS} is OK, "
    "WARNING or CRITICAL, {RAW2} the second answer as it came, {RAW} the first. \\n is a new line.",
)

R = Subcommand(
    "r",
    "send requests to the REST API",
    "monrest.cli.rest_command:run",
    text=(
        "URL is a path of the API such as /hosts or /csv/services?q=state>0 (characters that a "
        "URL cannot hold are encoded, a + is meant literally), a whole http:// or https:// URL, "
        "the name of a readable file, or JSON text. Options in front of a URL belong to it, those "
        "behind the last URL to the last one.",
        "Without -o the answers are printed as they come. When a request fails, its answer "
        "alone is printed and the exit status is 3.",
        *_TEMPLATES,
        "As a monitoring plugin, call it with -w, -c and -o: states are exit statuses 0 to 3.",
    ),
    usage="[OPTION...] URL [[OPTION...] URL...]",
    argument=Positional("URL", "path of the API, URL, file or JSON text", "path"),
    groups=(REQUEST, CHECK, OUTPUT, OptionGroup("connection", (BACKEND, *CONNECTION.options))),
    examples=(
        ("monrest r /hosts/totals", "how many hosts are in which state"),
        (
            "monrest r -t '/services?q=state>0&columns=host_name,description,plugin_output'",
            "open problems, to read",
        ),
        (
            "monrest r -d comment_data='disk ordered' /services/web01/Disk/cmd/add_svc_comment",
            "send a command",
        ),
        ("monrest r -d @commands.json /cmd", "send a list of commands in one go"),
        (
            "monrest r -w critical:5 -c critical:10 -o '{STATUS}: {critical} of {total} critical' "
            "/services/totals",
            "a check for a monitoring core",
        ),
    ),
    aliases=("rest",),
)

_JSON = Option(("--json",), "", "print the answer as JSON")

KEY = Subcommand(
    "key",
    "make, list and revoke API keys",
    text=(
        "Over the daemon's Unix socket root and the daemon's own user need no key for this: "
        "that is how the first one is made.",
    ),
    usage="create|list|revoke [OPTION...]",
    commands=(
        Subcommand(
            "create",
            "make an API key and print it, once",
            "monrest.cli.api_keys:create",
            text=(
                "The key alone goes to standard output. The daemon keeps only its hash: it "
                "cannot be shown again.",
            ),
            usage="[OPTION...]",
            groups=(
                OptionGroup(
                    "the key",
                    (
                        Option(("--user",), "NAME", "whose key it is; default: your own"),
                        Option(("--superuser",), "", "a key of nobody, which acts for any user "
                               "(-A, X-Mon-Auth-User)"),
                        Option(("--force-user",), "NAME", "with --superuser: the only user for "
                               "whom the key acts"),
                        Option(("--role",), "ROLE", "all that the key may give; repeatable; "
                               "default: no restriction"),
                        Option(("--comment",), "TEXT", "what it is for"),
                        _JSON,
                    ),
                ),
                CONNECTION,
            ),
            examples=(
                (
                    "monrest key create --user grafana --role read_only --comment dashboards",
                    "a key that can only read",
                ),
            ),
        ),
        Subcommand(
            "list",
            "list API keys: all for administrators, else your own",
            "monrest.cli.api_keys:show",
            usage="[OPTION...]",
            groups=(OptionGroup("output", (_JSON,)), CONNECTION),
        ),
        Subcommand(
            "revoke",
            "delete API keys",
            "monrest.cli.api_keys:revoke",
            text=("They are refused from then on.",),
            usage="[OPTION...] ID...",
            argument=Positional("ID", "id of the key as list shows it; its beginning is enough"),
            groups=(OptionGroup("output", (_JSON,)), CONNECTION),
        ),
    ),
)  # fmt: skip

CHECK_CONFIG = Subcommand(
    "check-config",
    "say what is wrong with a configuration, without starting",
    "monrest.cli.check_config:run",
    text=("Exits with 0 when nothing is wrong, else with 1.",),
    usage="FILE",
    argument=Positional("FILE", "the configuration file (TOML)", "file"),
)

COMPLETION = Subcommand(
    "completion",
    "print a completion script for a shell",
    "monrest.cli.completion:run",
    text=(
        "It completes subcommands, options and paths of the API. Put the output where the shell "
        "looks: for bash into /etc/bash_completion.d/monrest, for zsh into a file _monrest in "
        "$fpath, for tcsh into ~/.tcshrc.",
    ),
    usage="SHELL",
    argument=Positional("SHELL", "bash, zsh or tcsh", choices=("bash", "zsh", "tcsh")),
)

MONREST = Subcommand(
    "monrest",
    "REST API in front of Livestatus monitoring cores",
    text=("The daemon itself is started with twistd monrest. This is the command line beside it.",),
    usage="[OPTION...] COMMAND ...",
    groups=(OptionGroup("connection", (BACKEND, *CONNECTION.options)),),
    commands=(R, KEY, CHECK_CONFIG, COMPLETION),
)


class Section(NamedTuple):
    """A part of the man page: (term, text) pairs."""

    title: str
    entries: tuple[tuple[str, str], ...]


SECTIONS = (
    Section(
        "EXIT STATUS",
        (
            ("0", "all requests were answered with a status of 2xx, and no threshold is exceeded"),
            ("1", "a warning threshold is exceeded; a subcommand that does not exist; with "
             "check-config, a configuration that cannot be used"),
            ("2", "a critical threshold is exceeded"),
            ("3", "a request failed, the daemon cannot be reached, the command line is wrong, or "
             "help was asked for"),
            ("130", "interrupted"),
            ("141", "standard output was closed"),
        ),
    ),
    Section(
        "ENVIRONMENT",
        (
            ("MONREST_URL", "as --url"),
            ("MONREST_KEY", "as --key"),
            ("MONREST_USER", "as --auth"),
        ),
    ),
    Section(
        "FILES",
        (
            ("~/.config/monrest/client.toml", "settings of the user ($XDG_CONFIG_HOME instead of "
             "~/.config when it is set)"),
            (SYSTEM_FILE, "settings of the machine"),
            ("", "Both are TOML with the keys url, key, user and insecure. Options win over the "
             "environment, that over the user's file, and that over the machine's. A key, user "
             "or insecure of a file counts only for its own url or a less important one, "
             "so that a key never goes to another server. A file with a key must not be readable "
             "by everybody."),
        ),
    ),
)  # fmt: skip
