"""Sources of relevance beyond one image per caption: qrels, captions of one text, ECCV Caption,
CxC.
"""
