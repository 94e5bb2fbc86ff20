"""Modules import each other in one direction, late imports inside of functions included."""

from graphlib import TopologicalSorter

import grimp


def test_there_is_no_circle_of_imports():
    graph = grimp.build_graph("monrest", exclude_type_checking_imports=True, cache_dir=None)
    imported = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    assert len(imported) > 100
    # It raises CycleError, which names the modules of a circle.
    TopologicalSorter(imported).prepare()


def test_endpoints_are_declared_without_knowing_a_family_even_for_types():
    graph = grimp.build_graph("monrest", exclude_type_checking_imports=False, cache_dir=None)
    api = {one for one in graph.modules if one.startswith("monrest.api.")}
    known = {
        name.split(".")[1] for one in api for name in graph.find_modules_directly_imported_by(one)
    }
    assert known == {"api", "base", "config", "livestatus", "query", "sites", "store"}
