"""What a model's folder holds, against the library's own choice of its weights; and what is refused
by name before a library opens it.
"""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as hf
from safetensors.torch import load_file, save_file
from transformers import modeling_utils

from pipeline.foundation.files import model_folder, pretrained
from pipeline.foundation.parts.errors import InputError, InputWarning

POINTER = "version https://git-lfs.github.com/spec/v1\noid sha256:abc\nsize 605157884\n"
INDEX = json.dumps(
    {
        "metadata": {},
        "weight_map": {"a": "model-1-of-2.safetensors", "b": "model-2-of-2.safetensors"},
    }
)
BINS = json.dumps({"metadata": {}, "weight_map": {"a": "pytorch_model-1-of-1.bin"}})
SHARDS = {
    "model.safetensors.index.json": INDEX,
    "model-1-of-2.safetensors": "1",
    "model-2-of-2.safetensors": "2",
}
SINGLE = {"model.safetensors": "1"}
OLDER = {"pytorch_model.bin": "1"}
OLDER_SHARDS = {"pytorch_model.bin.index.json": BINS, "pytorch_model-1-of-1.bin": "1"}


def written(folder: Path, files: dict[str, str]) -> Path:
    """Write files; a content that begins with -> is a link's target."""
    for name, content in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        if content.startswith("->"):
            file.symlink_to(content[2:])
        else:
            file.write_text(content)
    return folder


def test_weights_are_those_that_the_library_chooses(tmp_path: Path) -> None:
    for number, files in enumerate(
        (SINGLE, SHARDS, OLDER, OLDER_SHARDS, SINGLE | OLDER, SHARDS | OLDER, SINGLE | OLDER_SHARDS)
    ):
        folder = written(tmp_path / str(number), files)
        chosen: Any = modeling_utils._get_resolved_checkpoint_files(
            str(folder), None, None, None, None, False, None, {"local_files_only": True}
        )[0]
        assert model_folder.weights_of(folder) == [Path(file) for file in chosen], files


