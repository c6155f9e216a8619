"""torchvision's detectors, graphs, given boxes and the maps of other networks."""

from __future__ import annotations

import csv
import json
import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
import timm
import tiny_detectors
import torch
from PIL import Image
from safetensors.torch import save_file
from torchvision import models
from torchvision.models import detection, get_model
from torchvision.transforms.functional import pil_to_tensor

from pipeline.extensions.detector.pooling import FeatureMap
from pipeline.foundation.files.images import ImageError
from pipeline.foundation.parts.errors import InputError, InputWarning
from pipeline.make.features import extractors
from pipeline.make.features.extraction import needs
from pipeline.make.features.extractors import Runtime
from pipeline.make.features.extractors.given_boxes import GivenBoxes

pytestmark = pytest.mark.slow

NOISE = np.random.default_rng(0).integers(0, 256, (60, 90, 3), np.uint8)
# Detector of torchvision -> options that leave out what its own `forward` does after its network.
TORCHVISION: dict[str, dict[str, Any]] = {
    "fasterrcnn_mobilenet_v3_large_320_fpn": {
        "box_nms_thresh": 1.0,
        "box_score_thresh": 0.0,
        "box_detections_per_img": 10**6,
    },
    "ssdlite320_mobilenet_v3_large": {
        "nms_thresh": 1.0,
        "score_thresh": 0.0,
        "detections_per_img": 10**6,
        "topk_candidates": 10**6,
    },
    "retinanet_resnet50_fpn": {
        "nms_thresh": 1.0,
        "score_thresh": 0.0,
        "detections_per_img": 10**6,
        "topk_candidates": 10**6,
        "min_size": 64,
        "max_size": 128,
    },
    "fcos_resnet50_fpn": {
        "nms_thresh": 1.0,
        "score_thresh": 0.0,
        "detections_per_img": 10**6,
        "topk_candidates": 10**6,
        "min_size": 64,
        "max_size": 128,
    },
}


def photograph(name: str = "") -> Image.Image:
    image = Image.fromarray(NOISE)
    image.info["file"] = name
    return image


def build(**options: Any) -> Any:
    return extractors.build("detector", options, Runtime())


@pytest.mark.parametrize("name", TORCHVISION)
def test_torchvisions_own_detections_are_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = {
        key: TORCHVISION[name][key] for key in ("min_size", "max_size") if key in TORCHVISION[name]
    }
    # Else photographs have 800 pixels.
    monkeypatch.setattr(models, "get_model", partial(get_model, **sizes))
    for detector in (detection.retinanet, detection.fcos):
        monkeypatch.setattr(detector, "resnet50", models.resnet18)
    torch.manual_seed(0)
    library = tiny_detectors.redraw(
        get_model(name, weights=None, weights_backbone=None, num_classes=6, **TORCHVISION[name])
    )
    save_file(
        {
            f"module.{key}": value for key, value in library.state_dict().items()
        },  # as DataParallel writes it
        tmp_path / "detector.safetensors",
    )
    engine = build(weights=str(tmp_path / "detector.safetensors"), network=name)
    image = photograph()
    with torch.inference_mode():
        (found,) = engine.finder.find([engine.prepare(image).inputs], [image.size])
        given = library([pil_to_tensor(image).float() / 255])[0]
    assert_found(found, given, image.size)
    items = engine.extract([engine.prepare(image)], [image.size])[0]
    assert items.features.shape[1] == engine.dimension


def assert_found(found: Any, library: Any, size: tuple[int, int]) -> None:
    """The library's detections without its suppression hold each of our 20 best, and none is
    better.
    """
    boxes, best = (
        found.boxes.clamp(min=0).minimum(torch.tensor(size * 2)),
        found.scores.argsort(descending=True)[:20],
    )
    for box, score, label in zip(boxes[best], found.scores[best], found.labels[best], strict=True):
        same = (library["labels"] == label) & (
            (library["boxes"] - box).abs().amax(1) < max(size) * 1e-5
        )
        assert same.any()
        assert float((library["scores"][same] - score).abs().min()) < 1e-5
    assert float(library["scores"].max()) == pytest.approx(float(found.scores.max()), abs=1e-5)


