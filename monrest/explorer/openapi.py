"""OpenAPI 3.1 of all endpoints, made of their declarations (docs/spec/http.md, "Description").

Pure: endpoints, names and examples in, a document out, with the JSON Schema of each parameter,
field and column.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from attrs import define, field

from monrest.api.endpoint import (
    BACKGROUND,
    LIST_PARAMETERS,
    PRETTY,
    SITE_PARAMETERS,
    DeclaredParameter,
    Endpoint,
    Method,
    is_variable,
)
from monrest.api.fields import Choice, Date, Flag, NameList, Number, Second, Seconds, Text
from monrest.api.lists import own_columns
from monrest.base.names import Names
from monrest.base.values import Column
from monrest.commands.arguments import arguments_of, limits
from monrest.commands.endpoints import MANNER_PARAMETERS
from monrest.commands.listing import url_of
from monrest.commands.permissions import needed
from monrest.explorer.chapters import CHAPTERS, chapter_of, columns_of, further_columns
from monrest.explorer.examples import Example
from monrest.livestatus.catalogue import ALL, Argument, Command, singular
from monrest.query.column_names import CoreColumn, TableSchema
from monrest.query.target import FORMATS

JsonSchema: TypeAlias = dict[str, Any]

_FLAG: Mapping[str, Any] = {"type": ["integer", "boolean"], "enum": [0, 1, True, False]}
"""Further words for yes and no are taken, and these are the ones to send."""

_TYPES: Mapping[str, JsonSchema] = {
    "string": {"type": "string"},
    "integer": {"type": "integer", "minimum": 0},
    "number": {"type": "number"},
    "boolean": dict(_FLAG),
    "time": {"type": ["string", "integer"], "examples": ["-24h"]},
    "list": {"type": ["array", "string"]},
    "object": {"type": ["object", "string"]},
}

_VALUES: Mapping[str, JsonSchema] = {
    "": {},
    "string": {"type": ["string", "null"]},
    "number": {"type": ["number", "null"]},
    "boolean": {"type": ["integer", "boolean", "null"]},
    "time": {"type": ["number", "null"]},
    "array_of_strings": {"type": ["array", "null"]},
    "object": {"type": ["object", "null"]},
}
"""The schema of values of our own records, by the type of a column."""

_OTHERWISE: Mapping[str, JsonSchema] = {
    "last_error": {"type": ["string", "number", "null"]},
    "last_job": {"type": ["string", "number", "null"]},
    "nodes": {"type": ["array", "object", "null"]},
    "nr": {"type": ["number", "string", "null"]},
    "params": {"type": ["object", "null"]},
    "permissions": {"type": ["array", "null"]},
}
"""The schema of columns of our own records whose declared type, which clients know, differs."""

_CORE: Mapping[str, str] = {
    "string": "string", "int": "number", "float": "number", "time": "number", "list": "array",
    "dict": "object",
}  # fmt: skip
"""The schema of values of cores, by the core's type; none is missing."""

_ARGUMENTS: Mapping[str, JsonSchema] = {
    "boolean": dict(_FLAG),
    "timestamp": {"type": ["string", "integer"], "examples": ["now", "+1h"]},
    "duration": {"type": ["string", "number"], "examples": ["2h", 7200]},
    "timeperiod": {"type": "string"},
    "hostgroup": {"type": "string"},
    "string": {"type": "string"},
}


def parameter_schema(parameter: DeclaredParameter) -> JsonSchema:
    schema = _bounds(parameter)
    limit = parameter.limit
    text = f"{parameter.description}. Limit: {limit}." if limit else parameter.description
    return schema | {"description": text} | ({"x-limit": limit} if limit else {})


