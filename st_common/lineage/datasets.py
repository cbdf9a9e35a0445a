"""Tables, logs and files as datasets of OpenLineage.

HOME/tables/positions/taxis    namespace file, name its absolute path; facets: its columns by the data contract, then
                               attributes of the stream; the version that was read or written; what checks said
HOME/streams/taxis/log         namespace file, name its absolute path
"""

from collections.abc import Iterator
from pathlib import Path

from openlineage.client.event_v2 import InputDataset, OutputDataset
from openlineage.client.facet_v2 import (
    DatasetFacet,
    data_quality_assertions_dataset,
    dataset_version_dataset,
    schema_dataset,
)
from openlineage.client.naming.dataset import LocalFileSystem

from st_common import tables
from st_common.config.home import Home
from st_common.contracts import contract_names, load_contract
from st_common.contracts.kinds import kind_of
from st_common.observed import Observed, Verdict


def inputs_of(home: Home, seen: Observed) -> list[InputDataset]:
    """What was read, by name; a table that was checked has what the checks said."""
    paths = {**dict.fromkeys(seen.verdicts), **seen.reads}
    datasets = []
    for path, version in sorted(paths.items()):
        namespace, name = _named(path)
        one = InputDataset(namespace, name, facets=_facets(home, path, version))
        verdicts = seen.verdicts.get(path, ())
        if verdicts:
            one.inputFacets = {"dataQualityAssertions": _assertions(verdicts)}
        datasets.append(one)
    return datasets


def outputs_of(home: Home, seen: Observed) -> list[OutputDataset]:
    """What was written, by name."""
    return [
        OutputDataset(*_named(path), facets=_facets(home, path, version))
        for path, version in sorted(seen.writes.items())
    ]


def _named(path: Path) -> tuple[str, str]:
    naming = LocalFileSystem(str(path.resolve()))
    return naming.get_namespace(), naming.get_name()


def _facets(home: Home, path: Path, version: int | None) -> dict[str, DatasetFacet]:
    facets: dict[str, DatasetFacet] = {}
    fields = list(_fields(home, path))
    if fields:
        facets["schema"] = schema_dataset.SchemaDatasetFacet(fields=fields)
    if version is not None:
        facets["version"] = dataset_version_dataset.DatasetVersionDatasetFacet(
            str(version)
        )
    return facets


def _fields(
    home: Home, path: Path
) -> Iterator[schema_dataset.SchemaDatasetFacetFields]:
    """The columns of a table that has a contract: those that it promises, then a stream's attributes."""
    name = _contract_of(home, path)
    if name is None:
        return
    columns = load_contract(name).columns
    for column in columns:
        yield schema_dataset.SchemaDatasetFacetFields(
            name=column.name, type=column.type, description=column.description or None
        )
    promised = {column.name for column in columns}
    stored = tables.schema(path)
    for field in stored or ():
        if field.name not in promised:
            kind = kind_of(field.type) or str(field.type)
            yield schema_dataset.SchemaDatasetFacetFields(name=field.name, type=kind)


def _contract_of(home: Home, path: Path) -> str | None:
    """The contract of a table of the home: `positions` of HOME/tables/positions/taxis; None for all else."""
    folder = (home.root / "tables").resolve()
    if not path.resolve().is_relative_to(folder):
        return None
    name = path.resolve().relative_to(folder).parts[0]
    return name if name in contract_names() else None


def _assertions(
    verdicts: tuple[Verdict, ...],
) -> data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet:
    return data_quality_assertions_dataset.DataQualityAssertionsDatasetFacet(
        assertions=[
            data_quality_assertions_dataset.Assertion(
                assertion=each.rule, success=each.passed, severity=each.severity
            )
            for each in verdicts
        ]
    )
