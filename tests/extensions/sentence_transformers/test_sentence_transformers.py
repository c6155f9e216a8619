"""Models of sentence-transformers against the library's own `encode`, and what is refused."""

from __future__ import annotations

import json
import shutil
import socket
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_bert
import torch
from PIL import Image
from safetensors.torch import load_file, save_file
from sentence_transformers import MultiVectorEncoder, SentenceTransformer
from sentence_transformers.base.modules import Dense, Normalize
from tiny_dual_encoders import LIMIT, colpali, sentence_transformers, shorten, widen

from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.judge.systems.scores.foreign import open_system
from pipeline.judge.systems.scores.judged import Columns
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders import per_token, record
from pipeline.make.dual_encoders.base import Usage

pytestmark = pytest.mark.slow

CAPTIONS = ["red", "The Blue", "a dog"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sentence_transformers(tmp_path_factory.mktemp("models") / "st")


def pictures() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    return [
        Image.fromarray(generator.integers(0, 256, (height, width, 3), np.uint8))
        for height, width in ((40, 70), (64, 32))
    ]


def load(folder: Path, **usage: Any) -> Any:
    return dual_encoders.load(f"st:{folder}", Usage(**usage))


@pytest.mark.specification
@pytest.mark.parametrize(
    "said",
    [
        {},
        {"modules": [Normalize()], "truncate_dim": 5},
        {"prompts": {"query": "see "}, "default_prompt_name": "query"},
    ],
)
def test_vectors_are_those_of_encode(tmp_path: Path, said: dict[str, Any]) -> None:
    """Of the library's own vectors, cut at truncate_dim, ours are the directions: it does not
    normalise them again.
    """
    folder = sentence_transformers(tmp_path / "st", **said)
    library, encoder = (
        SentenceTransformer(str(folder), device="cpu", local_files_only=True),
        load(folder),
    )
    images = encoder.embed_images([encoder.prepare(picture) for picture in pictures()])
    captions = encoder.embed_captions(CAPTIONS)
    for vectors, inputs in ((images, pictures()), (captions, CAPTIONS)):
        own = library.encode(inputs)
        np.testing.assert_allclose(
            vectors, library.encode(inputs, normalize_embeddings=True), atol=1e-6
        )
        np.testing.assert_allclose(
            vectors, own / np.linalg.norm(own, axis=1, keepdims=True), atol=1e-6
        )
    assert images.shape == (2, said.get("truncate_dim", 8))
    assert np.abs(images[0] - images[1]).max() > 1e-3
    facts = record.described(f"st:{folder}", encoder, None)
    assert facts["facts"] == {
        "prompts": said.get("prompts", {}),
        "similarity": "cosine",
        "default_prompt_name": said.get("default_prompt_name"),
        "truncate_dim": said.get("truncate_dim"),
    }
    assert (facts["token_limit"], facts["activation"]["image"]) == (LIMIT, "quick_gelu")


def test_a_prompt_of_the_usage_takes_the_place_of_the_models(tmp_path: Path) -> None:
    folder = sentence_transformers(
        tmp_path / "st", prompts={"query": "see "}, default_prompt_name="query"
    )
    library = SentenceTransformer(str(folder), device="cpu", local_files_only=True)
    found = load(folder, prompt="on {}").embed_captions(CAPTIONS)
    np.testing.assert_allclose(
        found, library.encode(CAPTIONS, prompt="on ", normalize_embeddings=True), atol=1e-6
    )
    assert load(folder).tokens(["red"]) == load(folder, prompt="see {}").tokens(["red"])


def test_no_caption_is_opened_or_fetched(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`encode` takes such strings for images: it opens the file, and fetches the address even when
    it is offline.
    """
    monkeypatch.chdir(tmp_path)
    pictures()[0].save("a.png")
    captions = [
        "a.png",
        "http://a.de/b.png",
        "https://a.b/c.jpg?x=1",
        "data:image/png;base64,aaaa",
        "red",
    ]

    def closed(*given: Any, **options: Any) -> Any:
        raise AssertionError("a socket is opened")

    monkeypatch.setattr(socket, "socket", closed)
    monkeypatch.setattr(socket, "create_connection", closed)
    encoder = load(folder)
    alone = [encoder.embed_captions([caption])[0] for caption in captions]
    np.testing.assert_allclose(encoder.embed_captions(captions), alone, atol=1e-6)
    assert encoder.is_cut(captions) == [False, True, True, True, False]
    with pytest.raises(AssertionError, match="a socket is opened"):  # so that this test can fail
        SentenceTransformer(str(folder), device="cpu", local_files_only=True).encode(captions[1:2])


def test_it_is_used_as_asked(folder: Path) -> None:
    wide = Image.new("RGB", (96, 32), "white")
    wide.paste("black", (32, 0, 64, 32))
    own, squashed, smooth = (
        load(folder, **usage)
        for usage in (
            {},
            {"preprocessing": "squash"},
            {"interpolation": "bilinear", "token_limit": 5, "precision": "bf16"},
        )
    )
    vectors = [encoder.embed_images([encoder.prepare(wide)]) for encoder in (own, squashed, smooth)]
    assert np.abs(vectors[0] - vectors[1]).max() > 1e-3
    assert (squashed.preprocessing["do_center_crop"], smooth.preprocessing["resample"]) == (
        False,
        2,
    )
    assert (own.is_cut(["abcde"]), smooth.is_cut(["abcde"]), smooth.is_cut(["abc"])) == (
        [False],
        [True],
        [False],
    )
    assert smooth.usage.recorded == {
        "prompt": "{}",
        "preprocessing": "own",
        "precision": "bf16",
        "interpolation": "bilinear",
        "token_limit": 5,
    }
    np.testing.assert_array_equal(*smooth.embed_captions(["abcx", "abcy"]))


def test_another_similarity_is_noted_and_recorded(tmp_path: Path) -> None:
    with pytest.warns(InputWarning, match="its similarity is 'dot'.* compared by the cosine"):
        encoder = load(sentence_transformers(tmp_path / "st", similarity_fn_name="dot"))
    assert encoder.facts["similarity"] == "dot"


def change(folder: Path, file: str, **said: Any) -> None:
    content = json.loads((folder / file).read_text())
    (content[0] if isinstance(content, list) else content).update(said)
    (folder / file).write_text(json.dumps(content))


@pytest.mark.parametrize(
    ("file", "said", "message"),
    [
        (
            "modules.json",
            {"type": "own.Module"},
            "its module own.Module is no part of sentence-transformers",
        ),
        (
            "modules.json",
            {"type": "sentence_transformers_own.Module"},
            "is no part of sentence-transformers",
        ),
        (
            "modules.json",
            {"type": "sentence_transformers.util.http_get"},
            "no network that can be read",
        ),
        ("modules.json", {"path": "../other"}, "other: is missing, which modules.json names"),
        (
            "config.json",
            {"auto_map": {"AutoModel": "own.Own"}},
            r"asks for code of its own \(auto_map\)",
        ),
        (
            "sentence_bert_config.json",
            {"model_kwargs": {"trust_remote_code": True}},
            r"\(trust_remote_code\), which",
        ),
        (
            "config_sentence_transformers.json",
            {"model_type": "CrossEncoder"},
            "is a CrossEncoder; expected a",
        ),
    ],
)
def test_code_and_other_models_are_refused(
    tmp_path: Path, file: str, said: dict[str, Any], message: str
) -> None:
    folder = sentence_transformers(tmp_path / "st")
    (folder / "own.py").write_text("raise SystemExit('ran')\n")
    change(folder, file, **said)
    with pytest.raises(InputError, match=message) as refused:
        load(folder)
    assert "\n" not in str(refused.value)


def test_code_is_found_however_its_key_is_written_and_wherever(tmp_path: Path) -> None:
    nested = sentence_transformers(tmp_path / "st") / "1_Pooling" / "inner" / "config.json"
    nested.parent.mkdir(parents=True, exist_ok=True)
    for text, message in (
        (r'{"auto\u005fmap": {"AutoModel": "own.Own"}}', r"inner/config.json: .*\(auto_map\)"),
        ('[{"a": {"trust_remote_code"\n: 1}}]', r"inner/config.json: .*\(trust_remote_code\)"),
    ):
        nested.write_text(text)
        with pytest.raises(InputError, match=message):
            load(tmp_path / "st")
    # Text that only mentions such a key, or one without a value, asks for nothing.
    nested.write_text(
        json.dumps({"prompt": '"auto_map": {}', "auto_map": {}, "trust_remote_code": False})
    )
    load(tmp_path / "st")


def test_weights_of_which_some_would_be_random_are_refused(folder: Path, tmp_path: Path) -> None:
    for change, message in (
        (shorten, "its weights lack 1 of the tensors"),
        (widen, "are of another model than its"),
    ):
        changed = shutil.copytree(folder, tmp_path / change.__name__)
        change(changed)
        with pytest.raises(InputError, match=message):
            load(changed)
    load(folder)


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"activation_function": "own.Act"}, r"falling back to the default activation .*\(Tanh\)"),
        ({"temperature": 3}, r"Ignoring unrecognized Dense config key\(s\) \['temperature'\]"),
    ],
)
def test_a_part_that_the_library_leaves_out_is_refused(
    tmp_path: Path, said: dict[str, Any], message: str
) -> None:
    """It warns, and gives vectors of another model."""
    folder = sentence_transformers(tmp_path / "st", modules=[Dense(8, 6)])
    change(folder, "1_Dense/config.json", **said)
    with pytest.raises(InputError, match=f"would not use all that it says: .*{message}"):
        load(folder)


def test_tokenizers_and_modules_of_another_model_are_refused(folder: Path, tmp_path: Path) -> None:
    """The library builds an empty tokenizer, and takes whole numbers for weights."""
    changed = shutil.copytree(folder, tmp_path / "st")
    (changed / "tokenizer.json").unlink()
    with pytest.raises(InputError, match="a tokenizer of 0 word pieces for a network of 54"):
        load(changed)
    changed = sentence_transformers(tmp_path / "dense", modules=[Dense(8, 6)])
    file = changed / "1_Dense" / "model.safetensors"
    numbers = {name: value.to(torch.int8) for name, value in load_file(file).items()}
    save_file(numbers, file)
    with pytest.raises(
        InputError, match=r"1_Dense/model\.safetensors: 'linear\.weight' is stored as i8"
    ):
        load(changed)


def test_modules_that_the_library_cannot_read_are_named(tmp_path: Path) -> None:
    changed = sentence_transformers(tmp_path / "dense", modules=[Dense(8, 6)])
    file = changed / "1_Dense" / "model.safetensors"
    tensors = load_file(file)
    for prefix in ("_orig_mod.", "module."):
        save_file({f"{prefix}{name}": value for name, value in tensors.items()}, file)
        with pytest.raises(InputError, match=rf"1_Dense/.*'{prefix}linear.* name of a wrapper"):
            load(changed)
    shutil.rmtree(changed / "1_Dense")
    with pytest.raises(InputError, match=r"1_Dense: is missing, which modules\.json names for"):
        load(changed)


def test_what_is_no_folder_of_a_model_is_named(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copytree(folder, tmp_path / "run" / "final")
    for place, said in (
        ("empty", "has no modules.json; .*; the folder is empty"),
        ("run", "has no modules.json; .*; did you mean .*/run/final"),
        ("missing", "there is no such folder or file"),
        ("run/final/model.safetensors", "is a file; name its folder, .*/run/final"),
    ):
        with pytest.raises(InputError, match=said):
            dual_encoders.check(f"st:{tmp_path / place}")


def test_a_model_of_text_alone_is_refused(tmp_path: Path) -> None:
    tiny_bert.tiny_bert(tmp_path / "bert")
    with pytest.raises(InputError, match="embeds text alone; expected a model of images and texts"):
        load(tmp_path / "bert")


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    folder = sentence_transformers(tmp_path / "st")
    content = (folder / "model.safetensors").read_bytes()
    (folder / "model.safetensors").write_bytes(content[:-100])
    with pytest.raises(InputError, match=r"model\.safetensors: not readable as weights"):
        load(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("error", InputWarning)
        (folder / "model.safetensors").write_bytes(content)
        load(folder)


def test_padding_is_no_item_that_a_word_may_fit_best() -> None:
    images = np.array([[[-1, 0], [0, 0]], [[-1, 0], [0.5, 1]]], np.float32)
    captions = np.array([[[1, 0], [0, 0]], [[1, 0], [0, 1]]], np.float32)
    sums = per_token._compared(images, captions, "maxsim")
    assert sums.tolist() == [[-1, -1], [0.5, 1.5]]
    means = per_token._compared(images, captions, "meanmaxsim")
    assert means.tolist() == [[-1, -0.5], [0.5, 0.75]]


@pytest.mark.parametrize("similarity", ["maxsim", "meanmaxsim"])
def test_a_vector_for_every_token_is_compared_by_late_interaction(
    tmp_path: Path, similarity: str
) -> None:
    folder = colpali(tmp_path / "colpali")
    change(folder, "config_sentence_transformers.json", similarity_fn_name=similarity)
    library = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True)
    encoder = dual_encoders.load(f"st:{folder}", Usage(), per_token=True)
    (tmp_path / "images").mkdir()
    for number, picture in enumerate(pictures()):
        picture.save(tmp_path / "images" / f"{number}.png")
    captions = ["red", "a dog", "the blue one"]
    (tmp_path / "captions.csv").write_text(
        "image,caption\n"
        + "".join(
            f"{number}.png,{caption}\n" for number, caption in zip((0, 0, 1), captions, strict=True)
        )
    )
    queries = library.encode_query([{"text": caption} for caption in captions])
    documents = library.encode_document(pictures())
    for found, own in (
        (encoder.embed_captions(captions), queries),
        (encoder.embed_images([encoder.prepare(picture) for picture in pictures()]), documents),
    ):
        for vectors, expected in zip(found, own, strict=True):
            np.testing.assert_allclose(vectors[: len(expected)], expected, atol=1e-6)
            assert not vectors[len(expected) :].any()
    columns = Columns(images=tmp_path / "images", captions=tmp_path / "captions.csv")
    system = open_system(f"st:{folder}", columns)
    np.testing.assert_allclose(
        system.scores.block(slice(0, 2), slice(0, 3)),
        library.similarity(queries, documents).T,
        rtol=1e-6,
    )
    (tmp_path / "captions.csv").write_text(f"image,caption\n0.png,{'red ' * 100}\n1.png,a dog\n")
    with pytest.warns(InputWarning, match=r"1 of 2 captions \(50.0 %\) are longer than \d+ tokens"):
        open_system(f"st:{folder}", columns)
    with pytest.raises(
        InputError, match="has a vector for every token, and none of a whole image; `pipeline"
    ):
        load(folder)
