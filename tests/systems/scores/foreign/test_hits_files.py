"""Files of hits: the numbers of the scores to the last bit, by one protocol, and one line for what
ranks cannot tell.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from foreign import manifest

import pipeline as referee
from pipeline.foundation.parts.errors import InputError
from pipeline.judge.systems.scores.foreign import hits_file, open_system

IMAGES = 40
EACH = 5
CAPTIONS = IMAGES * EACH
# Two captions are of no image, and image 0 has two captions fewer.
OWNER = np.repeat(np.arange(IMAGES), EACH)
OWNER[:2] = -1
FOLDS = ("--folds", "4")


def scores(seed: int, signal: float) -> np.ndarray:
    """Scores with many ties."""
    values = np.random.default_rng(seed).standard_normal((IMAGES, CAPTIONS))
    values[OWNER[2:], np.arange(2, CAPTIONS)] += signal
    return np.round(values, 1).astype(np.float32)


@pytest.fixture
def files(tmp_path: Path) -> Path:
    """Two systems, the second with images and captions in another order."""
    generator = np.random.default_rng(9)
    rows = generator.permutation(IMAGES)
    columns = generator.permutation(CAPTIONS)
    place = np.argsort(rows)
    owner = np.where(OWNER[columns] < 0, -1, place[OWNER[columns]])
    images = 100 + np.arange(IMAGES)
    captions = 5000 + 7 * np.arange(CAPTIONS)
    np.savez(
        tmp_path / "one.npz",
        scores=scores(1, 1.5),
        image_ids=images,
        caption_ids=captions,
        caption_image=OWNER,
    )
    np.savez(
        tmp_path / "two.npz",
        scores=scores(2, 2.0)[rows][:, columns],
        image_ids=images[rows],
        caption_ids=captions[columns],
        caption_image=owner,
    )
    return tmp_path


def write(pipeline: Any, name: str, *options: str) -> str:
    """Write the hits of a system, and return the file's name."""
    file = f"{name}-hits.npz"
    code, _, err = pipeline("evaluate", f"{name}.npz", "--hits", file, *options)
    assert code == 0, err
    return file


def printed(pipeline: Any, *arguments: str) -> list[dict[str, Any]]:
    """What a command prints as JSON, without what names its files."""
    code, out, err = pipeline(*arguments, "--json")
    assert code == 0, err
    listed: list[dict[str, Any]] = json.loads(out)
    for each in listed:
        for key in ("system", "systems", "read_as", "notes"):
            each.pop(key, None)
    return listed


@pytest.mark.parametrize("rules", [(), FOLDS], ids=["all", "folds"])
@pytest.mark.parametrize("ties", ["expected", "pessimistic"])
def test_hits_give_the_numbers_of_their_scores(
    pipeline: Any, files: Path, rules: tuple[str, ...], ties: str
) -> None:
    asked = ("--ties", ties, "--metric", "MRR", "--metric", "R@3")
    hits = write(pipeline, "one", *rules)
    of_scores = printed(pipeline, "evaluate", "one.npz", *rules, *asked)
    assert printed(pipeline, "evaluate", hits, *asked) == of_scores
    assert of_scores[0]["tied"]["t2i"] > 0


def test_systems_are_compared_by_hits_in_any_order(pipeline: Any, files: Path) -> None:
    hits = [write(pipeline, "one"), write(pipeline, "two")]
    of_scores = printed(pipeline, "compare", "one.npz", "two.npz")
    assert printed(pipeline, "compare", *hits) == of_scores
    assert printed(pipeline, "compare", hits[0], "two.npz") == of_scores


def test_systems_are_compared_within_the_folds_of_their_hits(pipeline: Any, files: Path) -> None:
    np.savez("three.npz", **{**np.load("one.npz"), "scores": scores(3, 2.0)})
    hits = [write(pipeline, "one", *FOLDS), write(pipeline, "three", *FOLDS)]
    of_scores = printed(pipeline, "compare", "one.npz", "three.npz", *FOLDS)
    assert printed(pipeline, "compare", *hits) == of_scores


def test_hits_are_said_to_be_of_a_system_that_their_file_is_not_called(
    pipeline: Any, files: Path
) -> None:
    hits = write(pipeline, "one")
    assert open_system(hits).read_as.startswith("hits of one by protocol all")
    Path(hits).rename("one.npz")
    assert open_system("one.npz").read_as.startswith("hits by protocol all")


