"""JavaScript has the constants of Python."""

from tests.page import constants


def test_the_constants_are_up_to_date():
    assert constants.CONSTANTS.read_text() == constants.written(), (
        "run python tests/page/constants.py"
    )


def test_every_constant_is_used():
    site = constants.CONSTANTS.parent
    code = "".join(
        path.read_text() for path in site.glob("*.js") if path.name != constants.CONSTANTS.name
    )
    assert [name for name, *_ in constants.VALUES if name not in code] == []
