"""Every class of dual encoder against the library's own features: preprocessing, padding, limits,
refusals.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import invented_facts
import numpy as np
import packed
import pytest
import torch
import transformers as hf
from PIL import Image
from resizes import Resizes
from tiny_dual_encoders import FOLDERS, LIMIT, SIDE, shorten, vision_text, widen

from pipeline.foundation.compute.tasks import InProcess
from pipeline.foundation.files.digest import digest
from pipeline.foundation.manifest import Manifest
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.make import dual_encoders
from pipeline.make.dual_encoders import DUAL_ENCODERS, base, embedding, places, record
from pipeline.make.dual_encoders.base import Usage

pytestmark = pytest.mark.slow

CAPTIONS = ["a red circle", "The Blue square, left of it", "green"]
LONG = " ".join(["large yellow triangle"] * 10)
MODELS = {**FOLDERS, "vision_text": ("vision_text", vision_text)}


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        name: make(tmp_path_factory.mktemp("models") / name) for name, (_, make) in MODELS.items()
    }


def load(folders: dict[str, Path], name: str, **usage: Any) -> Any:
    return dual_encoders.load(f"{MODELS[name][0]}:{folders[name]}", Usage(**usage))


def pictures() -> list[Image.Image]:
    generator = np.random.default_rng(0)
    return [
        Image.fromarray(generator.integers(0, 256, (height, width, 3), np.uint8))
        for height, width in ((40, 70), (64, 32), (33, 33))
    ]


def unit(output: Any) -> np.ndarray:
    vectors = getattr(output, "pooler_output", output)
    return (vectors / vectors.norm(dim=-1, keepdim=True)).numpy()


@pytest.mark.parametrize("pack", [packed.tars, packed.parquets])
def test_images_in_tars_and_parquet_give_the_vectors_of_files(
    folders: dict[str, Path], scenes: Manifest, tmp_path: Path, pack: Any
) -> None:
    encoder, usage = load(folders, "clip"), Usage()
    found = []
    for each in (scenes, pack(scenes, tmp_path / "packed")):
        job = embedding.Job("clip", usage, each, each.images_folder, [each.split("test")], 4)
        (part,) = each.split("test").pieces(embedding.AT_ONCE)
        found.append(embedding.embed_part(encoder, job.files(part), part.captions, 4))
    for here, there in zip(*found, strict=True):
        np.testing.assert_array_equal(there, here)


def test_captions_of_like_length_go_together_and_come_back_in_their_order() -> None:
    batches: list[list[str]] = []

    def embed(captions: list[str]) -> np.ndarray:
        batches.append(captions)
        return np.array([[float(caption[0])] for caption in captions], np.float32)

    captions = ["0 long", "1", "2 so", "3 longest", "4 a"]
    encoder: Any = SimpleNamespace(embed_captions=embed)
    assert embedding.embed_captions(encoder, captions, 2)[:, 0].tolist() == [0, 1, 2, 3, 4]
    assert batches == [["1", "4 a"], ["2 so", "0 long"], ["3 longest"]]


def test_vectors_of_another_usage_or_of_other_files_lie_in_another_space() -> None:
    def identity(model: str = "clip:a", files: str = "1", **usage: Any) -> str:
        encoder: Any = SimpleNamespace(
            files={"model.safetensors": files}, usage=Usage(**usage), facts={}
        )
        return record.identity(model, encoder)

    others = [
        identity("siglip:a"),
        identity(files="2"),
        identity(prompt="see {}"),
        identity(preprocessing="squash"),
        identity(precision="bf16"),
        identity(interpolation="bilinear"),
        identity(token_limit=9),
    ]
    assert len({identity(), *others}) == 8
    assert identity() == identity("clip:b", device="cuda")


def test_vectors_are_replaced_by_those_of_the_same_files_or_of_the_same_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoder: Any = SimpleNamespace(files={"weights": "1"})
    of_there = SimpleNamespace(encoder={"place": "clip:there"}, files={"weights": "1"})
    edited = SimpleNamespace(encoder={"place": "clip:here"}, files={"weights": "2"})
    other = SimpleNamespace(encoder={"place": "clip:there"}, files={"weights": "2"})
    of_head = SimpleNamespace(encoder=None, files={"weights": "2"})
    for members, finished, refused in (
        ([of_there], True, False),  # the model was moved
        ([edited], True, False),
        ([of_head], True, False),
        ([other], False, False),
        ([other], True, True),
        ([of_there, other], True, True),
    ):
        existing = SimpleNamespace(record=SimpleNamespace(finished=finished, members=members))
        monkeypatch.setattr(record.artefacts.Artefact, "existing", lambda store, e=existing: e)
        monkeypatch.setattr(record.layout, "facts_of", lambda made: made)
        if refused:
            with pytest.raises(InputError, match="holds the vectors of clip:there; give those of"):
                record.refuse_another(Path("clip.zarr"), "clip:here", encoder)
        else:
            record.refuse_another(Path("clip.zarr"), "clip:here", encoder)


def test_a_worker_that_finds_another_encoder_is_refused(
    folders: dict[str, Path], scenes: Manifest, tmp_path: Path
) -> None:
    model = f"clip:{shutil.copytree(folders['clip'], tmp_path / 'clip')}"
    encoder = dual_encoders.load(model, Usage())
    job = embedding.Job(model, Usage(), scenes, scenes.images_folder, [scenes.split("test")], 4)
    settings = tmp_path / "clip" / "preprocessor_config.json"
    settings.write_text(json.dumps({**json.loads(settings.read_text()), "do_center_crop": False}))
    draft: Any = SimpleNamespace(
        record=SimpleNamespace(made_from={}, versions={})
    )  # nothing is written
    made: Any = None
    with pytest.raises(InputError, match="is another encoder than when the run began; run again"):
        embedding.embed(tmp_path / "v.zarr", draft, encoder, job, made, InProcess())


def test_pieces_of_another_request_are_embedded_anew(
    scenes: Manifest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Opened(Exception):
        pass

    requests: list[str] = []

    def kept(store: Path, request: Any) -> None:
        requests.append(json.dumps(request, sort_keys=True))
        raise Opened

    monkeypatch.setattr(embedding, "KeptPieces", kept)
    test, val, other = scenes.split("test"), scenes.split("val"), scenes.table.copy()
    other["caption"] += "."
    for change in (
        {},
        {"versions": {"embed": 2}},
        {"made_from": {"head": SimpleNamespace(identity="b")}},
        {"files": "2"},
        {"splits": [val]},
        {"splits": [test, val]},
        {"manifest": Manifest(other, scenes.dataset, scenes.images_folder)},
    ):
        asked: Any = {
            "versions": {"embed": 1},
            "made_from": {"head": SimpleNamespace(identity="a")},
            "files": "1",
            "splits": [test],
            "manifest": scenes,
            **change,
        }
        encoder: Any = SimpleNamespace(files={"w": asked["files"]}, usage=Usage(), facts={})
        recorded = SimpleNamespace(made_from=asked["made_from"], versions=asked["versions"])
        draft: Any = SimpleNamespace(record=recorded)
        job = embedding.Job(
            "clip:a", Usage(), asked["manifest"], scenes.images_folder, asked["splits"], 4
        )
        made: Any = None
        with pytest.raises(Opened):
            embedding.embed(tmp_path / "v.zarr", draft, encoder, job, made)
    assert len({*requests}) == len(requests)


def test_each_split_is_described_by_its_own_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pieces of two images: a split of just two, one of three, one of one."""
    monkeypatch.setattr(embedding, "AT_ONCE", 2)
    splits: list[Any] = []
    pieces = []
    expected = {}
    for name, images, cut in (("test", "ab", [2]), ("val", "cde", [1, 3]), ("train", "f", [4])):
        captions = [f"a photograph of {image}" for image in images]
        splits.append(
            SimpleNamespace(name=name, image_ids=np.arange(len(images)), captions=captions)
        )
        for number, cut_captions in enumerate(cut):
            photographs = np.array([*images[2 * number : 2 * number + 2]])
            marks = np.arange(5) < cut_captions
            pieces.append(embedding.Piece(np.ones((1, 7)), np.ones((5, 7)), marks, photographs))
        expected[name] = {
            "captions": len(captions),
            "cut_captions": sum(cut),
            "content": digest([*images]),
        }
    assert embedding._described(splits, iter(pieces)) == (expected, 7)


