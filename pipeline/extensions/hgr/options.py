"""The options of HGR, see `LookupTable.declared`."""

from pipeline.foundation.settings import Section, Share


class HGROptions(Section):
    """Attention between frames, phrases and their neighbours."""

    sharpness: float = 4.0  # A factor of the attention to frames, before its softmax
    graph_dropout: Share = 0.5  # The dropout of what a node receives from its neighbours
