"""Options of another package's text encoder and scorer of pairs are checked with the settings, and
reach the part.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from pydantic import ValidationError

from pipeline.foundation import settings
from pipeline.foundation.parts import plugins
from pipeline.foundation.parts.errors import InputError
from pipeline.foundation.settings.paths import Paths
from pipeline.foundation.settings.run import Rerank
from pipeline.judge.systems import reranking
from pipeline.judge.systems.requests import RerankRequest
from pipeline.make import text
from pipeline.make.training.request import TrainRequest

SETTINGS = settings.load(Path(__file__).parents[2] / "params.yaml")
TRAINING = SETTINGS.training_of("sample")
PACKAGE = {
    "options": """from pipeline.foundation.settings import Section


class LettersOptions(Section):
    longest: int = 9


class OverlapOptions(Section):
    case: bool = False
""",
    "parts": """from pipeline.make.text.bigru import BiGRUText


class Letters(BiGRUText):
    @classmethod
    def learn(cls, captions, training, options):
        made = super().learn(captions, training)
        made.longest = options.longest
        return made


class Overlap:
    def __init__(self, name, source, options):
        self.name, self.case = name, options.case
""",
}


@pytest.fixture(autouse=True)
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A package with the text encoder `letters` and the scorer `overlap`."""
    (tmp_path / "vse_letters").mkdir()
    for module, code in {"__init__": "", **PACKAGE}.items():
        (tmp_path / "vse_letters" / f"{module}.py").write_text(code, encoding="utf-8")
    about = tmp_path / "vse_letters-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: vse-letters\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text(
        "[vse_pipeline.texts]\nletters = vse_letters.parts:Letters\n"
        "[vse_pipeline.scorers]\noverlap = vse_letters.parts:Overlap\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    plugins.all_offers.cache_clear()
    yield
    for module in [name for name in sys.modules if name.partition(".")[0] == "vse_letters"]:
        del sys.modules[module]
    plugins.all_offers.cache_clear()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"letters": {"longst": 3}},
            "unknown option of the text encoder letters, 'longst'; did you mean longest",
        ),
        ({"letters": {"longest": "many"}}, "text encoder letters: longest: .*integer"),
        (
            {"bigru": {"longest": 3}},
            "unknown option of the text encoder bigru, 'longest'; its options: none",
        ),
        ({"leters": {}}, "unknown text encoder 'leters'; did you mean letters"),
    ],
)
def test_a_wrong_option_of_a_text_encoder_is_refused_with_the_settings(
    options: object, said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        settings.Training.model_validate({**TRAINING.model_dump(), "texts": options})


@pytest.mark.parametrize(
    ("scorer", "options", "said"),
    [
        (
            "overlap:x",
            {"cse": True},
            "unknown option of the scorer overlap, 'cse'; did you mean case",
        ),
        ("overlap:x", {"case": "big"}, "scorer overlap: case: .*boolean"),
        ("blip:x", {"case": True}, "unknown option of the scorer blip, 'case'; its options: none"),
        (
            "grid",
            {"case": True},
            "options are those of a kind of scorer, KIND:NAME, and grid is a system's name",
        ),
    ],
)
def test_a_wrong_option_of_a_scorer_is_refused_with_the_settings(
    scorer: str, options: object, said: str
) -> None:
    with pytest.raises(ValidationError, match=said):
        Rerank.model_validate({"name": "x", "retriever": "R", "with": scorer, "options": options})


def test_options_reach_the_text_encoder_and_its_heads_request() -> None:
    training = settings.Training.model_validate(
        {**TRAINING.model_dump(), "texts": {"letters": {"longest": 3}}}
    )
    kind, further = text.TEXTS["letters"], text.TEXTS.further("letters", training.texts["letters"])
    assert kind.learn(["a b c d e"] * 5, training, *further).longest == 3  # type: ignore[attr-defined]
    recipe = SETTINGS.recipe("vse2ad")
    asked = TrainRequest.of("vse2ad", "region", "letters", 0, recipe, training)
    assert asked.recorded()["training"]["texts"] == {"letters": {"longest": 3}}
    assert (
        "texts"
        not in TrainRequest.of("vse2ad", "region", "bigru", 0, recipe, training).recorded()[
            "training"
        ]
    )


def test_options_reach_the_scorer_and_the_request_of_what_it_reranks(tmp_path: Path) -> None:
    step = Rerank.model_validate(
        {"name": "x", "retriever": "R", "with": "overlap:y", "options": {"case": True}}
    )
    source = reranking.PairSource(
        Paths(tmp_path), "sample", "sample", "sample", options=step.options
    )
    assert reranking.build("overlap", "y", source).case  # type: ignore[attr-defined]
    asked = RerankRequest(
        name="x",
        scorer=("overlap", "y"),
        protocol=("all", 1),
        k=2,
        combine="scorer",
        weight=0,
        options=step.options,
    )
    assert asked.recorded()["options"] == {"case": True}
    with pytest.raises(InputError, match="unknown option of the scorer overlap"):
        reranking.build(
            "overlap", "y", reranking.PairSource(Paths(tmp_path), "a", "a", "a", options={"cse": 1})
        )
