// What is known of the kinds of objects: the columns to begin with, their states, and where they lead.
import { withQuery } from "./address.js";

const COLUMNS = {
  "/hosts": ["name", "state", "last_check", "plugin_output"],
  "/services": ["host_name", "description", "state", "last_check", "plugin_output"],
  "/hostgroups": ["name", "alias", "num_hosts", "num_hosts_up", "num_hosts_down", "num_services_crit"],
  "/servicegroups": ["name", "alias", "num_services", "num_services_ok", "num_services_warn", "num_services_crit"],
  "/contacts": ["name", "alias", "email", "groups"],
  "/contactgroups": ["name", "alias", "members"],
  "/commands": ["name", "line"],
  "/timeperiods": ["name", "alias", "in"],
  "/comments": ["host_name", "service_description", "entry_time", "author", "comment", "id"],
  "/downtimes": ["host_name", "service_description", "start_time", "end_time", "author", "comment", "id"],
  "/logs": ["time", "type", "host_name", "service_description", "message"],
  "/alerts": ["time", "type", "host_name", "service_description", "state", "plugin_output"],
  "/notifications": ["time", "type", "host_name", "service_description", "state", "contact_name", "command_name"],
  "/hosts/availability": ["host", "time_up_percent", "time_down_percent", "time_unreachable_percent"],
  "/services/availability": ["host", "service", "time_ok_percent", "time_warning_percent", "time_critical_percent"],
  "/hosts/outages": ["host", "class", "start", "end", "duration", "plugin_output"],
  "/services/outages": ["host", "service", "class", "start", "end", "duration", "plugin_output"],
  "/processinfo": ["peer_name", "program_version", "program_start", "enable_notifications", "execute_service_checks"],
  "/sites": ["name", "id", "section", "connected", "last_error"],
  "/lmd/sites": ["name", "peer_key", "status", "last_update", "last_error"],
  "/config/files": ["path", "peer_key", "readonly", "mtime"],
  "/config/precheck": ["peer_key", "failed", "errors"],
  "/mon/cluster/restart": ["node_id", "node_url", "state", "changed", "message"],
  "/mon/bp": ["name", "id", "status", "status_text", "last_check"],
  "/mon/jobs": ["id", "cmd", "user", "is_running", "start", "end", "message"],
  "/mon/reports": ["name", "nr", "template", "user", "desc"],
  "/mon/recurring_downtimes": ["target", "host", "service", "hostgroup", "servicegroup", "comment", "schedule"],
  "/mon/sessions": ["username", "active", "address", "roles"],
};
// What names an object comes first, wherever columns are not chosen.
const NAMES = [
  "name", "username", "host_name", "host", "description", "service_description", "service", "id", "nr", "file",
  "path", "state", "status", "time", "type", "text", "message",
];
const MOST_COLUMNS = 6;

const rank = (name) => (NAMES.indexOf(name) + 1 || NAMES.length + 1);

export const namesFirst = (names) => [...names].sort((one, other) => rank(one) - rank(other));

// `known` are the schemas of the columns. Columns with a : are those of a core's own files.
export function firstColumns(path, known) {
  if (COLUMNS[path]) return COLUMNS[path].filter((name) => name in known);
  const plain = Object.keys(known).filter((name) => !known[name]["x-on-request"] && /^[\w:]+$/.test(name));
  return namesFirst(plain).slice(0, MOST_COLUMNS);
}

// The collection whose rows an endpoint gives: /hosts/{name}/services gives services.
export function kindOf(path) {
  if (/^\/hosts(\/\{name\})?$/.test(path)) return "/hosts";
  return /\/services(\/\{host\}\/\{service\})?$/.test(path) ? "/services" : path;
}

export const isLog = (path) => /\/(logs|alerts|notifications)$/.test(path);

// ------------------------------------------------------------------ states

