"""The plan of a step follows what its numbers depend on, and only that."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import plans
import pytest

from pipeline.foundation import settings
from pipeline.foundation.artefacts import record as records
from pipeline.foundation.settings.paths import Paths
from pipeline.run.provenance import results
from stages import plan as stage

pytestmark = pytest.mark.slow

RUN = ("-S", "run.features=[region]", "-S", "run.ensembles=[]", "-S", "run.ablations=[]")


@pytest.fixture
def planned(pipeline: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The parts of the plan with some settings changed."""
    monkeypatch.setattr("pipeline.make.features.extraction.needs.missing", lambda *_: [])

    def plan(*changes: str) -> dict[str, Any]:
        code, _, err = pipeline(
            "lab", "plan", *RUN, *(word for change in changes for word in ("-S", change))
        )
        assert code == 0, err
        return plans.read()

    return plan


def test_the_plan_of_evaluate_follows_its_seed_its_judgements_and_nothing_else(
    planned: Any,
) -> None:
    Path("q.txt").write_text("image:1 0 caption:1 1\n")
    before = planned()
    assert before == planned("evaluate.block_megabytes=3.5", "extract.workers=2")
    for change in (
        "evaluate.seed=7",
        "evaluate.resamples=123",
        "evaluate.same_text=positive",
        "evaluate.qrels=q.txt",
        "evaluate.metrics=[mR]",
    ):
        after = planned(change)
        assert {step for step in before if before[step] != after[step]} == {"evaluate"}, change
    one = planned("evaluate.qrels=q.txt")
    Path("q.txt").write_text("image:1 0 caption:2 1\n")
    assert judgements(planned("evaluate.qrels=q.txt")) != judgements(one)
    assert judgements(before) == {None}


ENCODER = "run.encoders=[{name: mine, model: 'clip:models/clip', prompt: 'a {}'%s}]"


def test_what_is_shown_follows_the_published_rows_that_are_shipped(
    planned: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = tmp_path / "manifests"
    (shipped / "published").mkdir(parents=True)
    monkeypatch.setattr(stage, "resources", SimpleNamespace(files=lambda package: shipped))
    plans_of_rows = []
    for row in ("VSE,45.2", "VSE,45.3"):
        (shipped / "published" / "table.csv").write_text(row)
        plans_of_rows.append(planned())
    before, after = plans_of_rows
    changed = {step for step in before if before[step] != after[step]}
    assert changed == {"tables", "figures", "report"}


def test_the_plan_of_finetune_follows_its_recipe_and_its_model(planned: Any, refused: Any) -> None:
    assert planned(ENCODER % "")["finetune"] == planned()["finetune"] == {}
    before = planned(ENCODER % ", finetune: lora")
    mine = before["finetune"]["mine"]
    assert mine["base"] == "clip:models/clip"
    assert mine["request"]["prompt"] == "a {}"
    assert (
        before["score"]["vectors of mine"]["request"]["encoder"]["model"]
        == "tuned:encoders/sample/mine"
    )
    assert before == planned(
        ENCODER % ", finetune: lora", "finetuning.all.epochs=9", "finetuning.lora.pieces=2"
    )
    for change in ("finetuning.lora.learning_rate=0.1", "finetuning.lora.weights.rank=2"):
        after = planned(ENCODER % ", finetune: lora", change)
        assert {step for step in before if before[step] != after[step]} == {"finetune"}, change
    assert (
        planned((ENCODER % ", finetune: lora").replace("clip:", "siglip:"))["finetune"]
        != before["finetune"]
    )
    assert "unknown section of finetuning 'lroa'; did you mean lora?" in refused(
        "lab", "plan", *RUN, "-S", ENCODER % ", finetune: lroa"
    )


def test_the_plan_of_a_head_of_caption_features_follows_their_tower(
    planned: Any, refused: Any
) -> None:
    run = ("run.texts=[bigru, features]", "training.sample.captions=words")
    tower = "features.light.words={engine: text-tower, weights: models/words}"
    before = planned(*run, tower)
    (head,) = {name for name in before["train"] if "features" in name}
    assert before["train"][head]["captions"]["request"]["engine"] == "text-tower"
    assert before["train"] == planned()["train"] | {head: before["train"][head]}
    after = planned(*run, tower.replace("models/words", "models/words, tokens: 12"))
    assert {step for step in before if before[step] != after[step]} == {"train"}
    assert {name for name in before["train"] if before["train"][name] != after["train"][name]} == {
        head
    }
    assert "name the feature of captions as training.NAME.captions" in refused(
        "lab", "plan", *RUN, "-S", run[0]
    )


def judgements(plan: dict[str, Any]) -> set[str | None]:
    return {part["request"]["judgements"] for part in plan["evaluate"].values()}


def test_the_plan_has_the_requests_that_records_hold(
    pipeline: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pipeline.make.features.extraction.needs.missing", lambda *_: [])
    changes = (
        "run.features=[region]",
        "run.ensembles=[R]",
        "run.ablations=[]",
        "run.rescorers=[{name: csls, neighbours: 2}]",
        "run.rerank=[{name: rr, retriever: region, with: R, k: 3, combine: add, weight: 0.5}]",
    )
    for command in (["ensemble"], ["rescore"], ["rerank"], ["evaluate"], ["lab", "plan"]):
        code, _, err = pipeline(*command, *(word for change in changes for word in ("-S", change)))
        assert code == 0, err
    plan, measured = plans.read(), results.read(Path("results/metrics.json"))
    stores = {path.stem: records.load(path) for path in Path("similarities/sample").glob("*.zarr")}
    assert {record.kind for record in stores.values()} == {
        "scores",
        "ensemble",
        "rescored",
        "reranked",
    }
    assert plan["score"] == {
        name: {"request": record.request, "versions": record.versions}
        for name, record in stores.items()
    }
    planned = plan["evaluate"]
    for name, each in measured.items():
        assert planned[name] == {"request": each.record.request, "versions": each.record.versions}
    # The head that R is made of alone is measured under the name of R.
    head = "vse2ad-region-bigru-s0"
    assert planned.keys() - measured.keys() == {head, f"{head}+csls"}


def test_the_plan_of_a_head_follows_the_one_that_it_starts_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start, name = "emb-region-bert-s0", "ce-listwise-region-bert-s0"
    chosen = settings.load(
        Path(__file__).parents[2] / "params.yaml",
        ("run.recipes=[ce-listwise]", "run.texts=[bert]", "run.seeds=[0]", "run.ablations=[]"),
    )
    paths = Paths(tmp_path)
    assert stage._train(paths, chosen, name)["rests_on"][start] is None

    class Trained:
        identity = "first"
        is_finished = staticmethod(lambda folder: folder == paths.head("sample", start))

        @classmethod
        def open(cls, folder: Path) -> Any:
            return SimpleNamespace(record=SimpleNamespace(identity=cls.identity))

    monkeypatch.setattr(stage.training, "HeadArtefact", Trained)
    assert stage._train(paths, chosen, name)["rests_on"][start] == "first"
    Trained.identity = "again"
    assert stage._train(paths, chosen, name)["rests_on"][start] == "again"
