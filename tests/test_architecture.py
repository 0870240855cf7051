"""An architecture rule that the contracts in pyproject.toml don't cover: packages do not import each other in circles."""

import grimp
import pytest

PACKAGES = ("bench", "broker", "connect", "connectors", "events", "pyspark_tidegate", "registry", "tidegate")
"""Packages whose folders and files import one another in one direction: all of them."""


def knots(graph: grimp.ImportGraph, package: str) -> list[set[str]]:
    """The groups of a package's children (with all below them) that reach one another by imports."""
    children = graph.find_children(package)

    def child_of(module: str) -> str | None:
        return next((child for child in children if module == child or module.startswith(f"{child}.")), None)

    imports: dict[str, set[str]] = {child: set() for child in children}
    for child in children:
        for module in {child} | graph.find_descendants(child):
            imported = {child_of(name) for name in graph.find_modules_directly_imported_by(module)}
            imports[child] |= {name for name in imported if name is not None and name != child}

    def reached_from(child: str) -> set[str]:
        reachable: set[str] = set()
        ahead = [child]
        while ahead:
            new = imports[ahead.pop()] - reachable
            reachable |= new
            ahead += new
        return reachable

    reachable = {child: reached_from(child) for child in children}
    circles = {
        frozenset(other for other in reachable[child] if child in reachable[other])
        for child in children
        if child in reachable[child]
    }
    return [set(circle) for circle in circles]


def test_a_circle_is_seen() -> None:
    graph = grimp.ImportGraph()
    for module in ("top", "top.a", "top.a.inner", "top.b", "top.c", "top.d"):
        graph.add_module(module)
    graph.add_import(importer="top.a.inner", imported="top.b")
    graph.add_import(importer="top.b", imported="top.c")
    graph.add_import(importer="top.c", imported="top.a")
    graph.add_import(importer="top.d", imported="top.c")
    assert knots(graph, "top") == [{"top.a", "top.b", "top.c"}]


@pytest.mark.parametrize("package", PACKAGES)
def test_folders_and_files_import_one_another_in_one_direction(package: str) -> None:
    graph = grimp.build_graph(package, cache_dir=None)
    circles = {folder: knots(graph, folder) for folder in sorted(graph.modules) if graph.find_children(folder)}
    assert {folder: circle for folder, circle in circles.items() if circle} == {}
