"""A fake LMD: it asks the cores behind it at request time and answers as a running one did.

docs/spec/lmd.md has what was observed. The copy that a real one holds is not made: what it
takes from its cores it takes when it is asked.
"""

import json
import random
import re
import threading
import time

from .cores import ask, connect
from .listener import UnixListener
from .lying import framed, told

UP, WARNING, DOWN, BROKEN, PENDING, SYNCING = range(6)
LISTED = {
    "hosts": (("host_",), ()),
    "services": (("service_",), ("host_",)),
    "comments": ((), ("host_", "service_")),
    "downtimes": ((), ("host_", "service_")),
    "hostsbygroup": ((), ("hostgroup_",)),
    "servicesbygroup": ((), ("host_", "servicegroup_")),
    "servicesbyhostgroup": ((), ("host_", "hostgroup_")),
}
"""Tables whose columns under these prefixes are served and not listed."""
LACKS = {
    "hosts": {
        *("id", "acknowledgement_type", "check_timeout", "filename", "no_more_notifications"),
        *("notified_on", "pending_flex_downtime", "statusmap_image", "x_3d", "y_3d", "z_3d"),
        *("depends_exec_with_info", "depends_notify_with_info"),
        "check_flapping_recovery_notification",
    },
    "services": {"id", "check_timeout"},
    "commands": {"id"},
    "contactgroups": {"id"},
    "hostgroups": {"id"},
    "status": {"num_hosts", "num_services", "livechecks", "livechecks_rate"},
    "log": {"comment"},
}
HEADERS = {
    *("ResponseHeader", "OutputFormat", "KeepAlive", "ColumnHeaders", "Columns", "Filter", "And"),
    *("Or", "Negate", "Stats", "StatsAnd", "StatsOr", "StatsNegate", "Sort", "Limit", "Offset"),
    *("Backends", "AuthUser", "Localtime", "WaitTrigger", "WaitCondition", "WaitObject"),
    "WaitTimeout",
}
MOST_FILTERS = 1000
SITES_COLUMNS = {
    **dict.fromkeys(["peer_key", "peer_name", "key", "name", "addr", "last_error"], ""),
    **dict.fromkeys(["section", "parent"], ""),
    "lmd_version": "lmd-2.8.3 (Build: , fake)",
    **dict.fromkeys(["status", "bytes_send", "bytes_received", "queries", "idling"], 0),
    **dict.fromkeys(["last_update", "last_online", "response_time", "last_query"], 0),
    **{key: [] for key in ["flags", "federation_key", "federation_name", "federation_addr"]},
    **{key: [] for key in ["federation_type", "federation_version"]},
    "localtime": 0.0,
}


class BadRequest(Exception):
    """A refusal: one line without a header, after which the connection is closed."""


class Behind:
    """A site behind the LMD; ``more`` are values of its row in the table of sites."""

    def __init__(self, core, name, **more):
        self.core, self.name, self.more = core, name, more
        self.status, self.error = UP, ""

    def fails(self):
        """Why it is not among the answers; empty while it is."""
        return self.error or "peer is not ready" if self.status > WARNING else ""


