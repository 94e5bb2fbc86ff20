"""A word has one meaning: no class, alias or module of the product has the name of another one."""

import ast
from collections import defaultdict
from pathlib import Path

import monrest

ROOT = Path(monrest.__file__).parent

MODULES = {
    "__init__": "every folder has one",
    "__main__": "what `python -m` runs",
    "model": "the values and rules of a family",
    "family": "what a family is, and what each of them is made of",
    "endpoints": "the paths of a family",
    "store": "the SQL of a family",
    "service": "the periodic work of a family",
}
"""Names of modules that mean the same in every room, with the reason."""


def trees():
    for path in sorted(ROOT.rglob("*.py")):
        if "migrations" not in path.parts:
            yield path, ast.parse(path.read_text())


def defined(tree):
    """Classes and aliases of a module; private ones mean something in their module alone."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "TypeAlias":
            yield node.target.id


def twice(found, allowed=()):
    return {
        name: sorted(places)
        for name, places in found.items()
        if len(places) > 1 and name not in allowed
    }


def test_classes_and_aliases_have_one_meaning():
    found = defaultdict(set)
    for path, tree in trees():
        for name in defined(tree):
            if not name.startswith("_"):
                found[name].add(str(path.relative_to(ROOT)))
    assert twice(found) == {}


def test_modules_have_one_meaning():
    found = defaultdict(set)
    for path, _ in trees():
        found[path.stem].add(str(path.relative_to(ROOT)))
    assert twice(found, MODULES) == {}


def test_a_limit_says_what_it_bounds():
    bare = {"LONGEST", "MOST"}
    assert [
        str(path.relative_to(ROOT))
        for path, tree in trees()
        for node in tree.body
        if isinstance(node, ast.Assign)
        and bare & {ast.unparse(target).strip("_") for target in node.targets}
    ] == []
