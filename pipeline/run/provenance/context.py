"""What the steps of a trace have in common: the links behind the result, and the manifests of its
data sets.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline.foundation.artefacts import record as records
from pipeline.foundation.manifest import Manifest, SplitName
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.judge.systems.scores.system import System
from pipeline.make.training.artefact import HeadArtefact
from pipeline.run.provenance import references
from pipeline.run.provenance.walk import HEAD, Link, needed


@dataclass(frozen=True)
class Context:
    """A trace."""

    paths: Paths
    links: Sequence[Link]  # each artefact before those that it was made from
    dataset: str  # the data set of the result
    drawn: int  # how many images of each head are embedded again; 0 for none
    image: int | None  # the image that is traced; None for all
    batch_size: int  # images or captions that are embedded at once
    _manifests: dict[Path, Manifest] = field(default_factory=dict)

    def paths_of(self, *kinds: str) -> list[Path]:
        """List the artefacts of some kinds, without what a head was trained from and is no longer
        there.
        """
        return needed(self.links, *kinds)

    def links_to(self, path: Path) -> list[Link]:
        """List the links to an artefact."""
        return [link for link in self.links if link.path == path and link.is_needed]

    def inputs(self, path: Path) -> dict[str, Link]:
        """Look up what an artefact was made from: role -> link."""
        return {link.role: link for link in self.links if link.reader == path}

    def manifest(self, dataset: str) -> Manifest:
        """Load the manifest of a data set; its digest is computed from its rows."""
        path = self.paths.manifest(dataset)
        if path not in self._manifests:
            self._manifests[path] = Manifest.load(path, computed=True)
        return self._manifests[path]

    def identity(self, link: Link) -> str | None:
        """Compute what a reference to an artefact would say today; None if the artefact or its
        record is missing.
        """
        if not link.path.exists():
            return None
        try:
            if link.kind == "manifest":
                return self.manifest(link.path.stem).digest
            if link.kind == "photographs" and link.reader is not None:
                manifest = self.manifest(link.path.stem)
                splits = SplitName.of(("train", "val"))
                if link.read_by != HEAD:
                    splits = SplitName(System.open_either(link.reader).split or "")
                if not manifest.images_folder.is_dir():
                    return None
                return references.of_photographs(manifest, splits.parts).identity
            if link.kind == "features":
                if link.reader is None or link.read_by != HEAD:
                    return references.of_features(link.path).identity
                manifest = self.manifest(link.path.parent.name)
                return references.of_training(
                    HeadArtefact.open(link.reader), link.role, link.path, manifest
                )
            record = records.load(link.path)
            if record.kind != link.kind:
                return f"of a store of {record.kind}"
            return record.identity
        except InputError as error:
            return str(error)
        except (OSError, ValueError):
            return None