def test_a_split_of_a_heads_vectors_is_without_images_that_it_could_not_read(
    scenes: Manifest,
) -> None:
    whole = scenes.split("test")
    made = invented_facts.of_head(
        "mine", dataset="sample", trained_on="other", manifest=scenes.digest
    )
    made = made.changed(member=made.member.changed(splits={"test": {}, "val": {}}))
    failed = [int(whole.image_ids[1]), int(whole.image_ids[-1])]
    embedded: Any = SimpleNamespace(
        made_from=made,
        path=Path("mine.zarr"),
        image_ids=np.array([each for each in whole.image_ids if each not in failed]),
        vectors_of=lambda side, ids, again: ids,
    )
    read = record.of_split(embedded, scenes, "test")
    assert read.images.tolist() == [each for each in whole.image_ids if each not in failed]
    table = scenes.table
    others = table[(table["split"] == "test") & ~table["image_id"].isin(failed)]
    assert sorted(read.captions.tolist()) == sorted(others["caption_id"])
    assert read.made_from.split == "test"
    assert read.split.image_ids.tolist() == read.images.tolist()


@pytest.mark.specification
@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_vectors_are_the_librarys_own_features(folders: dict[str, Path], name: str) -> None:
    network = hf.AutoModel.from_pretrained(folders[name], attn_implementation="eager").eval()
    processor = hf.AutoImageProcessor.from_pretrained(folders[name], backend="pil")
    tokenizer = hf.AutoTokenizer.from_pretrained(folders[name])
    encoder = load(folders, name)
    images = encoder.embed_images([encoder.prepare(picture) for picture in pictures()])
    np.testing.assert_allclose(
        images,
        unit(network.get_image_features(**processor(images=pictures(), return_tensors="pt"))),
        atol=1e-6,
    )
    of_siglip = name.startswith("siglip")
    padding = {"padding": "max_length" if of_siglip else True}
    read = [caption.lower() for caption in CAPTIONS] if name.startswith("siglip2") else CAPTIONS
    tokens = tokenizer(read, truncation=True, max_length=LIMIT, return_tensors="pt", **padding)
    if of_siglip:
        tokens.pop("attention_mask", None)  # as they were trained
    captions = encoder.embed_captions(CAPTIONS)
    np.testing.assert_allclose(captions, unit(network.get_text_features(**tokens)), atol=1e-6)
    assert images.dtype == captions.dtype == np.float32
    assert images.shape[1] == captions.shape[1]
    assert np.abs(images[0] - images[1]).max() > 1e-3


