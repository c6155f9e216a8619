"""Checkpoints of the Hugging Face hub are taken at the commit that their card names."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import huggingface_hub
import pytest
import timm
import torch
from safetensors.torch import save_model

from pipeline.foundation.files import remembered, weights
from pipeline.foundation.files.digest import sha256
from pipeline.foundation.parts.errors import InputError
from pipeline.make.features.extractors.network import Network
from pipeline.make.features.extractors.runtime import Runtime
from pipeline.make.features.extractors.tower import _origin

CLIP = weights.checkpoints()["clip-b32"]
TINY = "test_vit.r160_in1k"


def cached(cache: Path, repository: str, commit: str) -> Path:
    """A commit of a repository as the hub's client caches it, and its newest."""
    repository_folder = cache / f"models--{repository.replace('/', '--')}"
    snapshot = repository_folder / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (repository_folder / "refs").mkdir(exist_ok=True)
    (repository_folder / "refs/main").write_text(commit)
    (snapshot / "config.json").write_text("{}")
    return snapshot


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of the hub, on a machine without network."""

    def offline(*_: Any, **__: Any) -> None:
        raise ConnectionError("no network")

    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", offline)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", offline)
    return tmp_path


def test_a_known_checkpoint_is_taken_at_its_commit_and_another_at_its_newest(cache: Path) -> None:
    assert CLIP.hub is not None
    assert CLIP.revision is not None
    pinned = cached(cache, CLIP.hub, CLIP.revision)
    cached(cache, CLIP.hub, "a" * 40)
    newest = cached(cache, "somebody/else", "b" * 40)
    assert weights.folder(CLIP.hub, "encoder", "name it") == pinned
    assert weights.folder("somebody/else", "encoder", "name it") == newest


def test_weights_that_are_no_safetensors_are_fetched_instead_where_that_is_said(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of CLIP ViT-B/32, whose commit has pytorch_model.bin alone."""
    assert CLIP.hub is not None
    assert CLIP.revision is not None
    here = cached(cache, CLIP.hub, CLIP.revision)
    card = CLIP.model_copy(update={"sha256": None})
    monkeypatch.setattr(weights, "checkpoints", lambda: {"clip-b32": card})
    asked: list[list[str]] = []

    def fetch(name: str, *, allow_patterns: list[str], local_files_only: bool, **_: Any) -> str:
        if not local_files_only:
            asked.append(allow_patterns)
            if "pytorch_model*.bin" in allow_patterns:
                (here / "pytorch_model.bin").write_text("weights")
        return str(here)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", fetch)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", lambda *_, **__: None)
    for _ in range(2):  # the second time all is there
        assert (
            weights.folder(
                CLIP.hub,
                "encoder",
                "name it",
                ["*.json", "model*.safetensors"],
                "pytorch_model*.bin",
            )
            == here
        )
        assert asked == [
            ["*.json", "model*.safetensors"],
            ["*.json", "model*.safetensors", "pytorch_model*.bin"],
        ]


@pytest.mark.specification
@pytest.mark.parametrize("file", ["model.safetensors", "pytorch_model.bin"])
def test_weights_of_the_hub_with_other_bytes_are_refused(
    cache: Path, monkeypatch: pytest.MonkeyPatch, file: str
) -> None:
    assert CLIP.hub is not None
    assert CLIP.revision is not None
    here = cached(cache, CLIP.hub, CLIP.revision)
    (here / file).write_text("others")
    with pytest.raises(
        InputError, match=f"{file} has another sha256 than {CLIP.sha256}; remove it"
    ):
        weights.folder(CLIP.hub, "encoder", "name it", instead="pytorch_model*.bin")
    card = CLIP.model_copy(update={"sha256": sha256(here / file)})
    monkeypatch.setattr(weights, "checkpoints", lambda: {"clip-b32": card})
    assert weights.folder(CLIP.hub, "encoder", "name it", instead="pytorch_model*.bin") == here


