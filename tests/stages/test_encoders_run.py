"""Dual encoders as users have them: embedded, resumed, scored, measured beside heads, searched,
traced, in tables.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from folders import tree
from tiny_dual_encoders import FOLDERS, sentence_transformers, vision_text
from tiny_open_clip import OWN, trained, written

from pipeline.foundation import settings
from pipeline.foundation.artefacts.record import load
from pipeline.foundation.files.atomic import exclusive
from pipeline.foundation.manifest import Manifest
from pipeline.judge.systems.scores.system import System
from pipeline.make import training
from pipeline.make.dual_encoders import DUAL_ENCODERS, embedding
from pipeline.make.dual_encoders.tuning.course import TuningCourse
from pipeline.make.dual_encoders.tuning.job import TuningJob
from stages import cli
from stages.arguments import Source

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("encoders_read_once")]

PARAMS = str(Path(__file__).parents[2] / "params.yaml")
STORE = Path("embeddings/sample/tiny.zarr")
SCORED = Path("similarities/sample/tiny.zarr")
EMBED = (
    "embed",
    "sample",
    "--system",
    "clip:models/clip",
    "--name",
    "tiny",
    "--trained-on",
    "noise",
)
RUN = (
    "-S",
    "run.features=[patch]",
    "-S",
    "run.ensembles=[]",
    "-S",
    "run.ablations=[]",
    "-S",
    "run.encoders=["
    "{name: tiny, model: 'clip:models/clip', trained_on: noise}, {name: other, model: 'siglip2:models/siglip2'}, "
    "{name: mine, model: 'clip:models/clip', finetune: projections}]",
    *(
        word
        for change in ("batch_size=8", "epochs=1", "steps=2")
        for word in ("-S", f"finetuning.projections.{change}")
    ),
)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sample with its manifest and two encoders."""
    folder = tmp_path_factory.mktemp("encoders")
    for name in ("clip", "siglip2"):
        FOLDERS[name][1](folder / "models" / name)
    from click.testing import CliRunner

    from stages.commands import project
    from stages.commands.manifest import manifest_command

    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for command in (project.sample_command, manifest_command):
            given = ["-S", "sample.images=24", "-S", "sample.size=64"] + ["sample"] * (
                command is manifest_command
            )
            ran = CliRunner().invoke(command, given)
            assert ran.exit_code == 0, ran.output
    return folder


