"""Each figure of `make bench`, as small as it can be: that it runs, and that its counts are those of its oracle."""

import importlib
import json
import sys

import pytest

from bench.run import FIGURES

pytestmark = pytest.mark.e2e

FEW = ("--objects", "300", "--queries", "100", "--rounds", "3", "--warm", "1")
SMALL = {
    "rounds squares": (*FEW, "--cache-share", "0.75"),
    "rounds nearest": ("--kind", "nearest", *FEW, "--k", "3", "--divisor", "250"),
    "rounds stationary": ("--kind", "stationary", *FEW),
    "rounds circles": ("--kind", "circles", *FEW),
    "rounds fences": ("--kind", "fences", *FEW, "--divisor", "250"),
    "profile_round": FEW[:-2],
    "windows": ("--objects", "200", "--rounds", "4", "--warm", "1"),
    "windows range": (
        "--ask",
        "range",
        "--objects",
        "200",
        "--rounds",
        "4",
        "--warm",
        "1",
    ),
    "ticks q3": ("--what", "q3", "--queries", "5", "--objects", "50"),
    "ticks pairs": ("--what", "pairs", "--queries", "5", "--objects", "50"),
    "ticks joins": ("--what", "joins", "--queries", "5", "--objects", "50"),
    "guests": ("--queries", "50", "--shards", "4"),
    "placing": ("--queries", "5", "--objects", "50", "--rounds", "4"),
    "latency": (
        "--engine",
        "local",
        "--rate",
        "50",
        "--seconds",
        "2",
        "--warm-s",
        "1",
        "--queries",
        "50",
    ),
    "rate": ("--rate", "50", "--seconds", "2", "--warm-s", "1", "--queries", "50"),
    "throughput": (
        "--engine",
        "local",
        "--replays",
        "4",
        "--queries",
        "10",
        "--warm",
        "0",
        "--batch-mb",
        "1",
        "--segment-mb",
        "0.1",
    ),
    "by_script": ("--replays", "2", "--queries", "10", "--pairs", "1"),
    "scaling": ("--shards", "1,2", "--replays", "1", "--queries", "10"),
    "sharing": ("--queries", "5", "--objects", "50", "--forms", "pairs"),
    "berlinmod9": ("--vehicles", "5", "--each", "60"),
}


def test_each_program_of_make_bench_is_tried_here():
    programs = {program for program, *_ in FIGURES.values()}
    assert {name.split()[0] for name in SMALL} == programs


@pytest.mark.parametrize("figure", SMALL)
def test_a_figure_as_small_as_it_can_be_has_right_counts(
    figure, tmp_path, monkeypatch, capsys
):
    module = importlib.import_module(f"bench.{figure.split()[0]}")
    monkeypatch.setattr(sys, "argv", [figure, *SMALL[figure]])
    assert not module.main()
    assert json.loads(capsys.readouterr().out.strip().splitlines()[-1])
