"""In a process that others are forked from: all modules of this tree. The collector leaves alone what is there, so that
no child copies it.
"""

from __future__ import annotations

import gc

import preloaded

preloaded.import_ours()
gc.freeze()
