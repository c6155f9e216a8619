"""BERT (Devlin et al. 2019) through `transformers`: word pieces, and a pretrained network that is
fine-tuned.

DistilBERT and XLM-RoBERTa (Conneau et al. 2020), which knows a hundred languages, are used in the
same way. VSE∞ section 5.1.1 and A.1, VSE+2AD section 4.2 and B: bert-base-uncased, its tokens
projected from 768 to d.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from pipeline.foundation.files import model_folder, parsing
from pipeline.foundation.parts.errors import InputError, refusing
from pipeline.foundation.settings import Training
from pipeline.make.text.tower import TowerText

# Networks that read a caption between a first and a last token of their own: [CLS] and [SEP], <s>
# and </s>.
KINDS = ("bert", "distilbert", "xlm-roberta")


class BertText(TowerText):
    """Word pieces, and a BERT that reads them."""

    NOUN = "BERT"

    @classmethod
    def learn(cls, captions: Iterable[str], training: Training) -> "BertText":  # type: ignore[override]  # no options
        """Load the checkpoint `training.bert`: a folder, or a name on the Hugging Face hub."""
        return cls.of(training.bert, "set training.NAME.bert to the folder")

    @classmethod
    def _tokenizer(cls, folder: Path, config: Any) -> Any:
        tokenizer = super()._tokenizer(folder, config)
        special = (tokenizer.cls_token_id, tokenizer.sep_token_id, tokenizer.mask_token_id)
        if not tokenizer.is_fast or None in special:
            raise InputError(
                f"{folder}: not a BERT's tokenizer: expected tokenizer.json with [CLS], [SEP] and [MASK], "
                "or <s>, </s> and <mask>"
            )
        return tokenizer

    @classmethod
    def _pretrained(cls, folder: Path) -> tuple[Any, Any]:
        model_folder.check(folder)
        with refusing(
            (OSError, ValueError, KeyError, TypeError),
            f"{folder}: no BERT that can be read from config.json and model.safetensors",
        ):
            text = (folder / "config.json").read_text(encoding="utf-8")
            kind = parsing.from_json(text)["model_type"]
        if kind not in KINDS:
            raise InputError(f"{folder}: is a {kind}; expected one of {', '.join(KINDS)}")
        return super()._pretrained(folder)
