"""A CycloneDX list of what is in the wheels of a release, and what they need.

    python stress/sbom.py DIST > embits.cdx.json

DIST has the sdist and the wheels, of which one is installed in this Python: its libraries that are
compiled in and its dependencies, with their dependencies, are listed with their versions.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable
from hashlib import sha256
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from embits import _core

REQUIREMENT = re.compile(r"[A-Za-z0-9._-]+")
COMPILED_IN = {"nanobind": "BSD-3-Clause", "robin-map": "MIT"}  # robin-map is part of nanobind


def sbom(files: Iterable[Path]) -> dict[str, Any]:
    """The list, in version 1.6 of the format."""
    root = distribution("embits")
    packages = with_dependencies(root)
    components = [component(each) for name, each in packages.items() if name != "embits"]
    compiled: list[dict[str, Any]] = [
        {"type": "library", "name": name, "bom-ref": f"compiled-in:{name}"}
        | {"licenses": [{"license": {"id": license}}]}
        for name, license in COMPILED_IN.items()
    ]
    compiled[0]["version"] = _core.nanobind_version
    compiled[0]["purl"] = f"pkg:pypi/nanobind@{_core.nanobind_version}"
    needs = {name: [*direct(each)] for name, each in packages.items()}
    refs = {name: purl(each) for name, each in packages.items()}
    links = [
        {"ref": refs[name], "dependsOn": sorted({refs[each] for each in of if each in refs})}
        for name, of in needs.items()
    ]
    links[0]["dependsOn"] += [each["bom-ref"] for each in compiled]
    published = [
        {
            "type": "file",
            "name": path.name,
            "bom-ref": path.name,
            "hashes": [{"alg": "SHA-256", "content": sha256(path.read_bytes()).hexdigest()}],
        }
        for path in sorted(files)
    ]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": component(root) | {"components": published}},
        "components": components + compiled,
        "dependencies": links,
    }


def with_dependencies(root: Distribution) -> dict[str, Distribution]:
    """A package and all it needs, by name; without extras and what this platform does not need."""
    packages, names = {key(root.name): root}, [*direct(root)]
    while names:
        name = names.pop()
        if name not in packages:
            try:
                packages[name] = distribution(name)
            except PackageNotFoundError:  # of another platform
                continue
            names += direct(packages[name])
    return packages


def direct(package: Distribution) -> Iterable[str]:
    for line in package.requires or ():
        named = REQUIREMENT.match(line)
        if named and not re.search(r";.*\bextra\b", line):
            yield key(named[0])


def key(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def purl(package: Distribution) -> str:
    return f"pkg:pypi/{key(package.name)}@{package.version}"


def component(package: Distribution) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "library", "name": package.name, "version": package.version}
    made |= {"purl": purl(package), "bom-ref": purl(package)}
    if expression := package.metadata.get("License-Expression"):
        made["licenses"] = [{"expression": expression}]
    return made


if __name__ == "__main__":
    print(json.dumps(sbom(Path(sys.argv[1]).iterdir()), indent=1))