REFUSED: dict[str, tuple[dict[str, str], str]] = {
    "an old file beside shards": (
        SINGLE | SHARDS,
        "holds two sets of weights, model.safetensors and the shards of model.safetensors.index.json",
    ),
    "two old files": (
        OLDER | OLDER_SHARDS,
        "two sets of weights, pytorch_model.bin and the shards of pytorch_model.bin.index.json",
    ),
    "shards of another saving": (
        SHARDS | {"model-1-of-3.safetensors": "1"},
        "two sets of weights, model.safetensors.index.json and model-1-of-3.safetensors",
    ),
    "a shard beside a file": (
        SINGLE | {"model-1-of-2.safetensors": "1"},
        "two sets of weights, model.safetensors and model-1-of-2.safetensors",
    ),
    "shards of a training": (
        SINGLE | {"shard-00001-model-00001-of-00001.safetensors": "1"},
        "holds shards of a training on several machines",
    ),
    "a lost shard": (
        {name: SHARDS[name] for name in list(SHARDS)[:2]},
        "model-2-of-2.safetensors: is missing; copy the whole folder again",
    ),
    "an index that leaves the folder": (
        {"model.safetensors.index.json": '{"weight_map": {"a": "../b.safetensors"}}'},
        "names no files of weights beside it",
    ),
    "an adapter alone": (
        {"adapter_config.json": '{"peft_type": "LORA", "base_model_name_or_path": "some/base"}'},
        "holds a LoRA adapter of some/base, which is not merged",
    ),
    "an adapter beside weights": (
        SINGLE | {"config.json": "{}", "adapter_config.json": '{"peft_type": "IA3"}'},
        "holds a IA3 adapter of None",
    ),
    "an adapter's weights": (
        SINGLE | {"adapter_model.safetensors": "1"},
        "holds adapter_model.safetensors, an adapter that is not merged",
    ),
    "quantised": (
        SINGLE | {"config.json": '{"quantization_config": {"quant_method": "fp8"}}'},
        r"its weights are quantised \(fp8\)",
    ),
    "other weights by the configuration": (
        SINGLE | {"config.json": '{"transformers_weights": "other.safetensors"}'},
        "names other weights, other.safetensors",
    ),
    "a pointer as weights": (
        {"model.safetensors": POINTER},
        "model.safetensors: is a pointer of Git LFS; fetch the file itself with git lfs pull",
    ),
    "a pointer as tokenizer": (
        SINGLE | {"tokenizer.json": POINTER},
        "tokenizer.json: is a pointer of",
    ),
    "a pointer as sentencepiece": (
        SINGLE | {"spiece.model": POINTER},
        "spiece.model: is a pointer of",
    ),
    "a pointer of annex": (
        SINGLE | {"config.json": "/annex/objects/SHA256E-s10--abc.json\n"},
        "config.json: is a pointer of git-annex; fetch the file itself with git annex get",
    ),
    "a link of annex": (
        {"model.safetensors": "->../.git/annex/objects/a/b/SHA256E-s1--c.safetensors/c"},
        "is a link of git-annex to a file that is not here; fetch it with git annex get",
    ),
    "a lost blob": ({"model.safetensors": "->../../blobs/abc"}, "which the hub's cache lost"),
    "a link to nothing": (
        SINGLE | {"merges.txt": "->/no/such"},
        "merges.txt: is a link to /no/such",
    ),
    "a module": (
        {"modules.json": '[{"path": "1_Dense"}]', "1_Dense/model.safetensors": POINTER},
        "1_Dense/model.safetensors: is a pointer of Git LFS",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_would_be_read_as_another_model_is_refused(tmp_path: Path, name: str) -> None:
    files, message = REFUSED[name]
    with pytest.raises(InputError, match=message) as refused:
        model_folder.check(written(tmp_path / "model", files))
    assert "\n" not in str(refused.value)


def test_what_is_not_read_may_be_a_pointer(tmp_path: Path) -> None:
    """Of a clone often only the safetensors are fetched."""
    folder = written(tmp_path, SINGLE | {"pytorch_model.bin": POINTER, "tf_model.h5": POINTER})
    model_folder.check(folder)
    assert model_folder.unread(folder, model_folder.weights_of(folder)) == []
    (folder / "pytorch_model.bin").write_text("1")
    assert model_folder.unread(folder, model_folder.weights_of(folder)) == ["pytorch_model.bin"]


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="no file that can be read"):
        model_folder.check(tmp_path)


def test_a_folder_of_the_hubs_cache_is_its_snapshot(tmp_path: Path) -> None:
    cached = written(tmp_path / "models--me--clip", {"snapshots/aaa/config.json": "{}"})
    inner = cached / "snapshots" / "aaa"
    assert [model_folder.snapshot(each) for each in (cached, inner.parent, inner)] == [inner] * 3
    written(cached, {"snapshots/bbb/config.json": "{}"})
    with pytest.raises(
        InputError, match=r"2 snapshots of a model; name one of them, such as .*/aaa"
    ):
        model_folder.snapshot(cached)
    written(cached, {"refs/main": "bbb"})
    assert model_folder.snapshot(cached) == cached / "snapshots" / "bbb"
    assert str(cached) in model_folder.instead(tmp_path)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A BERT that was trained further as a task's network, with its head."""
    folder = tmp_path_factory.mktemp("models") / "bert"
    config = hf.BertConfig(
        vocab_size=20,
        hidden_size=8,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=8,
        max_position_embeddings=16,
    )
    torch.manual_seed(0)
    hf.BertForMaskedLM(config).save_pretrained(folder)
    return folder


def read(folder: Path, **options: Any) -> Any:
    return pretrained.network(
        folder, hf.BertModel, pretrained.configuration(folder), optional=r"pooler\.", **options
    ).state_dict()


@pytest.mark.parametrize(
    "form",
    ["compiled", "data parallel", "sharded parallel", "torch", "below a key", "all of these"],
)
def test_what_wrappers_and_trainers_add_is_taken_off(bert: Path, tmp_path: Path, form: str) -> None:
    folder = shutil.copytree(bert, tmp_path / "model")
    state = {name: value.clone() for name, value in load_file(bert / "model.safetensors").items()}
    names = {
        "compiled": {name: f"_orig_mod.{name}" for name in state},
        "data parallel": {name: f"module.{name}" for name in state},
        "sharded parallel": {
            name: name.replace("encoder.", "encoder._fsdp_wrapped_module.") for name in state
        },
        "all of these": {name: f"module._orig_mod.{name}" for name in state},
    }.get(form, {name: name for name in state})
    changed = {names[name]: value for name, value in state.items()}
    if form in ("torch", "below a key", "all of these"):
        (folder / "model.safetensors").unlink()
        whole = changed if form == "torch" else {"epoch": 3, "model_state_dict": changed}
        torch.save(whole, folder / "pytorch_model.bin")
    else:
        save_file(changed, folder / "model.safetensors")
    expected = hf.BertModel.from_pretrained(bert).state_dict()
    for name, value in read(folder, pickled=True).items():
        if not name.startswith("pooler"):
            assert torch.equal(value, expected[name]), name


@pytest.mark.slow
def test_other_weights_than_those_of_its_configuration_are_refused(
    bert: Path, tmp_path: Path
) -> None:
    state = {name: value.clone() for name, value in load_file(bert / "model.safetensors").items()}
    query = "bert.encoder.layer.0.attention.self.query"
    for number, (change, layers, message) in enumerate(
        (
            (
                {},
                1,
                r"hold 16 tensors for which its config.json has no place, such as bert.encoder.layer.1",
            ),
            (
                {f"{query}.lora_A.weight": torch.ones(2, 8)},
                2,
                "holds an adapter beside the weights",
            ),
            (
                {f"{query}.base_layer.weight": torch.ones(8, 8)},
                2,
                "holds an adapter beside the weights",
            ),
            (
                {f"{query}.scale": torch.ones(8)},
                2,
                r"hold 1 tensor for which its .*self\.query\.scale",
            ),
            ({f"{query}.weight": torch.ones(8, 8, dtype=torch.int8)}, 2, "is stored as i8"),
            (
                {f"{query}.weight": torch.ones(8, 8).to(torch.float8_e5m2)},
                2,
                "is stored as f8_e5m2",
            ),
        )
    ):
        folder = shutil.copytree(bert, tmp_path / str(number))
        save_file(state | change, folder / "model.safetensors")
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"num_hidden_layers": layers}))
        with pytest.raises(InputError, match=message):
            read(folder)
    read(bert)  # its head for words is no part of a BERT's network


