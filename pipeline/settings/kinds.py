"""The kinds of parts that settings and options of commands name."""

from typing import Any

from pipeline.parts.lazy import LookupTable

# Kind of part -> the table of its names. These are text because the rooms of parts import this one.
TABLES: LookupTable[LookupTable[Any]] = LookupTable(
    {
        "dual_encoders": "pipeline.dual_encoders:DUAL_ENCODERS",
        "exporters": "pipeline.training.exporters:EXPORTERS",
        "extractors": "pipeline.features.extractors:ENGINES",
        "figures": "pipeline.report.figures:FIGURES",
        "heads": "pipeline.heads:HEADS",
        "importers": "pipeline.features.importers.formats:FORMATS",
        "indexes": "pipeline.evaluation.retrieval.top:INDEXES",
        "metrics": "pipeline.evaluation.metrics:METRICS",
        "objectives": "pipeline.heads.objectives:OBJECTIVES",
        "poolings": "pipeline.heads.pooling:POOLINGS",
        "protocols": "pipeline.evaluation.retrieval:PROTOCOLS",
        "readers": "pipeline.manifest.build:READERS",
        "readers of questions": "pipeline.studies.hard_negatives.questions:READERS",
        "rescorers": "pipeline.systems.rescoring:RESCORERS",
        "scorers": "pipeline.systems.reranking:SCORERS",
        "tables": "pipeline.report.tables:TABLES",
        "texts": "pipeline.text:TEXTS",
        "tokenizers": "pipeline.text:TOKENIZERS",
        "tunings": "pipeline.dual_encoders.tuning:TUNINGS",
    },
    "kinds of parts",
)
