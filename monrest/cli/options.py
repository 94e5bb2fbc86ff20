"""Every subcommand and option, once: parsing, ``--help``, the man page and completion read this."""

from __future__ import annotations

from typing import NamedTuple

DEFAULT_URL = "unix:/run/monrest/monrest.sock"
DEFAULT_CONFIG = "/etc/monrest/monrest.toml"
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
    """The arguments after the options; ``completes`` is ``file``, ``path`` (of the API) or nothing.

    ``several``: it may come more than once.
    """

    name: str
    help: str
    completes: str = ""
    choices: tuple[str, ...] = ()
    required: bool = True
    several: bool = False


class Subcommand(NamedTuple):
    """A subcommand; ``run`` is ``module:function``, imported when it is used.

    The function gets the arguments and the options, and returns the exit status.

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


HELP = Option(("-h", "--help"), "", "show this text")
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
        Option(("-A", "--auth"), "USER", "act for this user, with their roles and no more"),
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
               "leading + stays, other + are spaces, then percent-encoding is decoded. "
               "JSON replaces keys given before. A JSON list is sent as it is (POST /cmd). "
               '-d "" is a POST without data'),
        Option(("-D", "--rawdata"), "DATA", "like -d, but KEY=VALUE replaces the KEY"),
        Option(("-H", "--header"), "HEADER", '"NAME: VALUE", for URLs with http:// or https:// '
               "only; repeatable"),
        Option(("--no-strict",), "", "a name in columns or sort that no row has is null and a "
               "warning; without this it is an error"),
        Option(("--background",), "", "run it as a background job and follow it, with a progress "
               "bar on a terminal; the result is then the result of the job"),
        Option(("--json",), "", "answer as JSON; this is the default"),
        Option(("--csv",), "", "answer as CSV"),
        Option(("--ndjson",), "", "answer as JSON, one row a line"),
        Option(("--xls",), "", "answer as an Excel file"),
        Option(("-t", "--text"), "", "answer as a table to read"),
        Option(("--human",), "", "the same as --text"),
        Option(("--string",), "", "use the argument itself as the answer, without a request"),
        Option(("--command",), "", "use the output of the argument, a shell command, as the "
               "answer; an exit status other than 0 is a failure"),
        Option(("--postprocess",), "COMMAND", "a shell command that reads the answer on "
               "standard input and prints the one for thresholds and templates"),
    ),
)  # fmt: skip

CHECK = OptionGroup(
    "thresholds (each URL has its own)",
    (
        Option(("-w", "--warning"), "KEY:T", "exit with 1 when the value of KEY is below 0 or "
               "above the number T, or outside the range [@][START:][END]; @ means inside, ~ no "
               "lower limit. KEY may be nested as a.b or {a::b}; repeatable"),
        Option(("-c", "--critical"), "KEY:T", "the same, exit with 2"),
        Option(("--partial-ok",), "", "evaluate an answer with missing sites; without this it is "
               "unknown (3)"),
        Option(("--rename",), "OLD:NEW", "rename a key of the answer before thresholds and "
               "output look at it; repeatable"),
    ),
)  # fmt: skip

COLOR = Option(("--color",), "WHEN", "auto (on a terminal, unless NO_COLOR is set), always or "
               "never; always also prints into a pipe as on a terminal", "color")  # fmt: skip

OUTPUT = OptionGroup(
    "output (once for all URLs)",
    (
        COLOR,
        Option(("--full",), "", "print tables with all their columns; otherwise those of -t have "
               "the most important ones, unless columns= chooses, and on a terminal tables are cut "
               "to its width"),
        Option(("--watch",), "SECONDS", "repeat the request every SECONDS, until interrupted"),
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
    "a::b::0::c; {0.KEY} is of the first row of a list; "
    "objects and lists print as JSON, null as (null), booleans as 1 and 0. {EXPRESSION} "
    "calculates with + - * / and brackets, where what does not exist is 0 and what has no value "
    'prints (error); names with other characters go into quotes: {"my-key" / 2}. '
    "{KEY%.2f} formats as printf does, {KEY%strftime:%H:%M} as local time. {STATUS} is OK, "
    "WARNING or CRITICAL, {RAW2} the second answer as it came, {RAW} the first. \\n is a new line. "
    "A name that is in no answer prints {error:...}, and the exit status is 3.",
    "EARLIER ANSWERS: {N:KEY} in a URL, or behind --string or --command, is replaced by what "
    "answer N has there, as one segment of the path; a URL that is nothing else is taken as it "
    "is. What is neither object nor list, behind --string, --command and --postprocess, has the "
    "KEY value.",
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
        "Without -o the answers are printed as they come; on a terminal JSON is indented and "
        "coloured, and tables are cut to the width. When a request fails, its answer alone is "
        "printed and the exit status is 1.",
        *_TEMPLATES,
        "As a monitoring plugin, call it with -w, -c or -o: states are exit statuses 0 to 3, and "
        "everything that fails is 3.",
    ),
    usage="[OPTION...] URL [[OPTION...] URL...]",
    argument=Positional("URL", "path of the API, URL, file or JSON text", "path", several=True),
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
        ("monrest r --watch 5 -t '/services?q=state>0'", "look at the problems every five seconds"),
        (
            "monrest r '/hosts?q=state>0&columns=name&limit=1' '/hosts/{1:0.name}/services'",
            "put what one answer says into the next URL",
        ),
    ),
    aliases=("rest",),
)

_JSON = Option(("--json",), "", "print the answer as JSON")
_JSON_LINES = Option(("--json",), "", "print each event as JSON, one a line")

EVENTS = Subcommand(
    "events",
    "tell what happens, as it happens",
    "monrest.cli.event_stream:run",
    text=(
        "FILTER is a column of an event, or of its host or service, with an operator and a value: "
        "host_name=web01, state[ne]=0, host_groups[gte]=web. A connection that is lost is made "
        "again, and nothing is missing then.",
        "With --exec a command is run for each event, one after the other. It gets the event as "
        "JSON on its standard input, and MONREST_EVENT_TYPE, _ID, _SUBJECT, _HOST, _SERVICE, "
        "_STATE and _OUTPUT in its environment.",
    ),
    usage="[OPTION...] [FILTER...]",
    argument=Positional(
        "FILTER", "which events, for example state=2", required=False, several=True
    ),
    groups=(
        OptionGroup(
            "events",
            (
                Option(("--types",), "LIST", "only these types, for example state,downtime"),
                Option(("--q",), "QUERY", "a filter in the query language"),
                Option(("--since",), "ID", "continue behind this event, or at a time such as -10m"),
                Option(("--snapshot",), "", "begin with the present problems"),
                Option(("--columns",), "LIST", "only these columns"),
                Option(("--limit",), "NUMBER", "end after so many events"),
                Option(("--exec",), "COMMAND", "run this for each event"),
            ),
        ),
        OptionGroup("output", (_JSON_LINES, COLOR)),
        CONNECTION,
    ),
    examples=(
        ("monrest events --snapshot --types state", "all problems, then every change of a state"),
        (
            "monrest events --exec 'notify-send \"$MONREST_EVENT_OUTPUT\"' state=2",
            "for the desktop",
        ),
    ),
)  # fmt: skip

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
                        Option(("--user",), "NAME", "the owner of the key; default: you"),
                        Option(("--superuser",), "", "a key without an owner, which can act "
                               "for any user (-A, X-Mon-Auth-User)"),
                        Option(("--force-user",), "NAME", "with --superuser: the only user for "
                               "whom the key can act"),
                        Option(("--role",), "ROLE", "limit the key to this role; repeatable; "
                               "default: no limit beyond the rights of its user"),
                        Option(("--comment",), "TEXT", "what it is for"),
                        _JSON,
                    ),
                ),
                CONNECTION,
            ),
            examples=(
                (
                    "monrest key create --user alice --comment laptop",
                    "a key with the rights of alice",
                ),
                (
                    "monrest key create --superuser --role all_hosts --role all_services "
                    "--comment grafana",
                    "a key that sees everything and changes nothing",
                ),
            ),
        ),
        Subcommand(
            "list",
            "list your API keys; administrators see all",
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
            argument=Positional(
                "ID", "id of the key as list shows it; its beginning is enough", several=True
            ),
            groups=(OptionGroup("output", (_JSON,)), CONNECTION),
        ),
    ),
)  # fmt: skip

CHECK_CONFIG = Subcommand(
    "check-config",
    "check a configuration without starting the daemon",
    "monrest.cli.config_commands:check",
    text=("Exits with 0 when nothing is wrong, else with 1.",),
    usage="[--connect] [FILE]",
    groups=(
        OptionGroup(
            "check",
            (Option(("--connect",), "", "also ask each site whether it answers, and what it is"),),
        ),
    ),
    argument=Positional(
        "FILE", f"the configuration (TOML); default: {DEFAULT_CONFIG}", "file", required=False
    ),
)

CONFIG = Subcommand(
    "config",
    "show the configuration that would be in force, or print an example",
    usage="show|example [OPTION...]",
    commands=(
        Subcommand(
            "show",
            "print every value that would be in force, and where it comes from",
            "monrest.cli.config_commands:show",
            text=(
                "A file with a line, a variable of the environment (MONREST__SERVER__LISTEN), or "
                "the default. Files of conf.d beside the configuration count as well. Secrets are "
                "hidden.",
            ),
            usage="[--changed] [--json] [FILE]",
            argument=Positional(
                "FILE", f"the configuration; default: {DEFAULT_CONFIG}", "file", required=False
            ),
            groups=(
                OptionGroup(
                    "output",
                    (Option(("--changed",), "", "leave the defaults out"), _JSON),
                ),
            ),
        ),
        Subcommand(
            "example",
            "print a configuration with every key, or a file for systemd",
            "monrest.cli.config_commands:example",
            usage="[--unit | --socket | --sysusers | --tmpfiles]",
            groups=(
                OptionGroup(
                    "files for systemd",
                    (
                        Option(("--unit",), "", "the unit, for /etc/systemd/system"),
                        Option(("--socket",), "", "a socket unit, which is optional"),
                        Option(("--sysusers",), "", "the daemon's user, for /usr/lib/sysusers.d"),
                        Option(("--tmpfiles",), "", "its folders, for /usr/lib/tmpfiles.d"),
                    ),
                ),
            ),
            examples=(
                (
                    "monrest config example > /etc/monrest/monrest.toml",
                    "a configuration to begin with",
                ),
            ),
        ),
    ),
)

SITES = Subcommand(
    "sites",
    "show which sites answer, their cores, and why others do not answer",
    "monrest.cli.sites:run",
    text=(
        "Asks the daemon. Where none runs, or with --config, the sites are asked from here, as the "
        "user who calls this. Exits with 1 unless all sites are up.",
    ),
    usage="[OPTION...]",
    groups=(
        OptionGroup(
            "sites",
            (
                Option(("--config",), "FILE", "ask the sites of this configuration, and no daemon",
                       "file"),
                Option(("--json",), "", "print JSON"),
            ),
        ),
        CONNECTION,
    ),
)  # fmt: skip

SERVE = Subcommand(
    "serve",
    "run the daemon in the foreground",
    "monrest.cli.serve:run",
    text=(
        "This is twistd --nodaemon --pidfile= monrest with these options, under the same process "
        "number. SIGTERM stops it, SIGHUP makes it read its configuration again.",
    ),
    usage="[--config FILE | --demo [--port PORT]] [OPTION...]",
    groups=(
        OptionGroup(
            "daemon",
            (
                Option(("--config",), "FILE", f"the configuration; default: {DEFAULT_CONFIG}",
                       "file"),
                Option(("--demo",), "", "an embedded, simulated core instead of a configuration; "
                       "leaves nothing behind"),
                Option(("--port",), "PORT", "with --demo: the port to listen on; default: 8080"),
                Option(("--json-log",), "", "log one JSON object a line"),
                Option(("--logfile",), "FILE", "log into a file; default: standard output", "file"),
                Option(("--pidfile",), "FILE", "write the number of the process; default: none",
                       "file"),
            ),
        ),
    ),
    examples=(("monrest serve --demo", "a daemon to try, with 20 hosts and 100 services"),),
)  # fmt: skip

IMPORT = Subcommand(
    "import",
    "import the configuration and the data of an older front end with this API",
    "monrest.cli.import_command:run",
    text=(
        "DIR is the folder of its configuration, or one that has etc/thruk in it: a site, or a "
        "copy of another machine's files. Prints what becomes of what, and what cannot be taken "
        "over and why. Nothing is written without --apply, and nothing that is there is changed: "
        "a second run finds nothing to do.",
        "A configuration that is there already is used as it is: what it lacks is left out. Run by "
        "root, what is written belongs to the owner of the state folder. Exits with 1 when "
        "something cannot be read.",
    ),
    usage="[OPTION...] DIR",
    groups=(
        OptionGroup(
            "import",
            (
                Option(("--apply",), "", "write the configuration and the database"),
                Option(("--config",), "FILE", f"the configuration; default: {DEFAULT_CONFIG}",
                       "file"),
                Option(("--state",), "DIR", "where the daemon keeps its state; default: "
                       "/var/lib/monrest", "file"),
                Option(("--var",), "DIR", "the data of the old installation, where its "
                       "configuration does not say it", "file"),
                Option(("--secret-key",), "", "take over its secret key: a client with it may do "
                       "everything"),
                Option(("--fill-targets",), "", "recurring downtimes whose target fits nothing "
                       "that they name, which did nothing, get one that fits, and begin to act"),
                Option(("--json",), "", "print the table as JSON"),
            ),
        ),
    ),
    argument=Positional("DIR", "the old installation", "file"),
    examples=(
        ("monrest import /etc/thruk", "see what would become of it"),
        ("sudo -u monrest monrest import --apply /srv/copy", "write it"),
    ),
)  # fmt: skip

COMPLETION = Subcommand(
    "completion",
    "print a completion script for a shell",
    "monrest.cli.completion:run",
    text=(
        "It completes subcommands, options and paths of the API. Put the output where the shell "
        "looks: for bash into /etc/bash_completion.d/monrest, for zsh into a file _monrest in "
        "$fpath, for fish into ~/.config/fish/completions/monrest.fish, for tcsh into ~/.tcshrc.",
        "In bash, fish and zsh names of objects and commands are completed as well, by the daemon "
        "that monrest r would ask.",
    ),
    usage="SHELL | --word WORD",
    groups=(
        OptionGroup(
            "for scripts",
            (
                Option(
                    ("--word",),
                    "WORD",
                    "print what may stand in the place of WORD, the beginning "
                    "of a path, one a line",
                ),
            ),
        ),
    ),
    argument=Positional(
        "SHELL", "bash, fish, tcsh or zsh", choices=("bash", "fish", "tcsh", "zsh"), required=False
    ),
)

MONREST = Subcommand(
    "monrest",
    "REST API in front of Livestatus monitoring cores",
    text=(
        "monrest serve starts the daemon. Everything else is the command line beside it. monrest "
        "COMMAND --help shows the options of each.",
    ),
    usage="[OPTION...] COMMAND ...",
    groups=(OptionGroup("connection", (BACKEND, *CONNECTION.options)),),
    commands=(R, EVENTS, SITES, KEY, SERVE, CONFIG, CHECK_CONFIG, IMPORT, COMPLETION),
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
            ("1", "a request failed, the daemon cannot be reached, a site is not up (sites), the "
             "configuration cannot be used (check-config)"),
            ("2", "the command line is wrong"),
            ("0 to 3", "of monrest r with -w, -c or -o: OK, WARNING, CRITICAL, and UNKNOWN for "
             "everything that failed and for a wrong command line"),
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
             "by all users."),
        ),
    ),
)  # fmt: skip