def test_a_wrapper_of_no_known_kind_is_named(bert: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(bert, tmp_path / "model")
    state = load_file(bert / "model.safetensors")
    (folder / "model.safetensors").unlink()
    save_file(
        {f"student.{name}": each for name, each in state.items()}, folder / "model.safetensors"
    )
    with pytest.raises(InputError, match=r"its names begin with student\.: save the network"):
        read(folder)


def test_weights_of_another_form_beside_those_that_are_read_are_named(
    bert: Path, tmp_path: Path
) -> None:
    folder = shutil.copytree(bert, tmp_path / "model")
    torch.save({}, folder / "pytorch_model.bin")
    with pytest.warns(
        InputWarning,
        match=r"model\.safetensors is read, as the library does it, and not pytorch_model\.bin",
    ):
        read(folder)


def test_what_a_library_warns_of_is_judged(tmp_path: Path) -> None:
    logger = hf.utils.logging.get_logger("transformers.models")

    def said(message: str) -> str:
        return str(
            pretrained.reading(tmp_path, "network", lambda: logger.warning(message) or "read")
        )

    assert said("`torch_dtype` is deprecated! Use `dtype` instead!") == "read"
    with pytest.warns(InputWarning, match="its library says: made with a newer version"):
        said("made with a newer version")
    for loss in (
        "Ignoring unrecognized key(s) ['a']",
        "x is not trusted, falling back to Tanh. Please",
    ):
        with pytest.raises(InputError, match="its library would not use all that it says"):
            said(loss)