def _bounds(parameter: DeclaredParameter) -> JsonSchema:
    match parameter:
        case Text():
            return {"type": "string", "maxLength": parameter.longest}
        case Choice():
            default = {"default": parameter.default} if parameter.default else {}
            return {"type": "string", "enum": list(parameter.words), **default}
        case Number():
            bounds = {
                "minimum": parameter.least,
                "maximum": parameter.most,
                "default": parameter.default,
            }
            return {"type": "integer", **bounds}
        case Seconds():
            return {"type": "number", "minimum": parameter.least, "maximum": parameter.most}
        case Flag():
            return {**_FLAG, "default": parameter.default}
        case NameList():
            item: JsonSchema = {"type": "string"}
            if parameter.longest:
                item["maxLength"] = parameter.longest
            # A text with commas in it is a list too.
            return {"type": ["array", "string"], "items": item, "maxItems": parameter.most}
        case Second() | Date():
            return dict(_TYPES["time"])
        case _:
            return dict(_TYPES[parameter.type])


def argument_schema(command: Command, argument: Argument) -> JsonSchema:
    if argument.type == "integer":
        least, most = limits(command, argument.name)
        schema: JsonSchema = {"type": "integer", "minimum": least, "maximum": most}
    else:
        schema = dict(_ARGUMENTS[argument.type])
    if not argument.required and argument.default not in (None, ""):
        schema["description"] = f"default: {argument.default}"
    return schema


def row_schema(columns: tuple[Column, ...]) -> JsonSchema:
    """The schema of a record with these columns, of which any may be missing."""
    return _record(
        {
            column.name: _labelled(
                column, dict(_OTHERWISE.get(column.name) or _VALUES[column.type])
            )
            for column in columns
        }
    )


def collection_schema(schema: TableSchema) -> JsonSchema:
    properties = {}
    for column, default in columns_of(schema):
        spec = schema.columns.get(column.name)
        kind = dict(_VALUES[column.type])
        if isinstance(spec, CoreColumn) and not schema.mixed:
            kind = {"type": _CORE[spec.core_type]}
        properties[column.name] = _labelled(column, kind) | (
            {} if default else {"x-on-request": True}
        )
    return _record(properties)


def _record(properties: JsonSchema) -> JsonSchema:
    return {"type": "object", "properties": dict(sorted(properties.items()))}


def _labelled(column: Column, schema: JsonSchema) -> JsonSchema:
    """The schema with what people and programs want to know of a column besides."""
    schema["description"] = column.description
    schema["x-type"] = column.type
    if column.unit:
        schema["x-unit"] = column.unit
    return schema


Object: TypeAlias = dict[str, Any]

_JSON = "application/json"
_FORM = "application/x-www-form-urlencoded"
_FILES: Object = {
    "application/x-ndjson": {"schema": {"type": "string"}},
    "text/csv": {"schema": {"type": "string"}},
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": {
        "schema": {"type": "string", "format": "binary"}
    },
}
"""The other formats that an ``Accept`` chooses."""

_INTRODUCTION = """\
Hosts, services and everything else that the monitoring cores know, as lists that are filtered, \
sorted and calculated on the way; commands for the cores; and what this service keeps itself.

- A **POST** to a path that has only GET is that GET with its parameters from the body; PUT is POST.
- **Formats**: `Accept`, the header `{header}` or a prefix of the path ({formats}) chooses one, \
as in `{root}/csv/hosts`.
- **Sites**: a prefix `/sites/a,b/` or the parameter `backends` selects some.
- **Jobs**: `background=1` on any path that needs an account answers at once with the address of \
the result.
- **Filters**: `state[gte]=1`, `name[regex]=^web`, or `q=state > 0 and name ~ web`. Operators: \
eq, ne, regex, nregex, sregex, snregex, gt, lt, gte, lte, notin.
- A name in a path is percent-encoded, a slash in it as `%2F`.
- Sites that failed are named in `{failed}` beside the rows of the others.
"""

_FILTER = re.compile(r"<(column|attribute)>\[<op>\]")
_ERRORS: dict[int, tuple[str, str, str]] = {
    400: ("BadRequest", "The request is wrong; the description names what was expected.",
          "invalid limit"),
    401: ("NotAuthenticated", "No credentials were sent, or wrong ones.", "login required"),
    403: ("Forbidden", "The user may not, or the key is wrong.", "not authorized"),
    404: ("NotFound", "No such path, or no such object of the service's own.", "no such job"),
    408: ("TooSlow", "The request took too long to arrive.", "request too slow"),
    409: ("Conflict", "The change contradicts the present state.", "cannot change file"),
    413: ("TooLarge", "The body is longer than the service reads.", "request body too long"),
    429: ("TooManyRequests", "The caller has to wait for `Retry-After` seconds.",
          "too many logins at once"),
    501: ("NotClustered", "There is no cluster here.", "no cluster"),
    502: ("SitesFailed", "No selected site answered, or none rightly.", "no backend available"),
    503: ("Unavailable", "The service itself cannot answer now.", "cannot read"),
    504: ("TimedOut", "It took too long, here or at every selected site.", "request timed out"),
    508: ("LoopDetected", "Instances ask each other in a circle.", "loop detected"),
}  # fmt: skip
"""Status to name, meaning and the message of an example."""

