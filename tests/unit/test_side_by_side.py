"""Tests of a group share a process: of their set-up there is one, and of Spark one session."""

import os

import pytest


@pytest.mark.xdist_group("looked-at")
def test_processes_side_by_side_know_groups(request):
    """By their names, as pytest-xdist has it: a version of pytest that it does not know lost them in silence."""
    is_one_of_many = "PYTEST_XDIST_WORKER" in os.environ
    assert request.node.nodeid.endswith("@looked-at") == is_one_of_many