@pytest.fixture(scope="module")
def with_vectors(prepared: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same after `embed` and `score` of the encoder tiny."""
    folder = shutil.copytree(prepared, tmp_path_factory.mktemp("with-vectors") / "project")
    with contextlib.chdir(folder):
        for command in (EMBED, ("score", "--system", str(STORE))):
            cli.cli.main([*command, "--params", PARAMS], standalone_mode=False)
    return folder


@pytest.fixture
def project(prepared: Path, pipeline: Any) -> None:
    """A copy of what is prepared, where commands run."""
    shutil.copytree(prepared, Path(), dirs_exist_ok=True)


@pytest.fixture
def scored(with_vectors: Path, pipeline: Any) -> None:
    """A copy of the project with vectors and scores of tiny, where commands run."""
    shutil.copytree(with_vectors, Path(), dirs_exist_ok=True)


def read(path: Path) -> tuple[np.ndarray, np.ndarray]:
    store = System.open_vectors(path)
    return np.array(store.vectors("image")), np.array(store.vectors("caption"))


@pytest.mark.usefixtures("project")
def test_it_is_embedded_once_and_names_what_made_it(pipeline: Any) -> None:
    code, out, err = pipeline(*EMBED)
    assert code == 0, err
    assert "24 images and 120 captions of sample" in out
    assert "80 of 80 captions of train (100.0 %) are longer than 12 tokens" in out
    assert not STORE.with_name("tiny.zarr.pieces").exists()
    made = System.open_vectors(STORE).made_from
    (member,) = made.members
    assert member.encoder is not None
    assert member.encoder["place"] == "clip:models/clip"
    assert load(STORE).versions == {"dual_encoders/clip": 1, "images": 1}
    assert member.encoder["trained_on"] == "noise"
    assert member.encoder["usage"] == {"prompt": "{}", "preprocessing": "own", "precision": "fp32"}
    assert member.encoder["preprocessing"]["do_center_crop"] is True
    assert set(member.files) >= {"config.json", "model.safetensors", "tokenizer.json"}
    assert member.splits["train"]["captions"] == 80
    assert 0 < member.splits["train"]["cut_captions"] <= 80
    assert "nothing to do" in pipeline(*EMBED)[1]
    assert "nothing to do" not in pipeline(*EMBED, "--prompt", "a {}")[1]


@pytest.mark.usefixtures("scored")
def test_an_encoder_that_was_moved_is_the_same(pipeline: Any) -> None:
    identity = load(SCORED).identity
    shutil.move("models/clip", "moved")
    command = tuple(word.replace("models/clip", "moved") for word in EMBED)
    for each in (command, ("score", "--system", STORE)):
        assert "nothing to do" in pipeline(*each)[1]
    assert load(SCORED).identity == identity
    code, out, err = pipeline("trace", SCORED)
    assert code == 0, (out, err)
    assert "clip:moved" in out


@pytest.mark.usefixtures("project")
def test_other_photographs_are_embedded_again(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = (*EMBED, "--split", "test")
    assert pipeline(*command)[0] == 0
    shutil.copytree("data/sample/images", "others")
    assert "nothing to do" in pipeline(*command, "--images", "others")[1]

    def stop(*given: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:  # its pieces are of the photographs as they are now
        patched.setattr(embedding, "_described", stop)
        assert pipeline(*command, "--out", "cut.zarr")[0] != 0
    shutil.copyfile(*images())
    assert "nothing to do" not in pipeline(*command)[1]
    assert pipeline(*command, "--out", "cut.zarr")[0] == 0
    for mine, fresh in zip(read(STORE), read(Path("cut.zarr")), strict=True):
        np.testing.assert_array_equal(mine, fresh)
    assert "nothing to do" not in pipeline(*command, "--images", "others")[1]


@pytest.mark.usefixtures("scored")
def test_an_interrupted_run_goes_on_where_it_stopped(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.move(STORE, "whole.zarr")
    monkeypatch.setattr(embedding, "AT_ONCE", 5)
    done: list[int] = []
    original = embedding.embed_part

    def counted(*given: Any) -> Any:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(len(given[1]))
        return original(*given)

    monkeypatch.setattr(embedding, "embed_part", counted)
    assert pipeline(*EMBED)[0] != 0
    assert not STORE.exists()
    (STORE.with_name("tiny.zarr.pieces") / "00001.npz").write_bytes(b"cut short")
    monkeypatch.setattr(embedding, "embed_part", lambda *given: done.append(-1) or original(*given))
    assert pipeline(*EMBED)[0] == 0
    assert done == [
        5,
        5,
        5,
        -1,
        -1,
        -1,
        -1,
    ]  # train 16: 5, 5, 5, 1; val 4; test 4; the damaged one again
    for mine, whole in zip(read(STORE), read(Path("whole.zarr")), strict=True):
        np.testing.assert_allclose(mine, whole, atol=1e-6)
    splits = [
        System.open_vectors(path).made_from.members[0].splits
        for path in (STORE, Path("whole.zarr"))
    ]
    assert splits[0] == splits[1]  # photographs and cut captions of all pieces


@pytest.mark.usefixtures("project")
def test_two_at_once_are_refused(refused: Callable[..., str]) -> None:
    with exclusive(STORE):
        assert "another process is writing to it; wait for it to end" in refused(*EMBED)


@pytest.mark.usefixtures("project", "forkserver")
def test_workers_write_the_same_bytes(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedding, "AT_ONCE", 5)
    command = (*EMBED, "--out")
    assert pipeline(*command, "one.zarr")[0] == 0
    code, _, err = pipeline(*command, "two.zarr", "--workers", "2")
    assert code == 0, err
    assert tree(Path("one.zarr")) == tree(Path("two.zarr"))


@pytest.mark.usefixtures("project")
def test_pieces_of_another_request_are_not_taken(
    pipeline: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*given: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(embedding, "_described", fails)
        assert pipeline(*EMBED)[0] != 0
    assert pipeline(*EMBED, "--prompt", "a photo of {}")[0] == 0
    assert pipeline(*EMBED, "--prompt", "a photo of {}", "--out", "fresh.zarr")[0] == 0
    for mine, fresh in zip(read(STORE), read(Path("fresh.zarr")), strict=True):
        np.testing.assert_array_equal(mine, fresh)


@pytest.mark.usefixtures("scored")
def test_it_is_scored_searched_traced_fused_rescored_and_reranked(pipeline: Any) -> None:
    other = ("embed", "sample", "--system", "siglip2:models/siglip2", "--name", "other")
    assert pipeline(*other, "--split", "test")[0] == 0
    code, out, err = pipeline("score", "--system", STORE.with_stem("other"))
    assert code == 0, err
    assert "4 images x 20 captions of test" in out
    assert "nothing to do" in pipeline("score", "--system", STORE)[1]
    store, (images, captions) = System.open(SCORED), read(SCORED)
    np.testing.assert_allclose(store.similarity[:], images @ captions.T, atol=1e-6)
    test = Manifest.load(Path("data/sample.parquet")).split("test")
    assert store.caption_ids.tolist() == test.caption_ids.tolist()
    assert pipeline("evaluate", "--system", STORE)[0] == 0
    code, out, err = pipeline("search", test.captions[3], "--system", "tiny", "--top", "1")
    assert code == 0, err
    best = out.splitlines()[1]  # below the header
    assert best.split()[2] == str(store.image_ids[np.argmax(store.similarity[:, 3])])
    file = next(Path("data/sample/images").iterdir())
    out = pipeline("search", "--image", file, "--system", STORE, "--find", "images", "--top", "1")[
        1
    ]
    assert out.splitlines()[1].split()[3] == file.name
    for given in (
        ("ensemble", "both", "--member", "tiny", "--member", "other"),
        ("rescore", "tiny", "--by", "csls"),
        ("rescore", "tiny", "--by", "nnn", "--bank", "train"),
        ("rerank", "--retriever", "tiny", "--with", "other", "--k", "2", "--name", "again"),
    ):
        code, _, err = pipeline(*given)
        assert code == 0, err
    for name in ("both", "tiny+csls", "tiny+nnn", "again"):
        code, out, err = pipeline("trace", SCORED.with_stem(name), "-v")
        assert code == 0, err
        assert "image quick_gelu, text quick_gelu  matches" in out
        assert "clip:models/clip" in out


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (
            lambda: Path("models/clip/tokenizer_config.json").write_text("{}"),
            "tokenizer_config.json: SHA-256 differs",
        ),
        (lambda: shutil.rmtree("models/clip"), "the encoder's files missing"),
        (lambda: shutil.copyfile(*images()), "the photographs of tiny differs"),
    ],
)
@pytest.mark.usefixtures("scored")
def test_a_change_below_its_scores_is_found(
    refused: Callable[..., str], change: Any, said: str
) -> None:
    change()
    assert said in refused("trace", SCORED, "--embed", "0")


def images() -> tuple[Path, Path]:
    """A photograph of the split train, and one of test."""
    table = Manifest.load(Path("data/sample.parquet")).images
    one, other = (table.loc[table["split"] == split, "file"].iloc[0] for split in ("train", "test"))
    return Path("data/sample/images") / one, Path("data/sample/images") / other


@pytest.mark.usefixtures("scored")
def test_rows_of_the_run_are_zero_shot_or_fine_tuned_in_tables_and_report(pipeline: Any) -> None:
    tiny = (
        "-S",
        "features.light.patch={engine: patch, network: test_vit, weights: untrained, image_size: 160, "
        "cls: true}",
        "-S",
        "training.sample.dimension=16",
        "-S",
        "training.sample.epochs=1",
        *RUN,
    )
    for command in (
        ("extract", "--feature", "patch"),
        ("train", "--feature", "patch"),
        ("finetune",),
        ("embed",),
        ("score",),
        ("evaluate",),
        ("tables",),
        ("report",),
        ("lab", "plan"),
    ):
        code, _, err = pipeline(*command, *tiny)
        assert code == 0, err
    measured = json.loads(Path("results/metrics.json").read_text())
    assert set(measured) == {"vse2ad-patch-bigru-s0", "tiny", "other", "mine"}
    for name in ("vse2ad_table1", "vse2ad_table2"):
        table = Path(f"results/tables/{name}.md").read_text()
        rows = [
            line for line in table.splitlines() if ", zero-shot" in line and line.startswith("|")
        ]
        assert [
            name for name in ("tiny", "other") if any(f"{name}, zero-shot" in row for row in rows)
        ] == ["tiny", "other"]
        assert not any("**" in row for row in rows)
        assert "tiny on noise; other on data that its files do not name" in table
        assert "mine, fine-tuned on the sample of rendered scenes" in table
    page = re.sub(r"\s+", " ", Path("results/report.html").read_text(encoding="utf-8"))
    assert '<th scope="row"><span class="name">tiny, zero-shot</span></th>' in page
    assert "nothing to do" in pipeline("embed", *tiny)[1]
    assert pipeline("score", *tiny)[1].count("nothing to do") == 4
    record = load(Path("encoders/sample/mine"))
    assert json.loads(Path("results/plan/finetune.json").read_text()) == {
        "mine": {"request": record.request, "versions": record.versions, "base": "clip:models/clip"}
    }
    assert "encoders/sample/mine: nothing to do" in pipeline("finetune", *tiny)[1]
    code, out, err = pipeline("trace", "results/metrics.json", "mine", "-v", *tiny)
    assert code == 0, err
    assert "tuned:encoders/sample/mine/best.safetensors" in out


@pytest.mark.usefixtures("project")
def test_a_run_without_encoders_to_train_on_has_an_empty_folder(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    assert "no encoder to train on in the run: nothing to do" in pipeline("finetune")[1]
    assert not [*Path("encoders/sample").iterdir()]
    assert "--recipe needs --system" in refused("finetune", "--recipe", "lora")
    assert "give --system" in refused("finetune", "sample")


@pytest.mark.usefixtures("project")
def test_bad_requests_end_in_one_line(pipeline: Any, refused: Callable[..., str]) -> None:
    assert "give --system" in refused("embed", "sample")
    assert "is for an encoder" in refused("embed", "sample", "--system", "x", "--prompt", "{}")
    assert "needs the NAME of a data set" in refused("embed", "--system", "clip:models/clip")
    assert "no such folder" in refused("embed", "sample", "--system", "clip:no folder")
    assert pipeline(*EMBED, "--split", "val")[0] == 0
    assert "not test" in refused("score", "--system", STORE)
    file = images()[1]
    file.write_bytes(b"no image")
    assert f"{file}: " in refused(*EMBED)


@pytest.mark.usefixtures("scored")
def test_it_is_trained_on_and_used_like_any_other(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    command = (
        "finetune",
        "sample",
        "--system",
        "clip:models/clip",
        "--recipe",
        "lora",
        *(
            word
            for change in ("batch_size=8", "epochs=2", "steps=4")
            for word in ("-S", f"finetuning.lora.{change}")
        ),
    )
    code, out, err = pipeline(*command)
    assert code == 0, err
    assert (
        "lora-clip-s0: 20 of 20 captions of val (100.0 %) are longer than 12 tokens; their beginning is read"
        in err
    )
    assert "encoders/sample/lora-clip-s0: best epoch" in out
    assert "nothing to do" in pipeline(*command)[1]
    tuned = "tuned:encoders/sample/lora-clip-s0"
    shutil.copytree("models/clip", "tiny")  # a model's folder that is called like a system
    for given in (
        ("embed", "sample", "--system", tuned, "--name", "tuned"),
        ("search", "a circle", "--system", "tiny"),
        ("compare", STORE, STORE.with_stem("tuned")),
        ("score", "--system", STORE.with_stem("tuned")),
        ("score", "--system", "tiny"),
        ("compare", "tuned", "tiny", "--dataset", "sample"),
        ("search", "a circle", "--system", "tuned"),
        ("rerank", "--retriever", "tiny", "--with", "tuned", "--k", "2", "--name", "again"),
        ("evaluate", "--system", tuned, "--manifest", "data/sample.parquet"),
        ("lab", "hard-negatives", "--system", tuned),
        ("export", tuned, "--to", "transformers", "-S", "run.dataset=flickr8k"),
    ):
        code, out, err = pipeline(*given)
        assert code == 0, (given, err)
        assert (
            given[0] != "evaluate" or "20 of 20 captions (100.0 %) are longer than 12 tokens" in err
        )
    assert "`pipeline score --system" in refused(
        "ensemble", "two", "--member", STORE, "--member", "tuned"
    )
    made = System.open_vectors(STORE.with_stem("tuned")).made_from
    (member,) = made.members
    assert member.encoder is not None
    assert (member.encoder["trained_on"], member.encoder["tuned_on"]) == ("sample", "sample")
    code, out, err = pipeline("trace", SCORED.with_stem("tuned"))
    assert code == 0, out
    assert tuned in out
    assert Path("exported/sample/lora-clip-s0-transformers/model.safetensors").exists()
    assert "is a model of transformers; write --to transformers" in refused(
        "export", tuned, "--to", "onnx"
    )
    assert f"'{tuned}': is a model, and a name was" in refused(
        "rerank", "--retriever", "tiny", "--with", tuned
    )
    assert "was not trained on here" in refused(
        "export", "clip:models/clip", "--to", "transformers"
    )
    assert f"is a tuned encoder, not a head; write {tuned}" in refused(
        "embed", "sample", "--system", tuned.removeprefix("tuned:")
    )


@pytest.mark.usefixtures("project")
def test_another_model_of_the_same_last_name_and_older_scores_are_refused(
    pipeline: Any, refused: Callable[..., str]
) -> None:
    shutil.copytree("models/clip", "others/clip")
    file = Path("others/clip/config.json")
    file.write_text(json.dumps(json.loads(file.read_text())))
    assert pipeline("embed", "sample", "--system", "clip:models/clip", "--split", "test")[0] == 0
    assert pipeline("score", "--system", "embeddings/sample/clip.zarr")[0] == 0
    command = ("embed", "sample", "--system", "clip:others/clip", "--split", "test")
    assert (
        "clip.zarr: holds the vectors of clip:models/clip; give those of clip:others/clip another name"
        in refused(*command)
    )
    assert pipeline("evaluate", "clip")[0] == 0
    assert pipeline(*command, "--name", "other")[0] == 0
    assert (
        pipeline("embed", "sample", "--system", "clip:models/clip", "--prompt", "a photo of {}")[0]
        == 0
    )
    assert "is made of an older clip than the current one; run `pipeline score" in refused(
        "evaluate", "clip"
    )


@pytest.mark.parametrize(
    ("place", "name"),
    [
        ("open_clip:logs/run/checkpoints/epoch_1.pt", "run-epoch-1"),
        ("open_clip:a/epoch_2.pt", "epoch-2"),
        ("clip:openai/clip-vit-base-patch32", "clip-vit-base-patch32"),
        ("clip:模型", "clip"),
    ],
)
def test_an_encoder_is_called_by_the_end_of_its_place(place: str, name: str) -> None:
    assert Source(place).called == name


def checkpoint(folder: Path) -> Path:
    return trained(folder, OWN).checkpoint


def tuned(folder: Path) -> Path:
    small = tuple(
        f"finetuning.projections.{change}" for change in ("batch_size=8", "epochs=1", "steps=2")
    )
    recipe = settings.load(Path(PARAMS), small).finetuning["projections"]
    manifest = Manifest.load(Path("data/sample.parquet"))
    training.train(
        TuningJob(
            "clip:models/clip", manifest, manifest.images_folder, "projections", recipe, 0, folder
        ),
        course=TuningCourse,
    )
    return folder


CLASSES: dict[str, tuple[str, Callable[[Path], Path]]] = {
    "siglip2": FOLDERS["siglip2"],
    "st": ("st", sentence_transformers),
    "vision_text": ("vision_text", vision_text),
    "tuned": ("tuned", tuned),
    "open_clip": ("open_clip", lambda folder: written(folder, OWN)),
    "checkpoint": ("open_clip", checkpoint),
}
CLASSES = {name: made for name, made in CLASSES.items() if made[0] in DUAL_ENCODERS}


@pytest.mark.usefixtures("project")
@pytest.mark.parametrize("name", CLASSES)
def test_every_command_takes_every_class(pipeline: Any, name: str) -> None:
    """Embedded, scored, measured, searched and asked with options, which the record keeps and
    results are made by.
    """
    kind, write = CLASSES[name]
    model = f"{kind}:{write(Path('models/mine'))}"
    usage = (
        "--prompt",
        "a {}",
        "--preprocessing",
        "squash",
        "--interpolation",
        "bilinear",
        "--token-limit",
        "7",
    )
    for command in (
        ("embed", "sample", "--system", model, "--name", "mine", "--split", "test", *usage),
        ("score", "--system", "mine", "--dataset", "sample"),
    ):
        code, _, err = pipeline(*command)
        assert code == 0, err
    (member,) = System.open_vectors(Path("embeddings/sample/mine.zarr")).made_from.members
    assert member.encoder is not None
    assert member.encoder["usage"] == {
        "prompt": "a {}",
        "preprocessing": "squash",
        "precision": "fp32",
        "interpolation": "bilinear",
        "token_limit": 7,
    }
    assert member.encoder["token_limit"] == 7
    assert {"image", "text"} == member.encoder["activation"].keys()
    code, _, err = pipeline(
        "search", "a red cube", "--dataset", "sample", "--system", "mine", "--top", "1"
    )
    assert code == 0, err
    code, stored, err = pipeline("evaluate", "similarities/sample/mine.zarr", "--json")
    assert code == 0, err
    code, direct, err = pipeline(
        "evaluate", model, "--manifest", "data/sample.parquet", "--json", *usage
    )
    assert code == 0, err
    numbers = [json.loads(text)[0] for text in (stored, direct)]
    assert numbers[0]["RSUM"] == pytest.approx(numbers[1]["RSUM"])
    assert "prompt a {}, preprocessing squash, interpolation bilinear, token limit 7" in direct
    code, _, err = pipeline("lab", "hard-negatives", "--system", model, "--out", "r.json", *usage)
    assert code == 0, err
    asked = json.loads(Path("r.json").read_text())["made_from"]["member"]
    assert asked["encoder"]["usage"] == member.encoder["usage"]
