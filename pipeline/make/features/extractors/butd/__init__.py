"""Bottom-Up-Attention: a Faster R-CNN's regions as items (Anderson et al. 2018), on detectron2.

    pixels.py      from an image to the network's input
    network.py     the network, made of detectron2's parts, under its published weights' names
    checkpoint.py  published weights into the network, also those with Caffe's order of classes and
                   anchors
    geometry.py    anchors, boxes and overlaps in Caffe's convention of pixels; 300 proposals, and
                   which become items
    detector.py    the network on a device, and its engines butd-36, butd-10-100 and butd-given

What differs from the original (Caffe's `tools/generate_tsv.py`):

- Order: items are sorted by confidence, best first. The original writes 10 to 100 boxes in the
  order of the proposals, and by confidence only where it has to add or drop some, as with 36. No
  head here depends on the order.
- An image without a proposal of 16 px has one proposal, the whole image.
- The growth of a box is limited as in the port; Caffe has no limit, and may overflow.
- Equal scores: proposals keep their order; the original's sort is unstable.
- Pixels: photographs are decoded by Pillow, turned upright by EXIF, transparent ones put on white;
  the original reads
  them by OpenCV, whose decoder may differ by a level.
- The resized image: see pixels.py.

In these files, "Caffe" is the original network with its code,
github.com/peteanderson80/bottom-up-attention, and "the port" is its conversion to detectron2,
github.com/airsplay/py-bottom-up-attention.
"""
