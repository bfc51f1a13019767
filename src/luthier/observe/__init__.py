"""Those who listen: progress for people, lines for logs."""

from luthier.observe.log import LogObserver
from luthier.observe.progress import ProgressLines, progress_line

__all__ = ["LogObserver", "ProgressLines", "progress_line"]
