"""State arrives by the constructor: the composition root sets nothing in the parts of the daemon."""

import ast
from pathlib import Path

import monrest

DAEMON = Path(monrest.__file__).parent / "daemon"


def set_from_outside(tree):
    for node in ast.walk(tree):
        targets = node.targets if isinstance(node, ast.Assign) else []
        for target in targets:
            for one in target.elts if isinstance(target, ast.Tuple) else [target]:
                if isinstance(one, ast.Attribute) and ast.unparse(one.value) != "self":
                    yield ast.unparse(one)


def test_parts_get_what_they_need_when_they_are_made():
    found = {
        (path.name, name)
        for path in sorted(DAEMON.glob("*.py"))
        for name in set_from_outside(ast.parse(path.read_text()))
    }
    # The site of Twisted is made before anybody knows who writes its access lines.
    assert found == {("service.py", "self.site.access_line")}
