"""Deleting a comment or downtime by its id alone: the command for its object, on each site."""

from __future__ import annotations

from attrs import evolve

from monrest.api.endpoint import Context, Endpoint, Handler
from monrest.api.visibility import visibility
from monrest.base.errors import BadRequest, NotFound, RestError, SitesFailed
from monrest.base.values import Answer, RestRequest
from monrest.commands.arguments import LARGEST
from monrest.commands.asked import AskedCommand, collected, manner, sites_of
from monrest.commands.endpoints import COLUMNS, MANNER_PARAMETERS
from monrest.commands.lookups import owners
from monrest.commands.submit import submit

_COMMANDS = {"comments": "del_comment", "downtimes": "del_downtime"}


def _deletes(table: str) -> Handler:
    word = table.removesuffix("s")

    async def handler(context: Context, request: RestRequest, names: tuple[str, ...]) -> Answer:
        number = _id(names[0], word)
        given = collected(request.parameters)
        how = manner(given, context.config.server)
        sites = sites_of(context, request.sites, given)
        strict = context.config.auth.strict_host_authorization
        visible = visibility(request.identity, table, strict)
        found = await owners(table, sites, number, visible, context.clock)
        if not found.sites:
            if found.problems:
                raise SitesFailed(tuple(found.problems.values()))
            raise NotFound(f"no such {word}", f"no selected site has a {word} {number} for you")
        asked = [
            AskedCommand(
                index=index,
                command=_COMMANDS[table],
                target=target,
                given={f"{word}_id": (str(number),)},
                sites=tuple(site for site in sites if site.id in having),
            )
            for index, (target, having) in enumerate(found.sites.items())
        ]
        problems: dict[int, RestError] = {}
        outcomes = await submit(context, request, asked, how, problems)
        if problems:
            raise problems[min(problems)]
        answers = [outcome.answer() for outcome in sorted(outcomes, key=lambda one: -one.code)]
        failed = dict(found.problems)
        failed |= {problem.site: problem for one in answers for problem in one.failed_sites}
        lines = "\n".join(one.value["commands"] for one in answers)
        return evolve(
            answers[0],
            value={**answers[0].value, "commands": lines},
            failed_sites=tuple(failed.values()),
        )

    return handler


def _id(text: str, word: str) -> int:
    if text.isascii() and text.isdigit() and 0 < (number := int(text[:20])) <= LARGEST:
        return number
    raise BadRequest(f"invalid {word} id", f"{word} id: expected a number from 1 to {LARGEST}")


def _endpoint(table: str) -> Endpoint:
    word = table.removesuffix("s")
    return Endpoint(
        path=f"/{table}/<id>",
        methods=("DELETE",),
        description=f"deletes a {word}",
        text="Sends the command that deletes it for its host or service, to each selected site "
        "that has this id and shows it to the user. Ids of sites are independent of each other, "
        "so name the site where there are several.",
        handler=_deletes(table),
        shape="object",
        parameters=MANNER_PARAMETERS,
        columns=COLUMNS,
    )


ENDPOINTS: tuple[Endpoint, ...] = tuple(_endpoint(table) for table in _COMMANDS)