class FakeLmd(UnixListener):
    """Listens on ``path``; ``sites`` are core sockets by id.

    ``requests`` are the lines of all that came. While ``gate`` is not set no query is answered.
    ``delay``: commands are answered before they are done; ``refuses``: what all sites say of them.
    """

    def __init__(self, path, sites):
        self.sites = {key: Behind(core, f"Site {key}") for key, core in sites.items()}
        self.requests, self.halves = [], []
        self.known = {}
        self.gate = threading.Event()
        self.gate.set()
        self.delay = self.refuses = ""
        super().__init__(path)

    def listen(self):
        self.sent = 0
        super().listen()

    def close(self):
        """Release everything for the end of a test."""
        self.gate.set()
        self.die()

    def serve(self, connection):
        while self.one(connection):
            pass

    def one(self, connection):
        """Answer one request; False when the connection ends."""
        data = b""
        while b"\n\n" not in data:
            chunk = connection.recv(65536)
            if not chunk:
                return False
            data += chunk
        text, _, rest = data.partition(b"\n\n")
        lines = text.decode().split("\n")
        if lines[0].startswith("COMMAND "):
            commands = [lines[0]]
            # Commands are collected until the other side says that it has no more.
            while chunk := connection.recv(65536):
                rest += chunk
            self.halves.append(lines[0])
            commands += [one for one in rest.decode().split("\n") if one.startswith("COMMAND ")]
            self.requests.append(lines)
            connection.sendall(self.command(commands, lines[1:]))
            return False
        # What came behind the first request is lost.
        self.requests.append(lines)
        self.gate.wait(300)
        try:
            answer, stays = self.answer(lines)
        except BadRequest as refusal:
            connection.sendall(f"{refusal}\n".encode())
            return False
        connection.sendall(answer)
        return stays

    def command(self, commands, lines):
        headers = dict(line.split(": ", 1) for line in lines if line)
        keys = headers.get("Backends", "").split() or list(self.sites)
        wrapped = headers.get("OutputFormat") == "wrapped_json"
        unknown = [key for key in keys if key not in self.sites]
        if unknown and not wrapped:
            return f"bad request: backend {unknown[0]} does not exist\n".encode()
        failed = {key: f"bad request: backend {key} does not exist" for key in unknown}
        for key in keys:
            if key in unknown:
                continue
            if self.sites[key].fails():
                failed[key] = "502: cannot send command, peer is down"
                continue
            for line in commands if not self.refuses else ():
                said = told(self.sites[key].core, line).decode().strip()
                if said:
                    failed[key] = said
            if self.refuses:
                failed[key] = self.refuses
        body = json.dumps({"failed": failed}).encode()
        status = 200 if not self.delay else 202
        return framed(body, status=status) if wrapped else "\n".join(failed.values()).encode()

    def answer(self, lines):
        table = lines[0].removeprefix("GET ")
        headers = [line.split(":", 1) for line in lines[1:] if line]
        several = [(name, value.strip()) for name, value in headers]
        for name, value in several:
            if name not in HEADERS:
                raise BadRequest(f"bad request: unrecognized header in: {name}: {value}")
        one = dict(several)
        form = one.get("OutputFormat", "json")
        if form not in ("json", "wrapped_json", "python", "python3"):
            raise BadRequest("bad request: unrecognized outputformat, choose from ...")
        asking = [name for name, _ in several if name in ("Filter", "Stats", "WaitCondition")]
        if len(asking) > MOST_FILTERS:
            raise BadRequest(f"bad request: maximum number of query filter reached: {MOST_FILTERS}")
        keys = one.get("Backends", "").split() or list(self.sites)
        failed = {
            key: f"bad request: backend {key} does not exist"
            for key in keys
            if key not in self.sites
        }
        if len(failed) == len(keys) and form != "wrapped_json":
            body = next(iter(failed.values())).encode()
            return framed(body, status=502), one.get("KeepAlive") == "on"
        keys = [key for key in keys if key in self.sites]
        rows, columns = self.rows(table, one, several, keys, failed)
        total = len(rows)
        offset, limit = int(one.get("Offset", 0)), one.get("Limit")
        rows = rows[offset : None if limit is None else offset + int(limit)]
        body = [f"[{json.dumps(row, ensure_ascii=False)[1:-1]}]" for row in rows]
        head = one.get("ColumnHeaders") == "on" and "Stats" not in one
        if form == "wrapped_json":
            text = '{"data":\n[' + ",\n".join(body) + ']\n,"failed": ' + json.dumps(failed)
            text += f'\n,"columns":{json.dumps(columns)}' if head else ""
            text += f'\n,"rows_scanned":{total}\n,"total_count":{total}}}\n'
        else:
            body = [json.dumps(columns), *body] if head else body
            text = "[" + ",\n".join(body) + "]\n"
        self.sent += 1
        data = text.encode()
        data = framed(data) if one.get("ResponseHeader") == "fixed16" else data
        return data, one.get("KeepAlive") == "on"

    def rows(self, table, one, several, keys, failed):
        """The rows of a table over all sites in their order, and the names of their columns."""
        stats = [value for name, value in several if name == "Stats"]
        known = self.columns(table, keys)
        asked = one["Columns"].split() if "Columns" in one else [] if stats else list(known)
        sort = [value.split() for name, value in several if name == "Sort"]
        for column, *_ in sort:
            if column not in known:
                raise BadRequest(f"unknown sort column {column}")
        found = []
        for key in keys:
            behind = self.sites[key]
            if table in ("sites", "backends", "columns"):
                continue
            if behind.fails():
                failed[key] = behind.fails()
                continue
            found += self.of_site(table, one, several, key, asked, stats, sort, known)
        if table in ("sites", "backends"):
            found = [([self.site_row(key).get(name, "") for name in asked], []) for key in keys]
            random.shuffle(found)
        elif table == "columns":
            found = [([dict(zip(("table", "name", "type"), row, strict=True)).get(name, "")
                       for name in asked], []) for row in self.listed()]  # fmt: skip
        elif table == "log":
            if sort and sort[0][0] == "time":
                found.sort(key=lambda pair: pair[1], reverse=sort[0][-1] == "desc")
        elif stats:
            found = self.added(found, len(asked), stats)
        else:
            if not sort:
                sort = [[name, "asc"] for name in ("host_name", "name", "description", "id")
                        if name in known]  # fmt: skip
            for at, (_column, *_, way) in reversed(list(enumerate(sort))):
                found.sort(key=lambda pair, at=at: pair[1][at], reverse=way == "desc")
        return [row for row, _ in found], asked

    def of_site(self, table, one, several, key, asked, stats, sort, known):
        """Rows of one site, each with what it is sorted by."""
        behind = self.sites[key]
        ours = {"peer_key": key, "peer_name": behind.name, "lmd_last_cache_update": time.time()}
        if not sort and not stats and table != "log":
            sort = [[name] for name in ("host_name", "name", "description", "id") if name in known]
        wanted = [*asked, *(column for column, *_ in sort)]
        theirs = list(dict.fromkeys(name for name in wanted if name in known and name not in ours))
        lines = [f"GET {table}"]
        if theirs or not stats:
            lines.append(f"Columns: {' '.join(theirs or [next(iter(known))])}")
        for name, value in several:
            if name in ("And", "Or", "StatsAnd", "StatsOr") and value == "0":
                continue
            if name in ("Filter", "Stats"):
                lines.append(f"{name}: {self.condition(table, name, value, known, key)}")
            elif name in ("And", "Or", "Negate", "StatsAnd", "StatsOr", "StatsNegate", "AuthUser"):
                if name != "AuthUser" or table != "contacts":
                    lines.append(f"{name}: {value}".rstrip())
            elif name == "Limit" and table == "log":
                lines.append(f"Limit: {value}")
        answer = ask(connect(behind.core), "\n".join(lines))
        found = []
        for row in answer:
            values = dict(zip(theirs, row, strict=False)) | ours
            mine = [values.get(name, "") for name in asked]
            if table == "contacts" and "id" in asked:
                mine[asked.index("id")] = str(mine[asked.index("id")])
            if stats:
                mine = [*map(str, mine), *row[len(theirs) :]]
            found.append((mine, [values.get(column, "") for column, *_ in sort]))
        return found

    def condition(self, table, word, text, known, key):
        """A Filter or Stats line as the core behind it has to be asked to get the same answer."""
        column, op, *value = text.split(" ", 2)
        value = value[0] if value else ""
        if word == "Stats" and column in ("sum", "min", "max", "avg"):
            if (table, op) == ("contacts", "id"):
                # What it holds as a text it cannot add up.
                self.die()
                raise BadRequest("panic: unsupported type: StringCol")
            return text
        if word == "Stats" and column in ("std", "suminv", "avginv"):
            raise BadRequest(f"bad request: unsupported stats function {column}")
        never = f"{next(name for name in known if known[name] == 'string')} = none such"
        if column == "peer_key":
            always = never.replace(" = ", " != ")
            return always if (key == value) == (op == "=") else never
        if column not in known:
            return never if value else never.replace(" = ", " != ")
        if op in ("~", "~~", "!~", "!~~"):
            if re.search(r"\(\?[=!<]|\\[1-9]", value):
                raise BadRequest("bad request: invalid regular expression")
            value = re.sub(r"(.)\{(\d+)\}", lambda one: one[1] * int(one[2]), value)
            return f"{column} {op} {value}"
        elif known[column] in ("int", "float") and not re.fullmatch(r"-?[0-9.]+", value):
            raise BadRequest(f"bad request: could not convert {value} to number")
        if known[column] == "list" and op == "<":
            return never
        if table == "hosts" and column == "name" and op == "=~" and value != value.lower():
            return never
        return text

    def added(self, found, groups, stats):
        """Rows of Stats of all sites: one for each group."""
        merged = {}
        for row, _ in found:
            key = tuple(row[:groups])
            if key not in merged:
                merged[key] = row[groups:]
                continue
            for at, stat in enumerate(stats):
                both = (merged[key][at], row[groups + at])
                word = stat.split(" ")[0]
                merged[key][at] = {"min": min, "max": max}.get(word, sum)(both)
        return [([*key, *values], []) for key, values in sorted(merged.items())]

    def theirs(self, key):
        if key not in self.known:
            tables = {}
            for table, name, kind in ask(
                connect(self.sites[key].core), "GET columns\nColumns: table name type"
            ):
                tables.setdefault(table, {})[name] = kind
            self.known[key] = tables
        return self.known[key]

    def any_tables(self):
        return self.theirs(next(iter(self.sites)))

    def columns(self, table, keys):
        """Every column that a table serves, with its type."""
        if table in ("sites", "backends"):
            return dict.fromkeys(SITES_COLUMNS, "string")
        if table == "columns":
            return dict.fromkeys(("table", "name", "type"), "string")
        tables = self.any_tables()
        if table not in tables or table == "statehist":
            raise BadRequest(f"bad request: table {table} does not exist")
        lacks = {
            *LACKS.get(table, ()),
            *(f"host_{name}" for name in LACKS["hosts"]),
            *(f"service_{name}" for name in LACKS["services"]),
        }
        known = {name: kind for name, kind in tables[table].items() if name not in lacks}
        known |= {"peer_key": "string", "peer_name": "string", "lmd_last_cache_update": "float"}
        return known

    def listed(self):
        """The table of columns: only those of each table itself."""
        for table in self.any_tables():
            if table in ("statehist", "columns"):
                continue
            prefixes = ("host_", "service_", "hostgroup_", "servicegroup_")
            prefixes += ("current_",) if table == "log" else ()
            for name, kind in self.columns(table, ()).items():
                keys = ("host_name", "service_description", "hostgroup_name", "servicegroup_name")
                if not name.startswith(prefixes) or name in keys or table in ("contacts", "status"):
                    yield table, name, "list" if name == "custom_variables" else kind

    def site_row(self, key):
        behind, now = self.sites[key], time.time()
        return {
            **SITES_COLUMNS,
            "peer_key": key,
            "key": key,
            "peer_name": behind.name,
            "name": behind.name,
            "addr": str(behind.core),
            "status": behind.status,
            "last_error": behind.error,
            "bytes_send": self.sent,
            "queries": self.sent,
            "localtime": now,
            "last_update": now,
            "last_online": now,
            "last_query": int(now),
            "flags": ["Naemon"],
            **behind.more,
        }