def judge(name: str = "qrels.txt", seed: int = 5, images_too: bool = False) -> str:
    """Write judgements of a random fifth of the captions, with several right images each; others of
    images if asked. Return the file's name.
    """
    generator = np.random.default_rng(seed)
    lines = []
    for caption in generator.choice(CAPTIONS, CAPTIONS // 5, replace=False).tolist():
        for image in generator.choice(IMAGES, 3, replace=False).tolist():
            grade = generator.integers(1, 4)
            lines.append(f"caption:{5000 + 7 * caption} 0 image:{100 + image} {grade}")
            if images_too and grade > 1:
                lines.append(f"image:{100 + image} 0 caption:{5000 + 7 * caption} {grade}")
    Path(name).write_text("\n".join(lines))
    return name


@pytest.mark.parametrize("images_too", [False, True], ids=["one relation", "two"])
@pytest.mark.parametrize("rules", [(), FOLDS], ids=["all", "folds"])
def test_hits_by_judgements_have_the_numbers_and_tests_of_the_scores(
    pipeline: Any, files: Path, rules: tuple[str, ...], images_too: bool
) -> None:
    right = ("--qrels", judge(images_too=images_too))
    np.savez("three.npz", **{**np.load("one.npz"), "scores": scores(3, 2.0)})
    other = "three"
    if not rules:
        other = "two"  # whose images have another order
    hits = [write(pipeline, name, *right, *rules) for name in ("one", other)]
    of_scores = printed(pipeline, "evaluate", "one.npz", *right, *rules)
    assert of_scores[0]["tied"]["t2i"] > 0
    assert of_scores[0]["queries"]["t2i"] <= CAPTIONS // 5
    assert printed(pipeline, "evaluate", hits[0], *right) == of_scores
    compared = differences(pipeline, "one.npz", f"{other}.npz", *right, *rules)
    assert differences(pipeline, *hits) == compared
    assert differences(pipeline, hits[0], f"{other}.npz", *right, *rules) == compared
    again = write_again(pipeline, hits[0])
    assert dict(np.load(again)).keys() == dict(np.load(hits[0])).keys()
    assert differences(pipeline, again, hits[1]) == compared


def differences(pipeline: Any, *named: str) -> list[dict[str, Any]]:
    """What `compare` prints as JSON, without what it calls all in one pool by some judgements."""
    listed = printed(pipeline, "compare", *named)
    for each in listed:
        del each["protocol"]
    return listed


def write_again(pipeline: Any, hits: str) -> str:
    """The hits of a file of hits."""
    code, _, err = pipeline("evaluate", hits, "--hits", "again.npz")
    assert code == 0, err
    return "again.npz"


def test_hits_by_other_right_answers_are_not_compared(
    pipeline: Any, refused: Callable[..., str], files: Path
) -> None:
    own = write(pipeline, "two")
    judged = write(pipeline, "one", "--qrels", judge())
    Path("one.npz").rename("three.npz")
    others = write(pipeline, "three", "--qrels", judge("others.txt", 6))
    said = refused("compare", judged, others)
    assert "ranked by the judgements in qrels.txt and by the judgements in others.txt" in said
    assert "by the same --qrels or --same-text" in said
    for unjudged in (own, "two.npz"):
        assert "and by each caption's own image" in refused("compare", judged, unjudged)
    assert "leave out --qrels" in refused("evaluate", judged, "--qrels", "others.txt")
    assert "holds ranks by the judgements in qrels.txt" in refused(
        "explain", judged, "--published", "RSUM=3"
    )
    (numbers,) = json.loads(pipeline("evaluate", judged, "--json")[1])
    assert "by protocol all and the judgements in qrels.txt" in numbers["read_as"]
    assert numbers["relevance"]["source"] == "qrels.txt"


def variants(found: dict[str, Any]) -> dict[tuple[str, ...], dict[str, float]]:
    """The numbers that `explain` tried, by the differences and the direction."""
    numbers = {}
    for variant in found["variants"]:
        numbers[*variant["differences"], variant.get("direction", "")] = variant["numbers"]
    return numbers


@pytest.mark.parametrize(
    ("rules", "tried"),
    [
        ((), ["only the first caption of each image", "ties in the worst order"]),
        (
            FOLDS,
            [
                "the second 10 images alone",
                "ranks counted from 1 but tested with rank < K: R@(K − 1)",
            ],
        ),
    ],
    ids=["all", "folds"],
)
def test_hits_explain_what_follows_from_ranks(
    pipeline: Any, files: Path, rules: tuple[str, ...], tried: list[str]
) -> None:
    hits = write(pipeline, "one", *rules)
    asked = ("--published", "R@5=40.0,t2i_MedR=3", "--most", "1", "--json")
    found = []
    for named in ((hits,), ("one.npz", *rules)):
        code, out, err = pipeline("explain", *named, *asked)
        assert code == 0, err
        found.append(json.loads(out))
    of_hits = variants(found[0])
    of_scores = variants(found[1])
    assert of_hits == {words: of_scores[words] for words in of_hits}
    assert {(words, "t2i") for words in tried} <= of_hits.keys()
    assert "scores in float16" in found[0]["not_tried"]["the scores"]


def test_a_number_of_hits_is_the_measured_one(pipeline: Any, files: Path) -> None:
    hits = write(pipeline, "one", *FOLDS)
    (numbers,) = printed(pipeline, "evaluate", hits)
    published = f"t2i_R@1={numbers['t2i']['R@1']:.1f}"
    code, out, err = pipeline("explain", hits, "--published", published)
    assert code == 0, err
    assert out.startswith("The published number is the one measured.")
    assert "give the scores, which a file of hits does not have" in " ".join(out.split())


def test_python_takes_hits_in_any_order(pipeline: Any, files: Path) -> None:
    assert referee.evaluate(write(pipeline, "one", *FOLDS))["protocol"] == "4fold"
    hits = write(pipeline, "one")
    other = write(pipeline, "two")
    of_scores = printed(pipeline, "compare", "one.npz", "two.npz")
    found = referee.compare(hits, other)
    assert found["RSUM"]["difference"] == of_scores[0]["RSUM"]["difference"]
    (numbers,) = printed(pipeline, "evaluate", hits)
    published = f"t2i_R@1={numbers['t2i']['R@1']:.1f}"
    assert referee.explain(hits, published, most=1).references[0].reproduces
    with pytest.raises(InputError, match="a zarr array or a file of hits"):
        referee.evaluate("one.npz")


def test_hits_without_ids_say_so_where_they_are_written_and_compared(
    pipeline: Any, files: Path
) -> None:
    for seed, name in enumerate(("a", "b", "c")):
        np.save(f"{name}.npy", scores(seed, 1.5))
        code, _, err = pipeline("evaluate", f"{name}.npy", "--hits", f"{name}.npz")
        assert code == 0, err
        assert "has no ids" in err
    assert not open_system("a.npz").has_ids
    code, _, err = pipeline("compare", "a.npz", "b.npz", "c.npz")
    assert code == 0, err
    assert err.count("hits do not show the order of images") == 1
    code, _, err = pipeline("compare", write(pipeline, "one"), write(pipeline, "two"))
    assert code == 0, err
    assert "ids" not in err


def test_a_manifest_says_the_split_and_makes_hits_safer(
    pipeline: Any, refused: Callable[..., str], tmp_path: Path
) -> None:
    manifest(160).save(tmp_path / "coco.parquet")
    for seed, name in enumerate(("a", "b")):
        np.save(f"{name}.npy", scores(seed, 1.5))
        known = ("--manifest", "coco.parquet", "--split", "test", "--hits", f"{name}.npz")
        code, _, err = pipeline("evaluate", f"{name}.npy", *known)
        assert code == 0, err
        assert "has no ids" not in err
    said = json.loads(np.load("a.npz")["hits_facts"].tobytes())
    assert (said["dataset"], said["split"]) == ("coco", "test")
    code, out, err = pipeline("compare", "a.npz", "b.npz", "--json")
    assert code == 0, err
    assert {each["split"] for each in json.loads(out)} == {"test"}
    val = ("--manifest", "coco.parquet", "--split", "val")
    assert "has hits of the split test" in refused("evaluate", "a.npz", *val)


@pytest.mark.parametrize("rules", [(), FOLDS], ids=["all", "folds"])
def test_hits_of_several_languages_have_the_numbers_of_each(
    pipeline: Any, refused: Callable[..., str], tmp_path: Path, rules: tuple[str, ...]
) -> None:
    known = manifest(160)
    place, number = np.divmod(known.table["caption_id"].to_numpy(), 10)
    is_german = (place // 4 % 2 == 1) & (number > 2)  # of every other image of the test split
    known.table["language"] = np.where(is_german, "de", "en")
    known.save(tmp_path / "coco.parquet")
    named = ("--manifest", "coco.parquet")
    of_scores = []
    for seed, name in enumerate(("a", "b")):
        np.save(f"{name}.npy", scores(seed, 1.5))
        written = ("--hits", f"{name}.npz", *named, *rules)
        of_scores += printed(pipeline, "evaluate", f"{name}.npy", *written)
    assert of_scores[0]["languages"]["de"]["images"] == IMAGES // 2
    assert (
        printed(pipeline, "evaluate", "a.npz") + printed(pipeline, "evaluate", "b.npz") == of_scores
    )
    compared = printed(pipeline, "compare", "a.npy", "b.npy", *named, *rules)
    assert printed(pipeline, "compare", "a.npz", "b.npz") == compared
    assert [each["language"] for each in compared] == [None, "de", "en"]
    arrays = dict(np.load("a.npz"))
    without = {name: arrays[name] for name in ("image_ids", "caption_ids", "caption_image")}
    np.savez("plain.npz", scores=np.load("b.npy"), **without)
    code, out, err = pipeline("compare", "a.npz", "plain.npz", "--json")
    assert code == 0, err
    assert [each["language"] for each in json.loads(out)] == [None]
    assert "captions in de are not compared" in err
    np.savez("damaged.npz", **{**arrays, "caption_language": arrays["caption_language"] + 1})
    assert "caption_language names others than 2 languages" in refused("evaluate", "damaged.npz")


@pytest.mark.parametrize("languages", [("en",), ("de", "en")], ids=["one language", "two"])
def test_equal_captions_are_one_query_of_hits(
    pipeline: Any, tmp_path: Path, languages: tuple[str, ...]
) -> None:
    known = manifest(160)
    rows = range(len(known.table))
    known.table["caption"] = [f"text {row % 90}" for row in rows]
    known.table["language"] = [languages[row % len(languages)] for row in rows]
    known.save(tmp_path / "coco.parquet")
    named = ("--manifest", "coco.parquet", "--same-text", "positive")
    for seed, name in enumerate(("a", "b")):
        np.save(f"{name}.npy", scores(seed, 1.5))
        code, _, err = pipeline("evaluate", f"{name}.npy", "--hits", f"{name}.npz", *named)
        assert code == 0, err
    of_scores = printed(pipeline, "evaluate", "a.npy", *named)
    assert of_scores[0]["queries"]["t2i"] < CAPTIONS
    assert printed(pipeline, "evaluate", "a.npz") == of_scores
    assert printed(pipeline, "evaluate", "a.npz", "--same-text", "positive") == of_scores
    assert differences(pipeline, "a.npz", "b.npz") == differences(
        pipeline, "a.npy", "b.npy", *named
    )


def described(name: str, **said: Any) -> str:
    """Write the hits of a file again, with other facts; return the new file's name."""
    arrays = dict(np.load(f"{name}-hits.npz"))
    arrays["hits_facts"] = facts(**said)
    file = f"{name}-{'-'.join(said.values())}.npz"
    np.savez(file, **arrays)
    return file


def test_hits_of_another_split_or_data_set_are_not_compared_silently(
    pipeline: Any, refused: Callable[..., str], files: Path
) -> None:
    write(pipeline, "one")
    write(pipeline, "two")
    tested = described("one", dataset="flickr30k", split="test")
    other = described("two", split="val")
    said = "one-flickr30k-test is of the split test, two-val of val: only systems of one split"
    assert said in refused("compare", tested, other)
    named = described("two", dataset="coco")
    code, _, err = pipeline("compare", tested, named)
    assert code == 0, err
    assert "is of coco, one-flickr30k-test of flickr30k, as their files say" in " ".join(
        err.split()
    )
    (numbers,) = json.loads(pipeline("evaluate", tested, "--json")[1])
    assert (numbers["dataset"], numbers["split"]) == ("flickr30k", "test")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("evaluate", "one-hits.npz", *FOLDS), "holds ranks by protocol all"),
        (("evaluate", "one-hits.npz", "--metric", "nDCG@10"), "the rank of every right candidate"),
        (("evaluate", "one-hits.npz", "--run", "run.txt"), "--run and --card need the scores"),
        (("evaluate", "one-hits.npz", "--distance"), "leave out --distance"),
        (("evaluate", "one-hits.npz", "--as", "clip_benchmark"), "the score of every pair"),
        (("evaluate", "one-hits.npz", "--qrels", "qrels.txt"), "leave out --qrels"),
        (("explain", "one-hits.npz", "--published", "P@5=30"), "the rank of every right candidate"),
        (
            ("explain", "one-hits.npz", "--published", "RSUM=3", *FOLDS),
            "holds ranks by protocol all",
        ),
        (
            ("evaluate", "run.txt", "--captions-per-image", "1", "--hits", "x.npz"),
            "the lists of run may leave open: give scores of all pairs; or publish the lists",
        ),
    ],
)
def test_what_hits_cannot_tell_is_refused(
    pipeline: Any, refused: Callable[..., str], files: Path, command: tuple[str, ...], said: str
) -> None:
    write(pipeline, "one")
    Path("qrels.txt").write_text("caption:5021 0 image:101 1\n")
    Path("run.txt").write_text("caption:0 Q0 image:0 1 0.5 mine\n")
    assert said in refused(*command)
    assert not Path("x.npz").exists()


