"""Cycles between compilation units, for check_style.py: a unit is NAME.cc with NAME.h, and needs the units whose headers
it includes. The units of a cycle can only be read and tested together.
"""
import sys
from pathlib import Path

import check_includes


def unit_of(path):
    return str(Path(path).with_suffix(""))


def graph():
    """unit: the units that it needs"""
    needs = {}
    for source in check_includes.sources():
        mine = needs.setdefault(unit_of(source), set())
        for line in (check_includes.ROOT / source).read_text(errors="replace").splitlines():
            match = check_includes.INCLUDE.match(line)
            target = check_includes.resolve(source, *match.groups()) if match else None
            if target and unit_of(target) != unit_of(source):
                mine.add(unit_of(target))
    return needs


def cycles(needs):
    """The strongly connected components of more than one unit (Tarjan)."""
    number, low, stack, found = {}, {}, [], []

    def visit(unit):
        number[unit] = low[unit] = len(number)
        stack.append(unit)
        for other in sorted(needs.get(unit, ())):
            if other not in number:
                visit(other)
                low[unit] = min(low[unit], low[other])
            elif other in stack:
                low[unit] = min(low[unit], number[other])
        if low[unit] == number[unit]:
            part = stack[stack.index(unit):]
            del stack[len(stack) - len(part):]
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(10000)
    for unit in sorted(needs):
        if unit not in number:
            visit(unit)
    return sorted(found)