_SHARED = (*LIST_PARAMETERS, *SITE_PARAMETERS, PRETTY, BACKGROUND)

_VARIABLES = {
    "name": "name of the object",
    "host": "name of the host",
    "service": "description of the service",
    "id": "id",
    "nr": "number",
    "file": "number of the file",
    "command": "name of the command, see `/cmd`",
    "peer_key": "id of the site",
    "operation": "name of the operation",
}


def openapi(
    endpoints: Sequence[Endpoint], names: Names, version: str, examples: Mapping[str, Example]
) -> Object:
    """The whole document; paths count from the root of the API, which is its only server."""
    return _Writer(names, version, examples).document(endpoints)


@define(eq=False)
class _Writer:
    """Collects the schemas that operations share while it writes them."""

    names: Names
    version: str
    examples: Mapping[str, Example]
    _schemas: Object = field(factory=dict, init=False)
    _parameters: Object = field(factory=dict, init=False)
    _rows: dict[tuple[Any, ...], str] = field(factory=dict, init=False)

    def document(self, endpoints: Sequence[Endpoint]) -> Object:
        paths: dict[str, Object] = {}
        for endpoint in sorted(endpoints, key=lambda endpoint: endpoint.path):
            item = paths.setdefault(self._template(endpoint.path), {})
            for method in endpoint.methods:
                item[method.lower()] = self._operation(endpoint, method)
        for command in ALL:
            self._add_command(paths, command)
        self._schemas["Error"] = _ERROR
        return {
            "openapi": "3.1.0",
            "jsonSchemaDialect": "https://spec.openapis.org/oas/3.1/dialect/base",
            "info": {
                "title": "monrest",
                "version": self.version,
                "summary": "A REST API in front of monitoring cores",
                "description": _INTRODUCTION.format(
                    header=self._header("OutputFormat"),
                    failed=self._header("Failed-Sites"),
                    formats=", ".join(f"`/{prefix}/`" for prefix in sorted(FORMATS)),
                    root=self.names.root,
                ),
                "license": {"name": "MIT", "identifier": "MIT"},
            },
            "servers": [{"url": self.names.root, "description": "this service"}],
            "tags": [{"name": title} for title, _ in CHAPTERS]
            + [
                {"name": _commands_of(kind)}
                for kind in dict.fromkeys(command.kind for command in ALL)
            ],
            "paths": dict(sorted(paths.items())),
            "components": {
                "parameters": dict(sorted(self._parameters.items())),
                "schemas": dict(sorted(self._schemas.items())),
                "responses": {
                    name: _error(code, meaning, example)
                    for code, (name, meaning, example) in _ERRORS.items()
                },
                "securitySchemes": self._schemes(),
            },
            "security": _ways_in(),
        }

    def _operation(self, endpoint: Endpoint, method: Method) -> Object:
        operation: Object = {
            "operationId": _slug(method, endpoint.path),
            "summary": endpoint.description,
            "tags": [chapter_of(endpoint)],
        }
        sentences = [endpoint.text] if endpoint.text else []
        if endpoint.roles:
            sentences.append(f"Needs the role {', '.join(f'`{role}`' for role in endpoint.roles)}.")
            operation["x-roles"] = list(endpoint.roles)
        if endpoint.schema is not None and (further := further_columns(endpoint.schema)):
            sentences.append("Further columns: " + "; ".join(further) + ".")
        if sentences:
            operation["description"] = " ".join(sentences)
        parameters = [self._variable(name) for name in endpoint.variables]
        if method in ("GET", "DELETE"):
            parameters += [self._parameter(each) for each in endpoint.parameters]
        else:
            body = self._body(endpoint.parameters, lists=endpoint.path == "/cmd")
            kept = self.examples.get(f"{method} {endpoint.path}")
            if body and kept is not None and kept.body is not None:
                body["content"][_JSON]["examples"] = {"demo": {"value": kept.body}}
            if body and endpoint.body_limit:
                body["x-limit"] = f"{endpoint.body_limit} bytes"
            if body:
                operation["requestBody"] = body
        parameters += [self._parameter(each) for each in endpoint.common_parameters]
        if parameters:
            operation["parameters"] = parameters
        if endpoint.public or endpoint.documents:
            operation["security"] = [] if endpoint.public else [{}, *_ways_in()]
        operation["responses"] = self._responses(endpoint, method)
        return operation

    def _add_command(self, paths: dict[str, Object], command: Command) -> None:
        """Describe a command at a path of its own, with all its arguments."""
        properties = {
            argument.name: argument_schema(command, argument)
            for argument in arguments_of(command, required=False)
        }
        required = [argument.name for argument in command.arguments if argument.required]
        properties |= {parameter.name: self._property(parameter) for parameter in MANNER_PARAMETERS}
        schema: Object = {"type": "object", "properties": properties}
        if required:
            schema["required"] = required
        sent = next(path for path in paths if path.endswith("/cmd/{command}"))
        paths[_braced(url_of(command))] = {
            "post": {
                "operationId": _slug("POST", url_of(command)),
                "summary": command.description,
                "description": f"Sends `{command.core_name}`. "
                f"Needs {needed(command.permission, singular(command.kind))}.",
                "tags": [_commands_of(command.kind)],
                "parameters": [
                    *(self._variable(name) for name in re.findall(r"<(\w+)>", url_of(command))),
                    *(self._parameter(parameter) for parameter in (PRETTY, BACKGROUND)),
                ],
                "requestBody": _content(schema, required=bool(required)),
                "responses": paths[sent]["post"]["responses"],
            }
        }

    def _body(self, parameters: Iterable[DeclaredParameter], *, lists: bool) -> Object:
        """The body of a request: a form or JSON with the same fields."""
        properties: Object = {}
        required: list[str] = []
        free: Object | None = None
        for parameter in parameters:
            if "<" in parameter.name:
                free = {"description": parameter.description}
                continue
            properties[parameter.name] = self._property(parameter)
            if parameter.required:
                required.append(parameter.name)
        if not properties and free is None:
            return {}
        schema: Object = {"type": "object", "properties": properties}
        if free is not None:
            schema["additionalProperties"] = free
        if required:
            schema["required"] = required
        if not lists:
            return _content(schema, required=bool(required))
        content = _content(schema, required=True)
        content["content"][_JSON] = {
            "schema": {"anyOf": [schema, {"type": "array", "items": schema}]}
        }
        return content

    def _parameter(self, parameter: DeclaredParameter) -> Object:
        """A parameter, those of all lists only once in the document."""
        if parameter not in _SHARED:
            return _query(parameter)
        name = "filter" if _FILTER.fullmatch(parameter.name) else parameter.name
        self._parameters.setdefault(name, _query(parameter))
        return {"$ref": f"#/components/parameters/{name}"}

    def _variable(self, name: str) -> Object:
        """A segment of a path, once for all paths."""
        self._parameters[f"path_{name}"] = {
            "name": name,
            "in": "path",
            "required": True,
            "description": _VARIABLES[name],
            "schema": {"type": "string", "minLength": 1},
        }
        return {"$ref": f"#/components/parameters/path_{name}"}

    def _property(self, parameter: DeclaredParameter) -> JsonSchema:
        """A field of a body, those of all commands only once in the document."""
        if parameter not in MANNER_PARAMETERS:
            return parameter_schema(parameter)
        name = f"Parameter_{parameter.name}"
        self._schemas.setdefault(name, parameter_schema(parameter))
        return {"$ref": f"#/components/schemas/{name}"}

    def _responses(self, endpoint: Endpoint, method: Method) -> Object:
        responses: Object = {"200": self._answer(endpoint, method)}
        if method == "GET":
            responses["304"] = {"description": "What the client has is still the same."}
        codes = {400, 408, 413, 503, 504}
        if not endpoint.public or endpoint.changes:
            codes |= {401, 403, 429}
        if endpoint.variables or endpoint.path.startswith("/config"):
            codes.add(404)
        if endpoint.changes:
            codes |= {404, 409}
        if {"backends", "timeout"} & {each.name for each in endpoint.parameters} or endpoint.schema:
            codes |= {502, 508}
        if endpoint.path.startswith("/mon/cluster"):
            codes |= {403, 501, 502}
        if endpoint.path.startswith("/mon/node-control"):
            codes.add(502)
        for code in sorted(codes):
            responses[str(code)] = {"$ref": f"#/components/responses/{_ERRORS[code][0]}"}
        if endpoint.path.endswith("/jobs/<id>/output"):
            responses["302"] = {"description": "The job still runs: ask again at `Location`."}
        return responses

    def _answer(self, endpoint: Endpoint, method: Method) -> Object:
        if endpoint.media:
            content: Object = {kind: {} for kind in endpoint.media}
        else:
            content = {_JSON: {"schema": self._shape(endpoint)}, **_FILES}
        if BACKGROUND in endpoint.common_parameters:
            self._schemas["StartedJob"] = _STARTED_JOB
            shape = content[_JSON].get("schema", {})
            started = {"$ref": "#/components/schemas/StartedJob"}
            content[_JSON] = {"schema": {"anyOf": [*shape.get("anyOf", [shape]), started]}}
        kept = self.examples.get(f"{method} {endpoint.path}")
        if kept is not None and kept.answer is not None and _JSON in content:
            content[_JSON]["examples"] = {
                "demo": {"summary": f"{method} {kept.path}", "value": kept.answer}
            }
        headers = {
            self._header("Failed-Sites"): {
                "description": "ids of the sites that could not answer",
                "schema": {"type": "string"},
            },
            self._header("Warnings"): {
                "description": "what was asked and had no effect",
                "schema": {"type": "string"},
            },
        }
        return {"description": "The answer.", "headers": headers, "content": content}

    def _shape(self, endpoint: Endpoint) -> JsonSchema:
        row = {"$ref": f"#/components/schemas/{self._row(endpoint)}"}
        if endpoint.shape == "object":
            # A list of commands gives a list of results.
            return {"anyOf": [row, {"type": "array"}]} if endpoint.path == "/cmd" else row
        rows: Object = {"type": "array", "items": row}
        if all(each.name != "columns" for each in endpoint.parameters):
            return rows
        # Columns that are nothing but aggregates give one object.
        return {"anyOf": [rows, {"type": "object"}]}

    def _row(self, endpoint: Endpoint) -> str:
        """The name of the schema of a row, which is made when it is needed first."""
        key: tuple[Any, ...] = (endpoint.schema.name,) if endpoint.schema else (*endpoint.columns,)
        name = self._rows.get(key)
        if name is None:
            name = self._rows[key] = self._name(endpoint)
            self._schemas[name] = (
                collection_schema(endpoint.schema)
                if endpoint.schema
                else row_schema(own_columns(endpoint.columns, self.names))
            )
        return name

    def _name(self, endpoint: Endpoint) -> str:
        words = (
            [endpoint.schema.name]
            if isinstance(endpoint.schema, TableSchema)
            else list(endpoint.segments)
        )
        plain = [word for word in words if not is_variable(word) and word != "mon"] or ["index"]
        if endpoint.path == "/mon":
            plain = ["instance"]
        name = "".join(part.title() for word in plain for part in re.findall(r"[a-z0-9]+", word))
        while name in self._schemas:
            name += "Of" + "".join(part.title() for part in endpoint.variables or ("Other",))
        return name

    def _template(self, path: str) -> str:
        """A path as OpenAPI spells it, with the site's own word in the place of ``mon``."""
        words = path.strip("/").split("/")
        if words[0] == "mon":
            words[0] = self.names.app
        return _braced("/" + "/".join(words))

    def _header(self, name: str) -> str:
        return f"X-{self.names.app.title()}-{name}"

    def _schemes(self) -> Object:
        def header(name: str, text: str) -> Object:
            return {"type": "apiKey", "in": "header", "name": self._header(name),
                    "description": text}  # fmt: skip

        return {
            "key": header("Auth-Key", "An API key, or the secret key together with `user`."),
            "user": header("Auth-User", "The user whose rights apply, with a key that may."),
            "bearer": {"type": "http", "scheme": "bearer", "description": "An API key."},
            "basic": {"type": "http", "scheme": "basic", "description": "Name and password."},
            "session": {
                "type": "apiKey",
                "in": "cookie",
                "name": f"{self.names.app}_auth",
                "description": f"The cookie of a login, `POST /{self.names.app}/login`.",
            },
            "csrf": header(
                "CSRF-Token", "Beside the cookie, for everything but reading: from the login."
            ),
        }