@pytest.mark.parametrize("folder", ["there", "of/each/"])
def test_a_folder_has_a_file_of_each_system(pipeline: Any, files: Path, folder: str) -> None:
    Path("there").mkdir()
    systems = ("one.npz", "Ours/Ü (best) =two.npz")
    code, _, err = pipeline("evaluate", *systems, "--hits", folder)
    assert code == 0, err
    alone = {"one": "one.npz", "Ours-Ü-best": "two.npz"}
    assert {path.stem for path in Path(folder).iterdir()} == {*alone}
    for stem, file in alone.items():
        of_scores = printed(pipeline, "evaluate", file)
        assert printed(pipeline, "evaluate", f"{folder}/{stem}.npz") == of_scores


def test_seeds_have_files_of_their_own(pipeline: Any, files: Path) -> None:
    np.savez("three.npz", **{**np.load("one.npz"), "scores": scores(3, 2.0)})
    assert pipeline("evaluate", "Ours=one.npz,three.npz", "--hits", "hits/")[0] == 0
    assert sorted(path.name for path in Path("hits").iterdir()) == ["one.npz", "three.npz"]


@pytest.mark.parametrize(
    ("systems", "place", "said"),
    [
        (("one.npz", "two.npz"), "x.npz", "or of the run, --hits FOLDER/ writes a file of each"),
        (("Ours=one.npz,two.npz",), "x.npz", "or of the run, --hits FOLDER/ writes a file of each"),
        (("A B=one.npz", "a-b=two.npz"), "new/", "one.npz and two.npz would both be new/a-b.npz"),
        (("∞=one.npz", "…=two.npz"), "new/", "cannot be a file's name"),
        (("one.npz", "two.npz"), "./", "is one of the files that are measured"),
        (("one.npz",), "x.npz/", "a new folder's name cannot end in .npz"),
        (("one.npz",), "new", "expected a name that ends in .npz, or in / for a folder"),
    ],
)
def test_files_of_hits_that_no_system_or_several_would_have_are_refused(
    refused: Callable[..., str], files: Path, systems: tuple[str, ...], place: str, said: str
) -> None:
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    assert said in refused("evaluate", *systems, "--hits", place)
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_a_fold_is_no_part_of_other_folds(
    pipeline: Any, refused: Callable[..., str], files: Path
) -> None:
    hits = write(pipeline, "one", *FOLDS)
    assert "holds ranks by protocol 4fold" in refused("evaluate", hits, "--folds", "2")
    assert "holds ranks by protocol 4fold" in refused("compare", hits, "one.npz", "--folds", "1")