@pytest.mark.parametrize("name", MODELS)
@torch.inference_mode()
def test_the_librarys_default_processor_is_an_option_that_is_recorded(
    folders: dict[str, Path], name: str
) -> None:
    network = hf.AutoModel.from_pretrained(folders[name], attn_implementation="eager").eval()
    processor = hf.AutoImageProcessor.from_pretrained(folders[name], backend="torchvision")
    own, encoder = load(folders, name), load(folders, name, preprocessing="torchvision")
    images = encoder.embed_images([encoder.prepare(picture) for picture in pictures()])
    np.testing.assert_allclose(
        images,
        unit(network.get_image_features(**processor(images=pictures(), return_tensors="pt"))),
        atol=1e-6,
    )
    assert (
        np.abs(images - own.embed_images([own.prepare(picture) for picture in pictures()])).max()
        > 1e-4
    )
    assert encoder.usage.recorded["preprocessing"] == "torchvision"


def test_a_file_or_a_missing_folder_is_not_looked_for_on_the_hub(tmp_path: Path) -> None:
    torch.save({}, tmp_path / "epoch_3.pt")
    for place, said in (
        (tmp_path / "epoch_3.pt", "is a file; name the folder"),
        (tmp_path / "missing", "there is no such folder"),
    ):
        with pytest.raises(InputError, match=said):
            dual_encoders.load(f"clip:{place}", Usage())


@pytest.mark.specification
@pytest.mark.parametrize("name", MODELS)
def test_a_caption_alone_has_the_vector_that_it_has_in_a_batch(
    folders: dict[str, Path], name: str
) -> None:
    encoder = load(folders, name)
    together = encoder.embed_captions([*CAPTIONS, LONG])
    alone = np.concatenate([encoder.embed_captions([caption]) for caption in [*CAPTIONS, LONG]])
    np.testing.assert_allclose(together, alone, atol=1e-6)


@pytest.mark.parametrize("name", MODELS)
def test_captions_beyond_the_limit_are_cut_and_told(folders: dict[str, Path], name: str) -> None:
    encoder = load(folders, name)
    assert encoder.token_limit == LIMIT
    assert encoder.is_cut(["green", LONG]) == [False, True]
    np.testing.assert_allclose(*encoder.embed_captions([LONG, f"{LONG} and more"]), atol=1e-6)


