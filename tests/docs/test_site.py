"""The docs site builds without a warning and is complete."""

import importlib
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

import embits
from embits.cli import VERBS

pytest.importorskip("mkdocstrings")
pytest.importorskip("material")
pytest.importorskip("latex2mathml")

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class Requests(HTMLParser):
    """The addresses that a browser asks for by itself when it shows a page."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page.read_text())

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        if tag == "link" and values.get("rel") in ("canonical", "next", "prev"):
            return
        name = {"link": "href", "script": "src", "img": "src", "iframe": "src"}.get(tag)
        if name and values.get(name):
            self.found.append(values[name])


def test_a_page_asks_no_other_host_for_anything(site):
    requests = {address for page in site.rglob("*.html") for address in Requests(page).found}
    assert requests
    assert [address for address in requests if re.match(r"(https?:)?//", address)] == []


def test_every_public_name_has_its_place_in_the_reference(site):
    pages = "".join(page.read_text() for page in site.glob("reference/*/index.html"))
    modules = ("search", "evaluation", "integrations")
    left_out = ("__version__", *modules)
    names = [f"embits.{name}" for name in embits.__all__ if name not in left_out]
    for module in modules:
        owner = importlib.import_module(f"embits.{module}")
        public = getattr(owner, "__all__", ["export"])
        names += [f"embits.{module}.{name}" for name in public]
    assert [name for name in names if f'id="{name}"' not in pages] == []


def test_every_verb_has_its_section_with_an_example(site):
    page = (site / "reference/command-line/index.html").read_text()
    text = re.sub(r"<[^>]+>", "", page)
    assert [verb for verb in VERBS if f'id="{verb}"' not in page] == []
    assert [verb for verb in VERBS if text.count(f"embits {verb}") < 2] == []  # usage, example


def test_formulas_are_drawn_by_the_browser_itself(site):
    page = (site / "method/index.html").read_text()
    assert page.count("<math") > 10
    assert "arithmatex" not in page