def test_folds_of_images_in_another_order_are_said_so(
    pipeline: Any, refused: Callable[..., str], files: Path
) -> None:
    hits = [write(pipeline, "one", *FOLDS), write(pipeline, "two", *FOLDS)]
    assert "with images in this order if it has folds" in refused("compare", *hits)


def test_seeds_by_two_protocols_have_no_mean(
    pipeline: Any, refused: Callable[..., str], files: Path
) -> None:
    hits = write(pipeline, "one", *FOLDS)
    said = "two: is measured by protocol all, one-hits by 4fold: no mean"
    assert said in refused("evaluate", f"A={hits},two.npz")
    code, out, err = pipeline("evaluate", f"A={hits},two.npz", *FOLDS)
    assert code == 0, err
    assert out.count("protocol 4fold") == 1


def test_a_name_that_is_no_unicode_is_written_with_escapes(pipeline: Any, files: Path) -> None:
    Path("one.npz").rename("\udcff.npz")
    hits = write(pipeline, "\udcff")
    assert json.loads(np.load(hits)["hits_facts"].tobytes())["system"] == "\\udcff"


def facts(**changed: Any) -> np.ndarray:
    said = {
        "version": 1,
        "system": "a",
        "dataset": "",
        "split": "",
        "protocol": "all",
        "folds": 1,
        "images": IMAGES,
        "languages": [],
        "right": "own",
        "judgements": "",
        "scores": "",
    }
    return np.frombuffer(json.dumps(said | changed).encode(), np.uint8)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("hits_facts", facts(version=2, more=1), "written by a newer version of this package"),
        ("hits_facts", facts(version=0), "is not what this version reads"),
        ("hits_facts", facts(more=1), "is not what this version reads"),
        ("hits_facts", facts(protocol="\x1b[31m"), r"by protocol \x1b[31m, which is unknown here"),
        ("hits_facts", facts(protocol="3fold", folds=3), "cannot be cut into 3 folds"),
        ("hits_facts", facts(protocol="4fold", folds=4), "has 200 numbers, expected 206"),
        ("hits_facts", np.frombuffer(b"[" * 9000, np.uint8), "is not what this version reads"),
        ("hits_facts", np.zeros(20_000, np.uint8), "hits_facts is uint8 [20000]"),
        ("i2t_greater", np.full(IMAGES, CAPTIONS), "i2t counts 200 above"),
        ("t2i_greater", np.full(CAPTIONS, -1), "t2i counts -1 above"),
        (
            "t2i_equal",
            np.full(CAPTIONS, np.iinfo(np.uint64).max, np.uint64),
            "t2i_equal has numbers beyond",
        ),
        ("t2i_right", np.ones(CAPTIONS, int), "and 1 right of 40 candidates, of which 0 are right"),
        ("i2t_right", np.ones(IMAGES), "i2t_right is float64 [40], expected one column of whole"),
        ("i2t_right", np.ones((2, 20), int), "i2t_right is int64 [2, 20]"),
        ("i2t_right", None, "has no i2t_right"),
        ("caption_image", np.full(CAPTIONS, IMAGES), "names other rows than those of 40 images"),
        ("image_ids", 2**63 + np.arange(IMAGES, dtype=np.uint64), "image_ids has numbers beyond"),
        ("caption_ids", np.zeros(CAPTIONS, int), "caption_ids has an id twice"),
        ("caption_ids", None, "has ids of one side alone"),
        ("image_ids", np.arange(3), "image_ids has 3 numbers, expected 40"),
    ],
)
def test_damaged_hits_are_refused(
    pipeline: Any,
    refused: Callable[..., str],
    files: Path,
    name: str,
    value: np.ndarray | None,
    said: str,
) -> None:
    arrays = dict(np.load(write(pipeline, "one")))
    if value is None:
        del arrays[name]
    else:
        arrays[name] = value
    np.savez("damaged.npz", **arrays)
    assert said in refused("evaluate", "damaged.npz")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("t2i_judged", np.full(CAPTIONS, -1), "t2i_judged counts others than 40 candidates"),
        ("t2i_judged", np.full(CAPTIONS, IMAGES + 1), "t2i_judged counts others than 40"),
        ("t2i_answer", np.full(120, IMAGES), "t2i_answer names others than 40 candidates"),
        ("t2i_answer", np.zeros(120, int), "names a candidate of a query twice"),
        ("t2i_answer", np.zeros(3, int), "t2i_answer has 3 numbers, expected 120"),
        ("t2i_judged", None, "has no t2i_judged"),
        ("t2i_right", np.full(CAPTIONS, 3), "t2i counts"),
        ("hits_facts", "own", "0 right of 200 candidates, of which 5 are right"),
    ],
)
def test_damaged_judgements_are_refused(
    pipeline: Any,
    refused: Callable[..., str],
    files: Path,
    name: str,
    value: np.ndarray | str | None,
    said: str,
) -> None:
    arrays = dict(np.load(write(pipeline, "one", "--qrels", judge())))
    if value is None:
        del arrays[name]
    elif isinstance(value, str):
        arrays[name] = facts(right=value)
    else:
        arrays[name] = value
    np.savez("damaged.npz", **arrays)
    assert said in refused("evaluate", "damaged.npz")


def test_sizes_are_checked_before_memory_is_taken(
    pipeline: Any, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hits = write(pipeline, "one")
    monkeypatch.setattr(hits_file, "MOST", CAPTIONS - 1)
    with pytest.raises(InputError, match="caption_image has 200 numbers, more than 199"):
        open_system(hits)