def test_what_a_user_says_of_the_training_comes_first_and_is_no_training_on() -> None:
    encoder: Any = SimpleNamespace(
        weights_file=None,
        trained_on=None,
        usage=Usage(),
        preprocessing={},
        token_limit=77,
        activation={},
        facts={},
    )
    description = record.described("clip:mine", encoder, "coco")
    assert description["trained_on"] == "coco"
    assert "tuned_on" not in description
    encoder.trained_on = "sample"
    for said, expected in ((None, "sample"), ("coco", "coco")):
        description = record.described("tuned:mine", encoder, said)
        assert (description["trained_on"], description["tuned_on"]) == (expected, "sample")


@pytest.mark.filterwarnings("error")
def test_a_limit_is_the_smaller_of_both_and_one_of_the_models_own_size_needs_no_note() -> None:
    for wanted, read in ((None, 77), (76, 76), (77, 77)):
        assert Usage(token_limit=wanted).limit(77) == read


def test_a_limit_beyond_the_models_own_is_noted(folders: dict[str, Path]) -> None:
    with pytest.warns(
        InputWarning, match=f"a token limit of 500 changes nothing: the model reads {LIMIT} tokens"
    ):
        assert load(folders, "clip", token_limit=500).token_limit == LIMIT


@pytest.mark.parametrize("name", MODELS)
def test_captions_that_are_read_alike_have_the_same_tokens(
    folders: dict[str, Path], name: str
) -> None:
    whole, more, upper, other = load(folders, name).tokens(
        [LONG, f"{LONG} and more", LONG.upper(), "green"]
    )
    assert whole == more == upper != other
    assert len(whole) == LIMIT


def test_a_caption_of_just_the_limit_is_whole(folders: dict[str, Path]) -> None:
    letters = "a" * (LIMIT - 2)  # a token each, beside those of the beginning and the end
    assert load(folders, "clip").is_cut([letters, letters + "a"]) == [False, True]


def test_a_prompt_counts_to_the_limit(folders: dict[str, Path]) -> None:
    fits = "abcde"
    assert load(folders, "clip").is_cut([fits]) == [False]
    assert load(folders, "clip", prompt="a photo of {}").is_cut([fits]) == [True]
    asked = load(folders, "clip", prompt="see {}").embed_captions(["red"])
    np.testing.assert_array_equal(asked, load(folders, "clip").embed_captions(["see red"]))


@pytest.mark.parametrize("name", ["siglip2", "siglip2-naflex"])
def test_siglip2_reads_lower_case(folders: dict[str, Path], name: str) -> None:
    upper, lower, other = load(folders, name).embed_captions(
        ["A Red CIRCLE", "a red circle", "a red ball"]
    )
    np.testing.assert_allclose(
        upper, lower, atol=1e-6
    )  # places of a batch may be rounded differently
    assert np.abs(upper - other).max() > 1e-3


