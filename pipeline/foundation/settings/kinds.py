"""The kinds of parts that settings and options of commands name."""

from typing import Any

from pipeline.foundation.parts.lazy import LookupTable

# Kind of part -> the table of its names. These are text because the rooms of parts import this one.
TABLES: LookupTable[LookupTable[Any]] = LookupTable(
    {
        "caption_inputs": "pipeline.foundation.manifest.caption_inputs:CAPTION_INPUTS",
        "catalogues": "pipeline.judge.tables.catalogues:CATALOGUES",
        "dual_encoders": "pipeline.make.dual_encoders:DUAL_ENCODERS",
        "exporters": "pipeline.make.training.exporters:EXPORTERS",
        "extractors": "pipeline.make.features.extractors:ENGINES",
        "figures": "pipeline.run.report.figures:FIGURES",
        "heads": "pipeline.make.heads:HEADS",
        "indexes": "pipeline.foundation.evaluation.retrieval.top:INDEXES",
        "metrics": "pipeline.foundation.evaluation.metrics:METRICS",
        "objectives": "pipeline.make.heads.objectives:OBJECTIVES",
        "poolings": "pipeline.make.heads.pooling:POOLINGS",
        "protocols": "pipeline.foundation.evaluation.retrieval:PROTOCOLS",
        "readers": "pipeline.foundation.manifest.build:READERS",
        "rescorers": "pipeline.judge.systems.rescoring:RESCORERS",
        "scorers": "pipeline.judge.systems.reranking:SCORERS",
        "split_checks": "pipeline.run.report.split_checks:SPLIT_CHECKS",
        "store_formats": "pipeline.make.features.store.export:FORMATS",
        "tables": "pipeline.run.report.tables:TABLES",
        "texts": "pipeline.make.text:TEXTS",
        "tokenizers": "pipeline.make.text:TOKENIZERS",
        "tunings": "pipeline.make.dual_encoders.tuning:TUNINGS",
    },
    "kinds of parts",
)