def test_weights_are_digested_once_a_process_and_again_where_they_changed(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bert = weights.checkpoints()["bert-base-uncased"]
    assert bert.hub is not None
    assert bert.revision is not None
    file = cached(cache, bert.hub, bert.revision) / "model.safetensors"
    file.write_text("weights")
    right, digested = sha256(file), list[Path]()
    card = bert.model_copy(update={"sha256": right})
    monkeypatch.setattr(weights, "checkpoints", lambda: {"bert-base-uncased": card})
    monkeypatch.setattr(remembered, "SETTLED", -(10**12))  # as if the file were old
    monkeypatch.setattr(remembered, "sha256", lambda path: digested.append(path) or sha256(path))
    for _ in range(2):
        here = weights.folder(bert.hub, "BERT", "name it")
        assert _origin(bert.hub, here) == {"hub": bert.hub, "sha256": right}
    assert digested == [file]
    file.write_text("other")
    with pytest.raises(InputError, match="has another sha256"):
        weights.folder(bert.hub, "BERT", "name it")


def test_bert_is_taken_at_its_commit_by_either_of_its_names(cache: Path) -> None:
    bert = weights.checkpoints()["bert-base-uncased"]
    assert bert.revision is not None
    for name in ("bert-base-uncased", "google-bert/bert-base-uncased"):
        pinned = cached(cache, name, bert.revision)
        cached(cache, name, "a" * 40)
        assert weights.folder(name, "BERT", "name it") == pinned


def test_another_commit_of_it_is_not_taken_and_the_message_names_the_right_one(cache: Path) -> None:
    assert CLIP.hub is not None
    cached(cache, CLIP.hub, "a" * 40)
    with pytest.raises(
        InputError, match=f"`hf download {CLIP.hub} --revision {CLIP.revision}`, and name it"
    ):
        weights.folder(CLIP.hub, "encoder", "name it")


@pytest.fixture
def tiny(cache: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cached file of a card of timm, with the right bytes and at its commit; beside it another
    commit.
    """
    (cached(cache, f"timm/{TINY}", "a" * 40) / weights.TIMM_FILE).touch()
    file = cached(cache, f"timm/{TINY}", "b" * 40) / weights.TIMM_FILE
    save_model(timm.create_model("test_vit"), str(file))
    card = weights.checkpoints()["vit-base-patch16-224"].model_copy(
        update={"timm": TINY, "revision": "b" * 40, "sha256": sha256(file)}
    )
    monkeypatch.setattr(weights, "checkpoints", lambda: {"tiny": card})
    return file


def build() -> Network:
    return Network(TINY, "tiny", Runtime())


def test_weights_of_timm_are_taken_at_the_commit_of_their_card(tiny: Path) -> None:
    weights.require("tiny")
    assert torch.equal(build().model.state_dict()["norm.weight"], weights.read(tiny)["norm.weight"])
    tiny.unlink()
    tiny.with_name("pytorch_model.bin").touch()  # of which no card has the digest
    for use in (build, lambda: weights.require("tiny")):
        with pytest.raises(InputError, match="are not here"):
            use()


def test_weights_of_timm_with_other_bytes_are_refused(tiny: Path) -> None:
    torch.manual_seed(5)
    save_model(timm.create_model("test_vit"), str(tiny))
    for use in (build, lambda: weights.require("tiny")):
        with pytest.raises(InputError, match="has another sha256 than"):
            use()


def test_weights_of_timm_are_downloaded_and_checked(
    tiny: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = tiny.read_bytes()
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", lambda *_, **__: None)
    for content, said in ((right, None), (b"other", "another sha256"), (None, "are not here")):

        def download(
            repository: str, file: str, revision: str, content: bytes | None = content
        ) -> None:
            assert (repository, file, revision) == (f"timm/{TINY}", weights.TIMM_FILE, "b" * 40)
            if content is None:
                raise ValueError("broken off")
            tiny.write_bytes(content)

        tiny.unlink(missing_ok=True)
        monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
        with pytest.raises(InputError, match=said) if said else nullcontext():
            build()


PAGE = (Path(__file__).parents[2] / "docs/weights.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", weights.checkpoints())
def test_a_card_has_a_digest_or_says_why_not_and_so_does_the_page(name: str) -> None:
    known = weights.checkpoints()[name]
    assert (known.sha256 is None) == (known.unchecked is not None)
    assert (f"`{name}`" in PAGE.partition("## What is not checked")[2]) == (known.sha256 is None)


def test_a_digest_is_over_the_names_shapes_kinds_and_values_of_all_tensors() -> None:
    torch.manual_seed(0)
    first, second = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    network = torch.nn.Sequential(first, second)
    digest = weights.digest(network)
    alike = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 2))
    alike.load_state_dict(network.state_dict())
    assert weights.digest(alike) == digest
    others: list[torch.nn.Module] = [
        torch.nn.Sequential(second, first),
        torch.nn.ModuleDict({"a": first, "b": second}),
        torch.nn.Sequential(first),
        alike.half(),
    ]
    for shape in ((4, 1), (1, 4)):
        reshaped = torch.nn.Linear(1, 1, bias=False)
        reshaped.weight = torch.nn.Parameter(first.weight.detach().reshape(shape))
        others.append(reshaped)
    assert len({digest, *map(weights.digest, others)}) == 1 + len(others)


def test_a_checkpoints_content_is_all_files_that_are_read_also_of_its_modules(
    tmp_path: Path,
) -> None:
    files = (
        "config.json",
        "model.safetensors",
        "1_Pooling/config.json",
        "2_Dense/model.safetensors",
    )
    for name in (*files, "README.md"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("{}")
    contents = [weights.content(tmp_path)]
    (tmp_path / "README.md").write_text("more")
    assert weights.content(tmp_path) == contents[0]
    for name in files:
        (tmp_path / name).write_text('{"a": 1}')
        contents.append(weights.content(tmp_path))
    assert len({*contents}) == 1 + len(files)