const HOST = [["UP", "good"], ["DOWN", "bad"], ["UNREACHABLE", "warn"]];
const SERVICE = [["OK", "good"], ["WARNING", "warn"], ["CRITICAL", "bad"], ["UNKNOWN", "unknown"]];
const PENDING = ["PENDING", "pending"];
const STATE = /(^|_)state$/;
const LOGGED = /^(?:CURRENT |INITIAL )?(HOST|SERVICE) (?:ALERT|STATE|NOTIFICATION)$/;

// Word and colour of a state; null where a column is none, [] where the row has none.
export function stateOf(name, row, path) {
  if (!STATE.test(name) || typeof row[name] !== "number") return null;
  if (isLog(path)) {
    if (row.type === undefined) return null;
    const [, kind] = LOGGED.exec(row.type) ?? [];
    return (kind === "HOST" ? HOST : kind ? SERVICE : [])[row[name]] ?? (kind ? null : []);
  }
  const ofService = /(^|_)service_/.test(name) || (path === "/services" && !/(^|_)host_/.test(name));
  const ofHost = !ofService && (/(^|_)host_/.test(name) || path === "/hosts");
  if (!ofHost && !ofService) return null;
  const checked = name.startsWith("host_") ? row.host_has_been_checked : row.has_been_checked;
  if (checked === 0 && !name.startsWith("worst_")) return PENDING;
  return (ofHost ? HOST : SERVICE)[row[name]] ?? null;
}

// ------------------------------------------------------------------ links

const list = (path, ...pairs) =>
  `#${withQuery(path, [["columns", COLUMNS[path].join(",")], ...pairs, ["limit", "50"]])}`;
const alerts = (...pairs) => list("/alerts", ...pairs, ["time[gt]", "-7d"], ["sort", "-time"]);

// Where the value of a column leads, or null.
function target(name, row, path) {
  const host = row.host_name;
  if (name === "host_name" && host) return list("/hosts", ["name", host]);
  if (/^(service_)?description$/.test(name) && host && row[name]) {
    return list("/services", ["host_name", host], ["description", row[name]]);
  }
  if (name !== "name" || !row.name) return null;
  if (path === "/hosts") return list("/services", ["host_name", row.name]);
  if (path === "/hostgroups") return list("/hosts", ["groups[gte]", row.name]);
  if (path === "/servicegroups") return list("/services", ["groups[gte]", row.name]);
  return null;
}

// An address, or null; a URL from outside of the monitoring leads there.
export function linkOf(name, row, path) {
  return /^https?:\/\/\S+$/.test(row[name]) ? row[name] : target(name, row, path);
}

// Where else an object leads, as words and addresses.
export function wayOn(row, path) {
  if (path === "/hosts" && row.name) {
    return [
      ["services", list("/services", ["host_name", row.name])],
      ["alerts", alerts(["host_name", row.name])],
      ["commands", `#${withQuery("endpoints/commands-hosts", [["name", row.name]])}`],
    ];
  }
  if (path === "/services" && row.host_name && row.description) {
    const pair = [["host_name", row.host_name], ["service_description", row.description]];
    return [
      ["alerts", alerts(...pair)],
      ["commands", `#${withQuery("endpoints/commands-services", [["host", row.host_name], ["service", row.description]])}`],
    ];
  }
  return [];
}

// Columns that a table needs beside the chosen ones for states and links; none where rows are counted together.
export function besides(path, chosen) {
  if (!chosen.length || chosen.some((name) => /[( :]/.test(name))) return [];
  const found = [];
  const state = (name) => STATE.test(name);
  if (path === "/hosts" || path === "/services") {
    if (chosen.some((name) => state(name) && !name.startsWith("host_"))) found.push("has_been_checked");
    if (chosen.some((name) => state(name) && name.startsWith("host_"))) found.push("host_has_been_checked");
  }
  if (isLog(path) && chosen.some(state)) found.push("type");
  if (/^\/services$/.test(path) && (chosen.includes("description") || chosen.includes("host_name"))) {
    found.push("host_name", "description");
  }
  if (isLog(path) || ["/comments", "/downtimes"].includes(path)) {
    if (chosen.includes("service_description")) found.push("host_name");
  }
  return found.filter((name) => !chosen.includes(name));
}
