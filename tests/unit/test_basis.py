"""The digest of what a start depends on changes with settings, packages and environment, and with nothing else."""

import os

import pytest

from st_common.operations.basis import basis_of, digest


@pytest.fixture
def conf(tmp_path):
    (tmp_path / "streams.toml").write_text("[streams.taxis]\n")
    (tmp_path / "deliveries.toml").write_text('secret_env = "HOOK_SECRET"\n')
    return tmp_path


def test_it_is_the_same_as_long_as_nothing_changed(conf, monkeypatch):
    before = basis_of(conf)
    monkeypatch.setenv("AIRFLOW_CTX_TRY", "2")
    (conf / "notes.txt").write_text("of a person")
    assert basis_of(conf) == before


@pytest.mark.parametrize(
    "file", ["streams.toml", "operations.toml"], ids=("changed", "new")
)
def test_a_file_of_settings_that_changed_changes_it(conf, file):
    before = basis_of(conf)
    (conf / file).write_text("# mended\n")
    assert basis_of(conf) != before


def test_a_variable_that_the_settings_name_counts_by_whether_it_is_set(
    conf, monkeypatch
):
    before = basis_of(conf)
    monkeypatch.setenv("HOOK_SECRET", "a")
    with_secret = basis_of(conf)
    monkeypatch.setenv("HOOK_SECRET", "b")
    assert before != with_secret == basis_of(conf)


def test_a_variable_that_programs_are_found_by_counts_by_its_value(conf, monkeypatch):
    monkeypatch.setenv("JAVA_HOME", "/here")
    before = basis_of(conf)
    monkeypatch.setenv("JAVA_HOME", "/there")
    assert basis_of(conf) != before


def test_a_package_that_is_installed_changes_it(conf, tmp_path, monkeypatch):
    packages = tmp_path / "site-packages"
    packages.mkdir()
    monkeypatch.setattr("sysconfig.get_path", lambda _name: str(packages))
    before = basis_of(conf)
    (packages / "spark-warehouse").mkdir()
    assert basis_of(conf) == before
    noted = packages / "pyspark-4.0.0.dist-info"
    noted.mkdir()
    with_it = basis_of(conf)
    assert with_it != before
    os.utime(noted, ns=(1, 1))
    assert basis_of(conf) != with_it, "installed anew"


def test_parts_do_not_run_into_each_other():
    assert digest("ab", "c") != digest("a", "bc")
