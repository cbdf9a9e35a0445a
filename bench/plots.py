"""Curves of the benches from bench/results/*.json as bench/results/*.png.

usage: python bench/plots.py
"""

import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from bench.table import RESULTS, Result, results_of  # noqa: E402 - the folder above must be known first

ENGINES = ("local", "spark")
# name: pattern of results, field of x, its label, whether x is logarithmic
CURVES = {
    "shares": (
        r"p9-share-\d+-\w+",
        "share",
        "share of the objects that move in a round",
        False,
    ),
    "sizes": (
        r"p9-members-\d+-\w+",
        "members",
        "members of an answer, on average",
        True,
    ),
    "stationary": (r"stationary-\d+-\w+", "queries", "stationary queries", True),
    "neighbours": (r"knn-\d+-\w+", "k", "k", True),
}
RATES = {"rates": r"rate-\d+-\w+", "rates-moving": r"rate-moving-\d+-\w+"}


def main() -> None:
    """Draws every curve that has two points."""
    import matplotlib as mpl

    mpl.use("Agg")
    for name, (pattern, x, label, is_log) in CURVES.items():
        found = results_of(pattern)
        if len(found) > 1:
            _draw(
                RESULTS / f"{name}.png",
                label,
                _round_lines(found, x),
                is_log=is_log,
                y_label="seconds a round",
            )
    for name, pattern in RATES.items():
        found = results_of(pattern)
        if len(found) > 1:
            _draw(
                RESULTS / f"{name}.png",
                "fixes a second",
                _rate_lines(found),
                is_log=True,
                y_label="segment's arrival to commit, ms",
            )


def _round_lines(found: list[Result], x: str) -> dict[str, list[tuple[float, float]]]:
    lines = {}
    for engine in ENGINES:
        of = sorted(
            (one for one in found if one["engine"] == engine), key=lambda one: one[x]
        )
        for figure, name in (
            ("p50_s", "p50"),
            ("p95_s", "p95"),
            ("bare_s", "bare KD-tree, one core"),
        ):
            if of:
                lines[f"{engine}, {name}"] = [(one[x], one[figure]) for one in of]
    return lines


def _rate_lines(found: list[Result]) -> dict[str, list[tuple[float, float]]]:
    lines = {}
    for engine in ENGINES:
        of = sorted(
            (one for one in found if one["engine"] == engine),
            key=lambda one: one["rate"],
        )
        for p in (50, 95, 99):
            if of:
                lines[f"{engine}, p{p}"] = [
                    (one["rate"], one["segment"][f"p{p}_ms"]) for one in of
                ]
    return lines


def _draw(
    path: Path,
    x_label: str,
    lines: dict[str, list[tuple[float, float]]],
    *,
    is_log: bool,
    y_label: str,
) -> None:
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 4.0), dpi=120)
    style: dict[str, Any] = {"local": "-", "spark": "--"}
    for name, points in lines.items():
        axes.plot(
            *zip(*points, strict=True),
            style[name.split(",")[0]],
            marker="o",
            markersize=3,
            label=name,
        )
    if is_log:
        axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(visible=True, which="both", alpha=0.25)
    axes.legend(fontsize=7)
    figure.tight_layout()
    figure.savefig(path, metadata={"Software": None})
    plt.close(figure)


if __name__ == "__main__":
    main()
