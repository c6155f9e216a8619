"""Which files of a folder are which system's on which task."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.extensions.board import folders


def found(folder: Path, files: dict[str, str]) -> list[tuple[str, str, str, str]]:
    """Write files, and tell of each that is found its task, unit, system and place."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    of_folder = []
    for each in folders.found_in(folder):
        of_folder.append((each.task, each.unit, each.system, each.file.removeprefix(f"{folder}/")))
    return of_folder


def test_mteb_has_a_folder_for_each_model_and_a_task_for_each_subset(tmp_path: Path) -> None:
    one = '{"mteb_model_meta": {"model_name": "o/m"}, "default": {"test": {"q": {"d": 1}}}}'
    two = '{"en": {"test": {"q": {"d": 1}, "r": {}}}, "de": {"test": {"q": {"d": 1}}}}'
    files = {"o__m/r1/Flickr_predictions.json": one, "o__m/r1/XM_predictions.json": two}
    assert found(tmp_path, files) == [
        ("Flickr", "", "o__m", "o__m/r1/Flickr_predictions.json"),
        ("XM en", "XM", "o__m", "o__m/r1/XM_predictions.json:en:test"),
        ("XM de", "XM", "o__m", "o__m/r1/XM_predictions.json:de:test"),
    ]
    assert {each.system for each in folders.found_in(tmp_path / "o__m")} == {"o__m"}


def test_a_model_with_one_of_mtebs_subsets_has_it_as_the_others_have_it(tmp_path: Path) -> None:
    both = '{"en": {"test": {"q": {"d": 1}}}, "de": {"test": {"q": {"d": 1}}}}'
    one = '{"en": {"test": {"q": {"d": 1}}}}'
    files = {"a/XM_predictions.json": both, "b/XM_predictions.json": one}
    assert [each[:3] for each in found(tmp_path, files)] == [
        ("XM en", "XM", "a"),
        ("XM de", "XM", "a"),
        ("XM en", "XM", "b"),
    ]


def test_mmeb_has_kinds_of_tasks_and_vectors_only_count_without_lists(tmp_path: Path) -> None:
    files = {
        "m/image/COCO_pred.jsonl": "",
        "m/image/COCO_qry": "",
        "m/visdoc/ViDoRe_qry": "",
        "m/visdoc/ViDoRe_info.jsonl": "",
    }
    assert found(tmp_path, files) == [
        ("COCO", "", "m", "m/image/COCO_pred.jsonl"),
        ("ViDoRe", "", "m", "m/visdoc/ViDoRe_qry"),
    ]
    assert {each.system for each in folders.found_in(tmp_path / "m")} == {"m"}


def test_ours_has_a_folder_for_each_task_with_seeds_in_folders_and_qrels(tmp_path: Path) -> None:
    files = {
        "t/siglip.npz": "",
        "t/bm25.trec.gz": "",
        "t/ours/1.npz": "",
        "t/ours/2.npz": "",
        "t/v1.5/1.npz": "",
        "t/qrels.txt": "",
        "t/store.zarr/zarr.json": "",
        "t/.hidden": "",
        "README.md": "",
    }
    assert found(tmp_path, files) == [
        ("t", "", "bm25", "t/bm25.trec.gz"),
        ("t", "", "ours", "t/ours/1.npz"),
        ("t", "", "ours", "t/ours/2.npz"),
        ("t", "", "qrels", "t/qrels.txt"),
        ("t", "", "siglip", "t/siglip.npz"),
        ("t", "", "store", "t/store.zarr"),
        ("t", "", "v1.5", "t/v1.5/1.npz"),
    ]
    assert [each.system for each in folders.found_in(tmp_path) if each.is_qrels] == ["qrels"]
    assert {each.system for each in folders.found_in(tmp_path) if each.is_seed} == {"ours", "v1.5"}


def test_damaged_predictions_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(folders.InputError, match=r"m_predictions\.json: "):
        found(tmp_path, {"a/m_predictions.json": '{"en": {"test": '})