def _ways_in() -> list[Object]:
    ways = (("key",), ("key", "user"), ("bearer",), ("basic",), ("session",), ("session", "csrf"))
    return [{scheme: [] for scheme in way} for way in ways]


_STARTED_JOB: JsonSchema = {
    "type": "object",
    "description": "The answer to `background=1`.",
    "required": ["job_id", "result_url"],
    "properties": {
        "job_id": {"type": "string", "description": "id of the job"},
        "message": {"type": "string", "description": "what happened"},
        "result_url": {
            "type": "string",
            "description": "path of the result, root included",
        },
        "success": {"const": True},
    },
}

_ERROR: JsonSchema = {
    "type": "object",
    "required": ["code", "message", "description", "failed"],
    "properties": {
        "code": {"type": "integer", "description": "the status of the answer"},
        "message": {"type": "string", "description": "what went wrong, short"},
        "description": {"type": "string", "description": "what was expected, or what to do"},
        "failed": {"const": True, "description": "distinguishes an error from any other object"},
    },
}


def _error(code: int, meaning: str, message: str) -> Object:
    example = {"code": code, "message": message, "description": meaning, "failed": True}
    content = {"schema": {"$ref": "#/components/schemas/Error"}, "example": example}
    response: Object = {"description": meaning, "content": {_JSON: content}}
    if code == 401:
        response["headers"] = {
            "WWW-Authenticate": {"description": "ways in", "schema": {"type": "string"}}
        }
    if code in (429, 503):
        response["headers"] = {
            "Retry-After": {"description": "seconds", "schema": {"type": "integer"}}
        }
    return response


