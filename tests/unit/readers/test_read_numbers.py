"""Numbers in text become the nearest float32, whatever way they are written."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from embits import _core

LARGEST = Fraction(float(np.finfo(np.float32).max))


def parsed(text: str) -> np.float32:
    rows = _core.Rows(1, 1, False, 1)
    rows.parse_text(f"w {text}\n".encode(), 1)
    assert rows.n_bad == 0, rows.first_bad
    value: np.float32 = rows.take_matrix()[0, 0]
    return value


def nearest(text: str) -> np.float32:
    """The slow oracle: exact fractions; float(text) first would round twice."""
    exact = Fraction(text)
    about = np.float32(float(exact))
    candidates = [about, neighbor(about, np.inf), neighbor(about, -np.inf)]
    finite = [c for c in candidates if np.isfinite(c)]
    return min(finite, key=lambda c: (abs(Fraction(float(c)) - exact), c.view(np.uint32) & 1))


def neighbor(value: np.float32, towards: float) -> np.float32:
    with np.errstate(over="ignore", under="ignore"):
        return np.nextafter(value, np.float32(towards))


def fits(text: str) -> bool:
    return abs(Fraction(text)) <= LARGEST


DECIMALS = st.from_regex(
    r"[-+]?([0-9]{1,25}\.?[0-9]{0,25}|\.[0-9]{1,30})([eE][-+]?[0-9]{1,2})?", fullmatch=True
)


@pytest.mark.slow
@settings(deadline=None, max_examples=1500)
@given(DECIMALS.filter(fits))
@example("16777217")
@example("16777219")
@example("16777217.0000000000000000000000000001")
@example("9007199791611905")
@example("0." + "0" * 40 + "1")
@example("1" + "0" * 30)
@example("7.006492321624085e-46")  # half of the smallest float
@example("7.0064923216240854e-46")
@example("1.17549435082228750797e-38")
@example("1.1754942106924411e-38")
@example("340282346638528859811704183484516925440")
@example("-0.0")
def test_a_decimal_is_rounded_once(text: str) -> None:
    value = parsed(text)
    assert value == nearest(text)
    assert np.signbit(value) == text.startswith("-")


@settings(deadline=None, max_examples=500)
@given(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(-1, 1),
    st.integers(9, 40),
)
def test_decimals_next_to_a_midpoint_fall_to_the_right_side(
    start: float, step: int, digits: int
) -> None:
    above = neighbor(np.float32(start), np.inf)
    if not np.isfinite(above):
        return
    midpoint = (Fraction(start) + Fraction(float(above))) / 2
    nudged = midpoint * (1 + Fraction(step, 10**digits))
    scale = 10 ** (digits + 45)
    text = decimal(int(nudged * scale), digits + 45)
    assert parsed(text) == nearest(text)


def decimal(digits: int, places: int) -> str:
    sign = "-" if digits < 0 else ""
    text = str(abs(digits)).rjust(places + 1, "0")
    return f"{sign}{text[:-places]}.{text[-places:]}"


@settings(deadline=None)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_every_float32_comes_back_from_its_repr(value: float) -> None:
    assert parsed(repr(value)) == np.float32(value)
    assert parsed(str(np.float32(value))) == np.float32(value)
    assert parsed(f"{value:.9g}") == np.float32(value)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("1e-5", 1e-5),
        ("-.5", -0.5),
        ("5.", 5.0),
        ("+1", 1.0),
        ("1E+3", 1000.0),
        ("1e-45", 1e-45),
        ("1e-400", 0.0),
        ("0e999999999999", 0.0),
        ("000000000000000000000000000001.5", 1.5),
        ("0.1e1", 1.0),
    ],
)
def test_every_usual_form_is_read(text: str, value: float) -> None:
    assert parsed(text) == np.float32(value)


@pytest.mark.parametrize("text", ["3.4028236e38", str(2**128 - 2**103), "1e39", "1e400", "9" * 60])
def test_what_rounds_past_the_largest_float_is_not_finite(text: str) -> None:
    rows = _core.Rows(1, 1, False, 1)
    rows.parse_text(f"w {text}\n".encode(), 1)
    assert rows.first_bad == (1, text.encode(), b"a finite float32")


def test_the_largest_float_is_finite() -> None:
    assert parsed(str(2**128 - 2**103 - 1)) == np.finfo(np.float32).max