def test_clip_crops_and_is_squashed_when_asked(folders: dict[str, Path]) -> None:
    wide = Image.new("RGB", (3 * SIDE, SIDE), "red")
    wide.paste("blue", (SIDE, 0, 2 * SIDE, SIDE))
    own, squashed = (
        load(folders, "clip", preprocessing=how).prepare(wide)["pixel_values"]
        for how in ("own", "squash")
    )
    assert own.shape == squashed.shape == (3, SIDE, SIDE)
    assert own.std(dim=(1, 2)).max() < 1e-4  # the middle alone, which is blue
    assert squashed[0, SIDE // 2, 0] > squashed[0, SIDE // 2, SIDE // 2] + 1
    with pytest.raises(InputError, match="has no single size"):
        load(folders, "siglip2-naflex", preprocessing="squash")


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("size", [(20_000, 1), (1, 20_000), (65_535, 3)])
def test_a_long_image_takes_little_memory(
    folders: dict[str, Path], monkeypatch: pytest.MonkeyPatch, name: str, size: tuple[int, int]
) -> None:
    encoder, resizes = load(folders, name), Resizes(monkeypatch)
    encoder.embed_images([encoder.prepare(Image.new("RGB", size, "red"))])
    assert resizes.most_pixels < 100 * SIDE * SIDE + SIDE * max(size)


@pytest.mark.parametrize("height", [4, 5])
def test_the_middle_of_a_long_image_is_the_crop_of_the_whole(
    folders: dict[str, Path], height: int
) -> None:
    levels = (
        np.sin(np.linspace(0, 200, 1001))[None, :, None] * np.linspace(0, 1, height)[:, None, None]
    )
    long = Image.fromarray(np.broadcast_to(127 + 120 * levels, (height, 1001, 3)).astype(np.uint8))
    whole = hf.CLIPImageProcessor.from_pretrained(folders["clip"])(
        images=long, return_tensors="pt"
    )["pixel_values"][0]
    middle = load(folders, "clip").prepare(long)["pixel_values"]
    np.testing.assert_allclose(
        middle, whole, atol=0.05
    )  # of 4: the long side is rounded to whole pixels
    ordinary = Image.new("RGB", (32 * 7, 7))
    assert base.middle(ordinary) is ordinary


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_lower_precisions_are_near(folders: dict[str, Path], precision: str) -> None:
    exact, near = (
        load(folders, "siglip", precision=each).embed_captions(CAPTIONS)
        for each in ("fp32", precision)
    )
    assert 0 < np.abs(exact - near).max() < 0.1
    np.testing.assert_allclose(np.linalg.norm(near, axis=1), 1, atol=1e-5)


def test_values_that_are_not_finite_are_refused(folders: dict[str, Path]) -> None:
    encoder = load(folders, "clip")
    with torch.no_grad():
        encoder.network.text_projection.weight[0, 0] = float("inf")
    with pytest.raises(InputError, match="not finite in float32; use --precision fp32"):
        encoder.embed_captions(CAPTIONS)


def set_in(file: Path, section: str, **said: Any) -> None:
    config = json.loads(file.read_text())
    config[section].update(said)
    file.write_text(json.dumps(config))


@pytest.mark.specification
@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda folder: (folder / "tokenizer.json").unlink(),
            "a tokenizer of 0 word pieces for a network of",
        ),
        (
            lambda folder: (folder / "preprocessor_config.json").unlink(),
            "has no preprocessor_config.json, which says how images are prepared",
        ),
        (
            lambda folder: (folder / "model.safetensors").unlink(),
            "holds no model.safetensors or pytorch_model.bin; save it",
        ),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"no weights"),
            "model.safetensors: not readable as weights",
        ),
        (
            lambda folder: (folder / "config.json").write_text("{"),
            "no configuration that can be read",
        ),
        (
            lambda folder: (folder / "preprocessor_config.json").write_text("{}"),
            "does not take the images that its",
        ),
        (
            lambda folder: set_in(folder / "config.json", "vision_config", num_hidden_layers=1),
            "its weights hold 16 tensors for which its config.json has no place",
        ),
        (
            lambda folder: set_in(folder / "config.json", "text_config", eos_token_id=17),
            "its tokenizer ends a caption with 1, and its config.json reads its vector at 17",
        ),
        (
            lambda folder: hf.CLIPTokenizer(
                vocab={"<|startoftext|>": 0, "<|endoftext|>": 1, "a</w>": 2}, merges=[]
            ).save_pretrained(folder),
            "a tokenizer of 3 word pieces for a network of 54",
        ),
        (shorten, r"its weights lack 1 of the tensors .* such as text_projection\.weight"),
        (
            widen,
            r"of another model than its config.json: .* has the shape \[8, 16\], expected \[12,",
        ),
    ],
)
def test_what_is_no_such_model_is_refused_in_one_line(
    folders: dict[str, Path], tmp_path: Path, change: Any, said: str
) -> None:
    folder = shutil.copytree(folders["clip"], tmp_path / "model")
    change(folder)
    with pytest.raises(InputError, match=said) as refused:
        dual_encoders.load(f"clip:{folder}", Usage())
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("model", "usage", "said"),
    [
        ("{clip}", {}, "expected KIND:FOLDER or KIND:NAME"),
        ("clipp:{clip}", {}, "did you mean clip"),
        ("siglip:{clip}", {}, "is a clip; expected siglip"),
        ("clip:{siglip2-naflex}", {}, "is a siglip2; expected clip"),
        ("clip:{clip}", {"prompt": "a photo"}, "expected a text with one {}"),
        ("clip:{clip}", {"device": "cuda:9"}, "is not available; use cpu"),
    ],
)
def test_bad_requests_are_refused(
    folders: dict[str, Path], model: str, usage: dict[str, str], said: str
) -> None:
    for name, folder in folders.items():
        model = model.replace(f"{{{name}}}", str(folder))
    with pytest.raises(InputError) as refused:
        dual_encoders.load(model, Usage(**usage))  # type: ignore[arg-type]
    assert said in str(refused.value)


