"""``make contract`` makes the golden files again, in a commit of their own."""

from .recorded import answers, description, frozen_demo, help_texts, keep

with frozen_demo() as client:
    keep("answers.txt", answers(client))
    keep("openapi.txt", description(client))
keep("help.txt", help_texts())