def test_another_networks_weights_are_refused(tmp_path: Path) -> None:
    save_file(
        {"roi_heads.box_predictor.cls_score.bias": torch.zeros(6)}, tmp_path / "other.safetensors"
    )
    with pytest.raises(
        InputError, match="arrays do not fit torchvision's ssdlite320_mobilenet_v3_large"
    ):
        build(weights=str(tmp_path / "other.safetensors"), network="ssdlite320_mobilenet_v3_large")


def test_weights_need_the_name_of_their_network(tmp_path: Path) -> None:
    (tmp_path / "frcnn.pth").touch()
    with pytest.raises(
        InputError,
        match=r"frcnn\.pth: is a file of weights; set network to its name in torchvision",
    ):
        build(weights=str(tmp_path / "frcnn.pth"))


def test_an_unknown_detector_of_torchvision_is_refused() -> None:
    with pytest.raises(
        InputError, match="no detector of torchvision; did you mean fcos_resnet50_fpn"
    ):
        build(weights="untrained", network="fcos_resnet50")


def test_detectron2s_own_detections_are_found(tmp_path: Path) -> None:
    config: Any = pytest.importorskip("detectron2.config").get_cfg()
    config.merge_from_list(
        [
            "MODEL.DEVICE",
            "cpu",
            "INPUT.MIN_SIZE_TEST",
            64,
            "INPUT.MAX_SIZE_TEST",
            128,
            "MODEL.RESNETS.DEPTH",
            18,
            "MODEL.BACKBONE.NAME",
            "build_resnet_fpn_backbone",
            "MODEL.FPN.IN_FEATURES",
            ["res4", "res5"],
            "MODEL.RESNETS.OUT_FEATURES",
            ["res4", "res5"],
            "MODEL.RESNETS.RES2_OUT_CHANNELS",
            64,
            "MODEL.FPN.OUT_CHANNELS",
            16,
            "MODEL.ANCHOR_GENERATOR.SIZES",
            [[32], [64], [128]],
            "MODEL.RPN.IN_FEATURES",
            ["p4", "p5", "p6"],
            "MODEL.RPN.POST_NMS_TOPK_TEST",
            50,
            "MODEL.ROI_HEADS.NAME",
            "StandardROIHeads",
            "MODEL.ROI_HEADS.IN_FEATURES",
            ["p4", "p5"],
            "MODEL.ROI_HEADS.NUM_CLASSES",
            5,
            "MODEL.ROI_HEADS.NMS_THRESH_TEST",
            1.0,
            "MODEL.ROI_HEADS.SCORE_THRESH_TEST",
            0.0,
            "TEST.DETECTIONS_PER_IMAGE",
            10**6,
            "MODEL.ROI_BOX_HEAD.NAME",
            "FastRCNNConvFCHead",
            "MODEL.ROI_BOX_HEAD.NUM_FC",
            1,
            "MODEL.ROI_BOX_HEAD.FC_DIM",
            32,
            "MODEL.ROI_BOX_HEAD.POOLER_RESOLUTION",
            4,
        ]
    )
    (tmp_path / "rcnn.yaml").write_text(config.dump())
    engine = build(weights="untrained", network=str(tmp_path / "rcnn.yaml"), items="queries")
    image = photograph()
    prepared = engine.prepare(image).inputs
    with torch.inference_mode():
        (found,) = engine.finder.find([prepared], [image.size])
        given = engine.finder.network([{"image": prepared["pixels"], "height": 60, "width": 90}])[
            0
        ]["instances"]
    library = {
        "boxes": given.pred_boxes.tensor,
        "scores": given.scores,
        "labels": given.pred_classes,
    }
    assert_found(found, library, image.size)
    assert (engine.dimension, engine.reported_as) == (32, "detector-rcnn-36-queries")


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A YOLOS as its exporters write it, with its preprocessing and classes beside it."""
    folder = tiny_detectors.written(tmp_path_factory.mktemp("graph"), "yolos")
    network = build(weights=str(folder)).finder.network

    class Exported(torch.nn.Module):
        def forward(self, pixel_values: torch.Tensor) -> Any:
            out = network(pixel_values)
            return out.logits, out.pred_boxes, out.last_hidden_state

    torch.onnx.export(
        Exported(),
        (torch.zeros(1, 3, 64, 96),),
        folder / "model.onnx",
        input_names=["pixel_values"],
        output_names=["logits", "pred_boxes", "last_hidden_state"],
        dynamo=False,
    )
    return folder


def test_a_graph_finds_what_its_network_finds(graph: Path) -> None:
    network, engine = (
        build(weights=str(each), items="queries") for each in (graph, graph / "model.onnx")
    )
    image = photograph()
    expected, found = (
        each.extract([each.prepare(image)], [image.size])[0] for each in (network, engine)
    )
    np.testing.assert_allclose(found.features, expected.features, atol=1e-4)
    np.testing.assert_allclose(found.extras["boxes"], expected.extras["boxes"], atol=1e-3)
    session = onnxruntime.InferenceSession(graph / "model.onnx")
    logits, *_ = session.run(
        None, {"pixel_values": engine.prepare(image).inputs["pixel_values"][None].numpy()}
    )
    (given,) = engine.finder.find([engine.prepare(image).inputs], [image.size])
    scores = torch.from_numpy(logits[0]).softmax(1)[:, :-1].amax(1)
    torch.testing.assert_close(given.scores, scores, atol=1e-5, rtol=0)
    with pytest.raises(InputError, match="shows no map of its own; set map_network"):
        build(weights=str(graph / "model.onnx"))


def test_a_graph_alone_says_how_its_classes_are_read(graph: Path, tmp_path: Path) -> None:
    engine = build(weights=str(graph / "model.onnx"), items="queries")
    for file in ("model.onnx", "preprocessor_config.json"):
        shutil.copy(graph / file, tmp_path)
    with pytest.warns(
        InputWarning,
        match=r"model\.onnx: no config\.json is beside it, so every logit is read as a",
    ):
        alone = build(weights=str(tmp_path / "model.onnx"), items="queries")
    assert alone.weights != engine.weights


def test_what_is_no_graph_of_a_detector_is_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no graph")
    with pytest.raises(InputError, match="OpenVINO cannot read it"):
        build(weights=str(tmp_path / "broken.onnx"))
    torch.onnx.export(
        torch.nn.Conv2d(3, 4, 1),
        (torch.zeros(1, 3, 32, 32),),
        tmp_path / "other.onnx",
        dynamo=False,
    )
    with pytest.raises(InputError, match=r"expected boxes \[1, Q, 4\] and logits"):
        build(weights=str(tmp_path / "other.onnx"))


OTHER = {"map_network": "test_efficientnet", "map_size": 128}
CORNERS = [[1.0, 2, 31, 42], [10, 10, 60, 50]]


def written(folder: Path, kind: str, corners: Any = CORNERS) -> dict[str, str]:
    scores, classes = [0.25, 0.5], [3, 7]
    rows = [
        {
            "file_name": "a.jpg",
            **dict(zip(("x_min", "y_min", "x_max", "y_max"), each, strict=True)),
            "class_id": label,
            "confidence": score,
        }
        for each, score, label in zip(corners, scores, classes, strict=True)
    ]
    coco = [
        {"image_id": 7, "category_id": label, "score": score, "bbox": [x1, y1, x2 - x1, y2 - y1]}
        for (x1, y1, x2, y2), score, label in zip(corners, scores, classes, strict=True)
    ]
    dataset = {
        "images": [{"id": 7, "file_name": "a.jpg"}],
        "categories": [{"id": 3}, {"id": 7}],
        "annotations": coco,
    }
    if kind == "folder":
        np.savez(folder / "a.npz", boxes=corners, scores=scores, labels=classes)
        return {"boxes": str(folder)}
    if kind == "csv":
        with (folder / "a.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return {"boxes": str(folder / "a.csv")}
    (folder / "boxes.json").write_text(
        json.dumps({"sink": rows, "dataset": dataset}.get(kind, coco))
    )
    (folder / "data.json").write_text(json.dumps(dataset))
    images = {"box_images": str(folder / "data.json")} if kind == "named" else {}
    return {"boxes": str(folder / "boxes.json"), **images}


@pytest.mark.parametrize("kind", ["folder", "csv", "sink", "dataset", "named", "results"])
def test_boxes_from_a_file_are_selected_as_a_detectors(kind: str, tmp_path: Path) -> None:
    engine = build(**written(tmp_path, kind), **OTHER, whole_image=True)
    image = photograph(
        "photos/COCO_val2014_000000000007.jpg" if kind == "results" else "photos/a.jpg"
    )
    items = engine.extract([engine.prepare(image)], [image.size])[0]
    np.testing.assert_allclose(items.extras["boxes"], [[0, 0, 90, 60], CORNERS[1], CORNERS[0]])
    assert items.extras["object"].tolist() == [-1, 7, 3]
    np.testing.assert_allclose(items.extras["object_score"], [1, 0.5, 0.25])
    assert (engine.depends_on_id, engine.reported_as) == (
        True,
        "detector-given-36-whole-test_efficientnet-128px",
    )
    with pytest.raises(ImageError, match=r"no boxes are given for b\.jpg"):
        engine.prepare(photograph("b.jpg"))
    with pytest.raises(ImageError, match="must be of the upright photograph"):
        engine.prepare(_turned(image))


@pytest.mark.parametrize("kind", ["npz", "folder", "csv", "sink", "dataset", "results", "pt"])
def test_boxes_that_are_shares_of_the_size_are_refused(kind: str, tmp_path: Path) -> None:
    shares = [[x1 / 90, y1 / 60, x2 / 90, y2 / 60] for x1, y1, x2, y2 in CORNERS]
    if kind == "npz":
        path = tmp_path / "boxes.npz"
        np.savez(path, **{"a.jpg": shares})
    elif kind == "pt":
        path = tmp_path / "boxes.pt"
        torch.save({"a.jpg": {"boxes": torch.tensor(shares)}}, path)
    else:
        path = Path(written(tmp_path, kind, shares)["boxes"])
    with pytest.raises(InputError, match=r"boxes from 0 to 1: multiply by the size"):
        GivenBoxes(path)


def test_of_one_photograph_shares_of_the_size_are_refused_too(tmp_path: Path) -> None:
    np.savez(tmp_path / "boxes.npz", **{"a.jpg": CORNERS, "b.jpg": [[0.1, 0.2, 0.9, 1.01]]})
    given = GivenBoxes(tmp_path / "boxes.npz")
    assert len(given.of(photograph("a.jpg")).boxes) == 2
    with pytest.raises(ImageError, match="boxes from 0 to 1"):
        given.of(photograph("b.jpg"))


@pytest.mark.parametrize(
    ("corners", "kind", "named", "causes"),
    [
        ([[0.0, 0, 500, 900]], "csv", "0 0 500 900", ["size / 1000"]),
        ([[0.0, 0, 2000, 1500]], "csv", "0 0 2000 1500", []),
        ([[50.0, 10, 140, 60]], "results", "50 10 140 60", ["size / 1000", "COCO's bbox is x y"]),
        ([[-9.0, 0, 20, 20]], "folder", "-9 0 20 20", ["size / 1000"]),
    ],
)
def test_the_box_that_is_outside_is_named_with_what_may_be_wrong(
    corners: Any, kind: str, named: str, causes: list[str], tmp_path: Path
) -> None:
    several = [corners[0], [0.0, 0, 9, 9]]
    given = GivenBoxes(Path(written(tmp_path, kind, several)["boxes"]))
    file = "COCO_val2014_000000000007.jpg" if kind == "results" else "a.jpg"
    with pytest.raises(ImageError) as refused:
        given.of(photograph(file))
    message = str(refused.value)
    assert message.startswith(f"the box {named} is outside the image, which has 90 x 60 pixels; ")
    assert "must be of the upright photograph" in message
    every = ["size / 1000", "COCO's bbox is x y"]
    assert [cause for cause in every if cause in message] == causes


def detected(kind: str, folder: Path) -> Path:
    """The boxes of a.jpg, with scores 0.25 and 0.5, as other libraries write them."""
    scores, classes = [0.25, 0.5], [3, 7]
    path = folder / ("boxes.json" if kind == "pipeline" else "boxes.pth")
    if kind == "pipeline":
        names = ("xmin", "ymin", "xmax", "ymax")
        found = [
            {"score": score, "label": label, "box": dict(zip(names, corners, strict=True))}
            for score, label, corners in zip(scores, ("dog", "cat"), CORNERS, strict=True)
        ]
        path.write_text(json.dumps({"photos/a.jpg": found, "b.jpg": []}))
        return path
    tensors = {
        "boxes": torch.tensor(CORNERS),
        "scores": torch.tensor(scores),
        "labels": torch.tensor(classes),
    }
    instances = [
        {"image_id": 7, "category_id": label, "score": score, "bbox": [x1, y1, x2 - x1, y2 - y1]}
        for (x1, y1, x2, y2), score, label in zip(CORNERS, scores, classes, strict=True)
    ]
    held = {
        "post-processed": {"a.jpg": tensors},
        "tensors": {"a.jpg": tensors["boxes"]},
        "detectron2": [{"image_id": 7, "instances": instances}],
    }
    torch.save(held[kind], path)
    return path


@pytest.mark.parametrize("kind", ["pipeline", "post-processed", "tensors", "detectron2"])
def test_what_libraries_detected_is_read(kind: str, tmp_path: Path) -> None:
    given = GivenBoxes(detected(kind, tmp_path))
    file = "COCO_val2014_000000000007.jpg" if kind == "detectron2" else "photos/a.jpg"
    found = given.of(photograph(file))
    np.testing.assert_array_equal(found.boxes, np.array(CORNERS, np.float32))
    if kind == "tensors":
        assert (found.scores, found.labels) == (None, None)
        return
    assert found.scores is not None
    assert found.labels is not None
    assert found.scores.tolist() == [0.25, 0.5]
    # Of texts, a class is its number in alphabetical order: cat, dog.
    assert found.labels.tolist() == ([1, 0] if kind == "pipeline" else [3, 7])
    if kind == "pipeline":
        assert given.of(photograph("b.jpg")).boxes.shape == (0, 4)


def test_numbers_of_classes_are_kept_and_those_of_texts_are_their_places(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    corners = dict(zip(("xmin", "ymin", "xmax", "ymax"), CORNERS[0], strict=True))
    for labels, classes in (
        ([7, 3, 0], [7, 3, 0]),
        (["dog", "cat", "dog"], [1, 0, 1]),
        ([7, None, 3], None),
    ):
        detections = [{"score": 0.5, "label": label, "box": corners} for label in labels]
        path.write_text(json.dumps({"a.jpg": detections}))
        found = GivenBoxes(path).of(photograph("a.jpg"))
        assert (found.labels is None) == (classes is None)
        if found.labels is not None:
            assert found.labels.tolist() == classes


def test_ids_of_a_data_set_are_named_by_its_own_file_or_another(tmp_path: Path) -> None:
    path, elsewhere = tmp_path / "boxes.json", tmp_path / "images.json"
    boxes = [{"image_id": 1, "bbox": [1, 2, 30, 40]}, {"image_id": 2, "bbox": [3, 4, 20, 10]}]
    tree = {"annotations": [{"category_id": 0, **box} for box in boxes], "categories": [{"id": 0}]}
    names = [{"id": 1, "file_name": "a.jpg"}, {"id": 2, "file_name": "b.jpg"}]
    for here, there in ((names, []), (names[:1], names[1:]), ([], names)):
        path.write_text(json.dumps(tree | ({"images": here} if here else {})))
        elsewhere.write_text(json.dumps({"images": there}))
        given = GivenBoxes(path, elsewhere)
        assert given.of(photograph("a.jpg")).boxes.tolist() == [[1, 2, 31, 42]]
        assert given.of(photograph("b.jpg")).boxes.tolist() == [[3, 4, 23, 14]]
    path.write_text(json.dumps(tree | {"images": names}))
    elsewhere.write_text(json.dumps({"images": [{"id": 1, "file_name": "other.jpg"}]}))
    assert GivenBoxes(path, elsewhere).of(photograph("a.jpg")).boxes.tolist() == [[1, 2, 31, 42]]


def _turned(image: Image.Image) -> Image.Image:
    turned = image.resize((40, 90))
    turned.info["file"] = image.info["file"]
    return turned


def test_boxes_without_scores_are_all_taken_in_their_order(tmp_path: Path) -> None:
    corners = [CORNERS[0], CORNERS[0], CORNERS[1]]
    np.savez(tmp_path / "boxes.npz", **{"a.jpg": corners})
    engine = build(boxes=str(tmp_path / "boxes.npz"), **OTHER, min_boxes=1, max_boxes=2)
    image = photograph("a.jpg")
    items = engine.extract([engine.prepare(image)], [image.size])[0]
    assert (engine.items, items.extras["boxes"].tolist()) == (3, corners)
    np.testing.assert_array_equal(items.features[0], items.features[1])


def test_a_class_beyond_the_list_is_refused(tmp_path: Path) -> None:
    path = Path(written(tmp_path, "dataset")["boxes"])
    tree = json.loads(path.read_text())
    tree["annotations"][1]["category_id"] = 8
    path.write_text(json.dumps(tree))
    with pytest.raises(
        InputError, match=r"^boxes .*boxes\.json: the class 8 is not in its list of categories$"
    ):
        GivenBoxes(path)


@pytest.mark.parametrize("kind", ["npz", "folder", "csv", "sink", "dataset", "named"])
def test_a_photograph_without_boxes_is_one_item(kind: str, tmp_path: Path) -> None:
    options = written(tmp_path, "folder" if kind == "npz" else kind)
    if kind == "npz":
        np.savez(tmp_path / "boxes.npz", **{"a.jpg": CORNERS, "empty.jpg": []})
        options = {"boxes": str(tmp_path / "boxes.npz")}
    elif kind == "folder":
        np.savez(
            tmp_path / "empty.npz", boxes=np.zeros((0, 4)), scores=np.zeros(0), labels=np.zeros(0)
        )
    elif kind == "csv":
        with (tmp_path / "a.csv").open("a") as file:
            file.write("empty.jpg,,,,,,\nb.jpg,1,2,31,42,3.0,0.5\n")  # pandas makes classes floats
    else:
        images = Path(options["boxes" if kind != "named" else "box_images"])
        tree = json.loads(images.read_text())
        if kind == "sink":
            tree.append(
                {"file_name": "empty.jpg", **dict.fromkeys(("x_min", "y_min", "x_max", "y_max"))}
            )
        else:
            tree["images"].append({"id": 8, "file_name": "empty.jpg"})
        images.write_text(json.dumps(tree))
    engine = build(**options, **OTHER)
    image = photograph("photos/empty.jpg")
    items = engine.extract([engine.prepare(image)], [image.size])[0]
    assert items.extras["boxes"].tolist() == [[0, 0, 90, 60]]
    assert items.extras["object"].tolist() == [-1]


@pytest.mark.parametrize("name", ["/data/images/{}", "C:\\images\\{}", "val2014/{}", "{}"])
def test_names_of_boxes_may_have_other_folders(name: str, tmp_path: Path) -> None:
    np.savez(
        tmp_path / "boxes.npz", **{name.format("a.jpg"): CORNERS, name.format("b.jpg"): CORNERS[:1]}
    )
    given = GivenBoxes(tmp_path / "boxes.npz")
    assert [len(given.of(photograph(f"photos/{file}")).boxes) for file in ("a.jpg", "b.jpg")] == [
        2,
        1,
    ]


def test_boxes_are_those_of_one_photograph(tmp_path: Path) -> None:
    np.savez(tmp_path / "boxes.npz", **{"train/1.jpg": CORNERS, "2.jpg": CORNERS})
    given = GivenBoxes(tmp_path / "boxes.npz")
    assert given.of(photograph("photos/train/1.jpg")) is given.of(photograph("photos/train/1.jpg"))
    with pytest.raises(
        ImageError, match=r"no boxes are given for 1\.jpg, but for train/1\.jpg, for example"
    ):
        GivenBoxes(tmp_path / "boxes.npz").of(photograph("photos/val/1.jpg"))
    assert given.of(photograph("photos/a/2.jpg"))
    with pytest.raises(
        ImageError, match=r"the boxes of 2\.jpg may also be those of photos/a/2\.jpg"
    ):
        given.of(photograph("photos/b/2.jpg"))
    np.savez(tmp_path / "boxes.npz", **{"train/1.jpg": CORNERS, "val/1.jpg": CORNERS[:1]})
    given = GivenBoxes(tmp_path / "boxes.npz")
    assert [
        len(given.of(photograph(f"photos/{name}/1.jpg")).boxes) for name in ("train", "val")
    ] == [2, 1]
    with pytest.raises(
        ImageError, match=r"no boxes are given for 1\.jpg, but for train/1\.jpg, for example"
    ):
        given.of(photograph("photos/1.jpg"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("boxes.json", '[{"image_id": 82, "bbox": [0, 0, 9, 9]}]'),
        ("boxes.csv", "image_id,x_min,y_min,x_max,y_max\n82,0,0,9,9\n"),
    ],
)
def test_an_id_is_no_end_of_a_digest(file: str, content: str, tmp_path: Path) -> None:
    (tmp_path / file).write_text(content)
    given = GivenBoxes(tmp_path / file)
    assert len(given.of(photograph("COCO_val2014_000000000082.jpg")).boxes) == 1
    with pytest.raises(
        ImageError, match="for 82, for example; box_images may name the file of such an id"
    ):
        given.of(photograph("2076906555_c20dc082.jpg"))


def test_a_class_has_all_its_digits(tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", boxes=CORNERS, scores=[0.5, 0.4], labels=[16777217, 3])
    given = GivenBoxes(tmp_path).of(photograph("a.jpg"))
    assert given.labels is not None
    assert given.labels.tolist() == [16777217, 3]  # float32 has 16777216


@pytest.mark.parametrize("label", ["nan", "3.7", "inf"])
def test_a_class_is_a_whole_number(label: str, tmp_path: Path) -> None:
    (tmp_path / "boxes.csv").write_text(
        f"file_name,x_min,y_min,x_max,y_max,class_id\na.jpg,0,0,9,9,{label}\n"
    )
    with pytest.raises(InputError, match="expected whole numbers as classes"):
        GivenBoxes(tmp_path / "boxes.csv")


@pytest.mark.filterwarnings("error")
def test_boxes_of_an_archive_become_tensors_without_a_warning(tmp_path: Path) -> None:
    np.savez(tmp_path / "boxes.npz", **{"a.jpg": np.array(CORNERS, np.float32)})
    engine = build(boxes=str(tmp_path / "boxes.npz"), **OTHER)
    assert engine.prepare(photograph("a.jpg")).inputs["boxes"].tolist() == CORNERS


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        (
            "b.csv",
            "file_name,x1,y1,x2,y2\na.jpg,0,0,9,9\n",
            "a.jpg has no x_min; expected the columns x_min, y_min, x_max, y_max",
        ),
        (
            "b.json",
            '{"annotations": [], "images": [{"id": 1, "file_name": "a.jpg"}]}',
            "holds no boxes",
        ),
        (
            "b.json",
            '[{"bbox": [0, 0, 9, 9]}]',
            "not readable as .npz of numbers, COCO's JSON or supervision's tables",
        ),
        (
            "b.csv",
            "file,x_min,y_min,x_max,y_max,score\na.jpg,0,0,9,9,nan\n",
            "a.jpg: expected a score and a class",
        ),
        ("b.csv", "x_min,y_min,x_max,y_max\n0,0,9,9\n", "boxes b.csv: no column names the image"),
        (
            "b.csv",
            "ImageID,Source,LabelName,Confidence,XMin,XMax,YMin,YMax\na,x,/m/01,1,0.1,0.5,0.2,0.6\n",
            "is Open Images' table: boxes from 0 to 1: multiply by the size",
        ),
        ("yolo/a.txt", "0 0.2 0.2 0.4 0.4 0.9\n", "boxes yolo: holds .txt, as YOLO's labels are"),
        (
            "b.json",
            '[[{"score": 0.9, "label": "dog", "box": {"xmin": 0, "ymin": 0, "xmax": 9, "ymax": 9}}]]',
            "holds what was detected, and not of which photographs",
        ),
        ("b.json", '[{"boxes": [[0, 0, 9, 9]], "scores": [0.9]}]', "not of which photographs"),
        ("b.json", '{"a.jpg": "none"}', "a.jpg: holds no boxes; expected"),
    ],
)
def test_files_without_boxes_are_refused(
    file: str, content: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(file).parent.mkdir(exist_ok=True)
    Path(file).write_text(content)
    with pytest.raises(InputError, match=words):
        GivenBoxes(Path(file) if "/" not in file else Path(file).parent)


def test_a_broken_file_of_images_is_named(tmp_path: Path) -> None:
    options = written(tmp_path, "named")
    Path(options["box_images"]).write_text('{"images": [{"id": 7}]}')
    with pytest.raises(
        InputError, match=r"^box_images .*data.json: not readable as a COCO data set's JSON"
    ):
        build(**options, **OTHER)


@pytest.mark.parametrize("option", ["boxes", "box_images"])
def test_missing_files_of_boxes_are_named_before_a_network_is_loaded(
    option: str, tmp_path: Path
) -> None:
    options = {**written(tmp_path, "named"), option: str(tmp_path / "boxs.json")}
    reason = f"{option} {tmp_path}/boxs.json: there is no such file or folder; did you mean {tmp_path}/boxes.json?"
    assert needs.lacks("detector", {**options, **OTHER}) == [reason]
    with pytest.raises(InputError, match=reason[-20:-1]):
        build(**options, **OTHER)


@pytest.mark.parametrize(
    ("network", "size", "dimension"),
    [("test_efficientnet", 128, 256), ("test_vit", 160, 64), ("vit_small_patch16_dinov3", 64, 384)],
)
def test_another_networks_map_is_pooled(
    network: str, size: int, dimension: int, tmp_path: Path
) -> None:
    np.savez(tmp_path / "boxes.npz", **{"a.jpg": [[0.0, 0, 90, 60]], "b.jpg": [[0.0, 0, 90, 60]]})
    engine = build(
        boxes=str(tmp_path / "boxes.npz"), map_network=network, map_size=size, whole_image=True
    )
    image = photograph("a.jpg")
    items = engine.extract([engine.prepare(image)], [image.size])[0]
    assert (items.features.shape, engine.dimension) == ((2, dimension), dimension)
    np.testing.assert_array_equal(items.features[0], items.features[1])
    square = engine.prepare(image).square
    (shown,) = engine.other.maps([square], [image.size])
    np.testing.assert_allclose(items.features[0], shown.values.mean((1, 2)), atol=1e-4)
    model = timm.create_model(network)
    model.load_state_dict(engine.other.network.model.state_dict(), strict=False)
    config = model.eval().pretrained_cfg
    pixels = (square.float() / 255 - torch.tensor(config["mean"])) / torch.tensor(config["std"])
    with torch.inference_mode():
        values = model.forward_features(pixels.permute(2, 0, 1)[None])[0]
    if values.ndim == 2:  # tokens
        values = values[model.num_prefix_tokens :].T
    torch.testing.assert_close(shown.values.flatten(1), values.flatten(1), atol=1e-4, rtol=1e-4)


def test_a_map_of_a_part_of_the_photograph_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "boxes.npz", **{"a.jpg": CORNERS})
    with pytest.raises(
        InputError,
        match="map_size 100: is no whole number of the patches of test_vit; set it to 96 or 112",
    ):
        build(boxes=str(tmp_path / "boxes.npz"), map_network="test_vit", map_size=100)


def test_a_box_of_a_sloping_map_has_the_value_at_its_centre() -> None:
    """Cell j's centre is at j + 0.5 cells, as RoIAlign and Mask R-CNN have it."""
    down, across = torch.meshgrid(torch.arange(9.0), torch.arange(12.0), indexing="ij")
    slopes = FeatureMap(torch.stack([across, down]) + 0.5, 4, (0.25, 0.25))
    boxes = torch.tensor([[8.0, 4, 24, 20], [6, 10, 34, 14]])  # pixels, four a cell
    assert slopes.pooled(boxes).tolist() == [[4, 3], [5, 3]]