def test_a_siglip_whose_preprocessing_is_of_another_side_is_refused(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    """Its network reads 36 pixels as four patches of 8, and leaves the rest out."""
    folder = shutil.copytree(folders["siglip"], tmp_path / "model")
    set_in(folder / "preprocessor_config.json", "size", height=36, width=36)
    with pytest.raises(InputError, match=r"images of .*36.*, its network reads 32 x 32 pixels"):
        dual_encoders.load(f"siglip:{folder}", Usage())


def test_what_is_no_folder_of_a_model_is_named(folders: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    shutil.copytree(folders["clip"], tmp_path / "run" / "checkpoint-5")
    torch.jit.script(torch.nn.Linear(2, 2)).save(tmp_path / "ViT-L-14.pt")
    for model, said in (
        ("clip:{}/empty", "has no config.json; .*; the folder is empty"),
        ("siglip:{}/run", "did you mean .*/run/checkpoint-5"),
        (
            "clip:{}/run/checkpoint-5/model.safetensors",
            "is a file; name its folder, .*checkpoint-5",
        ),
        (
            "clip:{}/ViT-L-14.pt",
            "OpenAI's TorchScript archive.*clip:openai/clip-vit-large-patch14$",
        ),
    ):
        with pytest.raises(InputError, match=said):
            dual_encoders.check(model.format(tmp_path))


def test_every_library_of_encoders_can_be_named_without_importing_it() -> None:
    classes = [DUAL_ENCODERS[kind] for kind in DUAL_ENCODERS if DUAL_ENCODERS.is_built_in(kind)]
    assert {*places.libraries()} == {getattr(each, "library", "transformers") for each in classes}


@pytest.mark.specification
def test_no_code_of_a_folder_runs(folders: dict[str, Path], tmp_path: Path) -> None:
    folder = shutil.copytree(folders["clip"], tmp_path / "model")
    (folder / "own.py").write_text("raise SystemExit('ran')\n")
    for name in ("config.json", "preprocessor_config.json", "tokenizer_config.json"):
        said = json.loads((folder / name).read_text())
        said["auto_map"] = dict.fromkeys(
            ("AutoConfig", "AutoModel", "AutoImageProcessor"), "own.Own"
        ) | {"AutoTokenizer": ["own.Own", None]}
        said["attn_implementation"] = "somebody/kernels"
        (folder / name).write_text(json.dumps(said))
    encoder = dual_encoders.load(f"clip:{folder}", Usage())
    np.testing.assert_array_equal(
        encoder.embed_captions(CAPTIONS), load(folders, "clip").embed_captions(CAPTIONS)
    )


def test_siglip_and_siglip2_are_told_apart_by_their_tokenizers(folders: dict[str, Path]) -> None:
    """Both say `siglip` in config.json; a SigLIP 2 that reads capitals loses points without a
    word.
    """
    for kind, name, other in (
        ("siglip", "siglip2", "SigLIP 2, .* write siglip2:"),
        ("siglip2", "siglip", "SigLIP, .* write siglip:"),
    ):
        with pytest.raises(InputError, match=f"{folders[name].name}: is a {other}"):
            dual_encoders.load(f"{kind}:{folders[name]}", Usage())


@pytest.mark.parametrize(
    ("name", "activation"), [("clip", "quick_gelu"), ("siglip2", "gelu_pytorch_tanh")]
)
def test_what_changes_an_encoders_vectors_is_recorded(
    folders: dict[str, Path], name: str, activation: str
) -> None:
    kind, encoder = MODELS[name][0], load(folders, name)
    found = record.described(f"{kind}:{folders[name]}", encoder, None)
    assert found["activation"] == {"image": activation, "text": activation}
    assert {"image_mean", "image_std", "resample", "size", "do_resize"} <= found[
        "preprocessing"
    ].keys()
    assert found["token_limit"] == LIMIT


def test_a_clip_in_half_precision_without_quick_gelu_is_noted(
    folders: dict[str, Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(folders["clip"], tmp_path / "clip")
    hf.AutoModel.from_pretrained(folder, dtype=torch.float16).save_pretrained(folder)
    dual_encoders.load(f"clip:{folder}", Usage())  # no note: its activation is QuickGELU
    config = json.loads((folder / "config.json").read_text())
    for tower in ("text_config", "vision_config"):
        config[tower]["hidden_act"] = "gelu"
    (folder / "config.json").write_text(json.dumps(config))
    with pytest.warns(
        InputWarning, match="half precision, as OpenAI's are, and its configuration says gelu"
    ):
        dual_encoders.load(f"clip:{folder}", Usage())
