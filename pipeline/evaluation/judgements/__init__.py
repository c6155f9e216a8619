"""Where relevance comes from, when it is more than one image a caption: qrels, equal captions, ECCV Caption, CxC."""
