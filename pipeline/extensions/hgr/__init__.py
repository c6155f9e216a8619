"""HGR: heads that compare clips with role graphs of captions (Chen et al., CVPR 2020).

head.py         the architecture `hgr`
options.py      its options
reading.py      role graphs as the head reads them, among the token ids of captions
role_graphs.py  the column `role_graph` of manifests, and HGR's annotation file of it
captions.py     HGR's captions as annotations
defaults.yaml   the recipes `hgr` and `hgr_infty`
"""

from pipeline.foundation.parts.extension import Extension

EXTENSION = Extension(
    parts={
        "caption_inputs": {"role_graph": "pipeline.extensions.hgr.role_graphs:INPUT"},
        "heads": {"hgr": "pipeline.extensions.hgr.head:HGR"},
        "readers": {"hgr": "pipeline.extensions.hgr.captions:HGR"},
        "scorers": {"hgr": "pipeline.make.training.pair_scorers:LateScorer"},
    }
)