def _query(parameter: DeclaredParameter) -> Object:
    schema = parameter_schema(parameter)
    text = schema.pop("description")
    if _FILTER.fullmatch(parameter.name):
        # Any number of pairs, whose names are columns with an operator behind.
        schema = {"type": "object", "additionalProperties": {"type": "string"}, **schema}
        schema.pop("maxLength", None)
        schema["type"] = "object"
        return {
            "name": "filter",
            "in": "query",
            "description": f"{text} Each pair is a parameter of its own.",
            "style": "form",
            "explode": True,
            "schema": schema,
            "examples": {"none": {"value": {}}, "problems": {"value": {"state[gte]": "1"}}},
        }
    if schema.get("default") == 0:
        # A form would send it with every request.
        del schema["default"]
    document: Object = {
        "name": parameter.name,
        "in": "query",
        "description": text,
        "schema": schema,
    }
    if parameter.required:
        document["required"] = True
    if parameter.name in _EXAMPLES:
        schema["examples"] = [_EXAMPLES[parameter.name]]
    return document


_EXAMPLES = {"limit": 10, "columns": "name,state", "sort": "-last_check", "q": "state > 0"}


def _content(schema: Object, *, required: bool) -> Object:
    content = {_JSON: {"schema": schema}, _FORM: {"schema": schema}}
    return {"required": required, "content": content}


def _commands_of(kind: str) -> str:
    return f"Commands: {kind}"


def _slug(method: str, path: str) -> str:
    words = re.findall(r"\w+", path) or ["root"]
    return "_".join((method.lower(), *words)).replace("__", "_")


def _braced(path: str) -> str:
    return re.sub(r"<(\w+)>", r"{\1}", path)
