"""Modules import each other in one direction, late imports inside of functions included."""

from graphlib import TopologicalSorter

import grimp


def test_there_is_no_circle_of_imports():
    graph = grimp.build_graph("monrest", exclude_type_checking_imports=True, cache_dir=None)
    imported = {one: graph.find_modules_directly_imported_by(one) for one in graph.modules}
    assert len(imported) > 100
    # It raises CycleError, which names the modules of a circle.
    TopologicalSorter(imported).prepare()
