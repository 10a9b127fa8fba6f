"""The figures of docs/method.md, from real vectors: docs/images/method-*.svg.

    python docs/figures/method.py

The vectors are GloVe 6B 50d, from the package of `embits[demo]`. Takes about half a minute.
"""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_rgba
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch
from numpy.typing import NDArray
from style import LIGHT, save

import embits
from embits.cli.demo import glove

WORD, FRIENDS = "queen", ("princess", "church", "guitar")
N_BITS, ROWS = 64, 50_000


def main() -> None:
    vectors = glove()
    floats = vectors.matrix[:ROWS]
    words = list(vectors.words or ())[:ROWS]
    model = embits.PaperAutoencoder(n_bits=N_BITS).fit(floats)
    codes = embits.binarize(floats, 256)
    save(autoencoder(floats, words, model), "method-autoencoder")
    save(agreement(floats, words, codes), "method-agreement")
    save(step(), "method-step")


def autoencoder(floats: NDArray[Any], words: list[str], model: embits.PaperAutoencoder) -> Figure:
    """A word in the paper's model: its floats, its bits, and the floats rebuilt from them."""
    x = floats[[words.index(WORD)]]
    codes = model.transform(x)
    strips = (
        (f"x: “{WORD}”, {x.shape[1]} floats, {4 * x.shape[1]} bytes", np.clip(x, -1, 1), "RdBu"),
        (f"b = h(W x): {N_BITS} bits, {N_BITS // 8} bytes", bits_of(codes, N_BITS), "bits"),
        ("ŷ = tanh(Wᵀ b + c): the floats rebuilt", model.inverse_transform(codes), "RdBu"),
    )
    figure, panels = plt.subplots(3, 1, figsize=(9.2, 3.5))
    figure.subplots_adjust(hspace=1.5, right=0.82)
    for axes, (title, values, kind) in zip(panels, strips, strict=True):
        strip(axes, values, kind)
        axes.set_title(title, fontsize=9.5, pad=5)
    for upper, text in enumerate(("encoder\nW, then a step", "decoder\nthe same W")):
        top, bottom = (panels[place].get_position() for place in (upper, upper + 1))
        edge = top.x1 + 0.012
        arrow = FancyArrowPatch(
            (edge, (top.y0 + top.y1) / 2), (edge, (bottom.y0 + bottom.y1) / 2),
            connectionstyle="arc3,rad=-0.9", arrowstyle="-|>", mutation_scale=11, lw=1.2,
            color=LIGHT.soft, transform=figure.transFigure)  # fmt: skip
        figure.add_artist(arrow)
        figure.text(top.x1 + 0.09, (top.y0 + bottom.y1) / 2, text, fontsize=8.5, va="center",
                    color=LIGHT.soft)  # fmt: skip
    return figure


def strip(axes: Axes, values: NDArray[Any], kind: str) -> None:
    bits = kind == "bits"
    shades = ListedColormap([LIGHT.zero, LIGHT.one]) if bits else plt.get_cmap(kind, 15)
    limit = (0, 1) if bits else (-1, 1)
    axes.pcolormesh(
        values, cmap=shades, vmin=limit[0], vmax=limit[1], edgecolor=LIGHT.paper, lw=0.6
    )
    axes.set_axis_off()


def agreement(floats: NDArray[Any], words: list[str], codes: embits.BinaryVectors) -> Figure:
    """Cosine of the floats against the share of agreeing bits, for random and near pairs."""
    rng = np.random.default_rng(0)
    left = rng.integers(0, 20_000, 6000)
    unit = floats / np.linalg.norm(floats, axis=1, keepdims=True)
    near = codes.search(codes.codes[left[:2000]], k=30)[1]
    right = np.concatenate([near[np.arange(2000), rng.integers(1, 30, 2000)],
                            rng.integers(0, 20_000, 4000)])  # fmt: skip
    cosines = (unit[left] * unit[right]).sum(axis=1)
    shares = 1 - np.bitwise_count(codes.codes[left] ^ codes.codes[right]).sum(axis=1) / 256
    figure, axes = plt.subplots(figsize=(7, 3.8))
    shades = ListedColormap([to_rgba(LIGHT.grey, alpha) for alpha in (0.25, 0.45, 0.65, 0.9)])
    axes.hexbin(100 * shares, cosines, gridsize=(30, 17), bins="log", mincnt=1, cmap=shades, lw=0)
    own = words.index(WORD)
    for friend in FRIENDS:
        row = words.index(friend)
        share = 100 * codes.similarity(own, row)
        cosine = float(unit[own] @ unit[row])
        axes.plot([share], [cosine], "o", color=LIGHT.one, ms=7)
        axes.annotate(f"{WORD} – {friend}", (share, cosine), xytext=(10, -12), ha="left",
                      textcoords="offset points", color=LIGHT.one)  # fmt: skip
    axes.set_xlabel("bits that agree, % of 256")
    axes.set_ylabel("cosine of the floats")
    axes.grid(lw=0.6)
    axes.set_axisbelow(True)
    return figure


def step() -> Figure:
    """The step function has no slope; NearLossless uses the slope of a tanh instead."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 2.7))
    figure.subplots_adjust(wspace=0.25)
    z = np.linspace(-3, 3, 601)
    left.plot(z, np.where(z >= 0, 1, -1), color=LIGHT.one, lw=2.4)
    left.plot(z, np.tanh(z / 0.6), "--", color=LIGHT.blue, lw=1.6)
    left.set_title("forward pass: the step", fontsize=10)
    right.plot(z, np.zeros_like(z), color=LIGHT.one, lw=2.4)
    right.plot(z, (1 - np.tanh(z / 0.6) ** 2) / 0.6, "--", color=LIGHT.blue, lw=1.6)
    right.set_title("backward pass: the slope of a tanh", fontsize=10)
    left.annotate("bit", (1.4, 1), xytext=(0, -14), textcoords="offset points", color=LIGHT.one)
    left.annotate("tanh(z / 0.6 σ)", (-0.35, -0.5), xytext=(-8, 6), ha="right",
                  textcoords="offset points", color=LIGHT.blue)  # fmt: skip
    right.annotate("slope of the step: 0", (3, 0), xytext=(0, 12), textcoords="offset points",
                   color=LIGHT.one, ha="right")  # fmt: skip
    for axes in (left, right):
        axes.set_xlabel("score z of a bit, in standard deviations")
        axes.grid(lw=0.6)
    return figure


def bits_of(codes: NDArray[np.uint8], n_bits: int) -> NDArray[np.uint8]:
    return np.unpackbits(codes, axis=1, count=n_bits)


if __name__ == "__main__":
    main()
