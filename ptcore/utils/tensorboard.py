"""Event files that TensorBoard reads, written without TensorBoard, protobuf or Pillow."""
import itertools
import os
import socket
import threading
import time
import weakref

from ptcore._atomic import write_text_atomically
from ptcore.utils import _summaries as summaries
from ptcore.utils._summaries import double, integer, length, record

__all__ = ["SummaryWriter"]

_serial = itertools.count()


class _EventFile:
    """A file of events. A thread writes it, so that no step waits for checksums and the disk.

    Events are written together and whole, in one call of the system: when more than ``max_queue`` wait, when
    ``flush_secs`` have passed since the last time, and by ``flush``. So a file is readable whenever its process ends; a
    killed process loses only waiting events.
    """

    def __init__(self, folder, max_queue, flush_secs, suffix):
        os.makedirs(folder, exist_ok=True)
        made_by = f"{int(time.time()):010d}.{socket.gethostname()}.{os.getpid()}.{next(_serial)}"
        self.path = os.path.join(folder, f"events.out.tfevents.{made_by}{suffix}")
        self._file = open(self.path, "ab", buffering=0)
        self._max_queue, self._flush_secs = max_queue, flush_secs
        self._process = os.getpid()
        self._pending, self._added, self._written = [], 0, 0
        self._hurry = self._closing = False
        self._error = None
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, name="ptcore-event-file", daemon=True)
        self._thread.start()
        self.add(length(3, "brain.Event:2") + length(10, length(1, "ptcore.utils.tensorboard")))
        self.flush()

    def add(self, event, step=None, walltime=None):
        """Adds an event: the fields of its message without the time and the step."""
        data = double(1, time.time() if walltime is None else walltime) + event
        if step is not None:
            data += integer(2, step)
        with self._own_lock():
            self._check()
            self._pending.append(data)
            self._added += 1
            if len(self._pending) > self._max_queue:
                self._hurry = True
                self._changed.notify_all()
            # Blocks if the disk is slower than the program.
            self._changed.wait_for(lambda: len(self._pending) <= 2 * self._max_queue + 1 or self._error)

    def flush(self):
        """Returns when all added events are in the file."""
        with self._own_lock():
            self._check()
            self._hurry, last = True, self._added
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._written >= last or self._error)
            self._check()

    def close(self):
        """Writes the waiting events and ends the thread. A repeated call, or one in a forked child, does nothing."""
        if self._closing or os.getpid() != self._process:
            return
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        self._thread.join()
        self._file.close()
        if self._error is not None:
            raise self._error

    def _own_lock(self):
        """The lock. A forked child has no thread that writes, and the lock may have been held at the fork."""
        if os.getpid() != self._process:
            raise RuntimeError("SummaryWriter: it belongs to the process that made it; make another one in the child")
        return self._changed

    def _check(self):
        if self._closing:
            raise ValueError("SummaryWriter: it is closed")
        if self._error is not None:
            raise self._error

    def _run(self):
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._hurry or self._closing, self._flush_secs)
                events, self._pending, self._hurry = self._pending, [], False
                ends = self._closing
                self._changed.notify_all()
            try:
                left = memoryview(b"".join(map(record, events)))
                while left:
                    left = left[self._file.write(left):]
            except Exception as error:      # the next call raises it
                self._error = error
            with self._changed:
                self._written += len(events)
                self._changed.notify_all()
            if ends or self._error is not None:
                return


def _refused(name, why):
    def method(self, *args, **kwargs):
        raise NotImplementedError(f"{name}: {why}")
    method.__name__ = name
    method.__qualname__ = f"SummaryWriter.{name}"
    method.__doc__ = f"Not there: {why}."
    return method


def _close(files):
    for file in files.values():
        file.close()


class SummaryWriter:
    """Write scalars, histograms, images and more into event files, which TensorBoard shows.

    A thread writes; the calls only encode. A file can be read at any time, also when its process was killed.

    Parameters
    ----------
    log_dir : str or os.PathLike, optional
        The folder of the run; ``runs/DATE_HOST`` by default.
    comment : str, default: ""
        Added to the default folder's name.
    purge_step : int, optional
        Hide what an earlier process wrote of this step and later ones into the same folder: the step that a run is
        resumed at.
    max_queue : int, default: 10
        How many events may wait before they are written.
    flush_secs : float, default: 120
        How long an event may wait.
    filename_suffix : str, default: ""
        Added to the names of the files.

    Notes
    -----
    Values are tensors, NumPy arrays or numbers. ``global_step`` is the place on the horizontal axis, ``walltime`` the
    seconds since 1970, now by default. Writers are closed when they are dropped, and when Python ends.

    Examples
    --------
    >>> import os
    >>> from ptcore.utils.tensorboard import SummaryWriter
    >>> with SummaryWriter("runs/first") as writer:
    ...     for step in range(100):
    ...         writer.add_scalar("loss", 1 / (1 + step), step)
    >>> len(os.listdir("runs/first"))
    1
    """

    def __init__(self, log_dir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        if not log_dir:
            log_dir = os.path.join("runs", time.strftime("%b%d_%H-%M-%S_") + socket.gethostname() + comment)
        self.log_dir = os.fspath(log_dir)
        self.purge_step = purge_step
        self.max_queue, self.flush_secs, self.filename_suffix = max_queue, flush_secs, filename_suffix
        self._files = {}
        self._embeddings = []
        self._finalizer = weakref.finalize(self, _close, self._files)
        self._file()

    def _file(self, folder=None):
        """The event file of a folder, opened again after ``close``."""
        folder = self.log_dir if folder is None else folder
        if folder not in self._files:
            made = self._files[folder] = _EventFile(folder, self.max_queue, self.flush_secs, self.filename_suffix)
            if self.purge_step is not None:
                made.add(length(3, "brain.Event:2"), self.purge_step)
                made.add(length(7, integer(1, 1)), self.purge_step)       # SessionLog.START
                self.purge_step = None
        return self._files[folder]

    def _add(self, summary, global_step=None, walltime=None, folder=None):
        step = None if global_step is None else int(global_step)
        self._file(folder).add(length(5, summary), step, walltime)

    def get_logdir(self):
        """The folder of the run."""
        return self.log_dir

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None, new_style=False, double_precision=False):
        """A number, as ``float32``; in `new_style` with `double_precision` as ``float64``."""
        self._add(summaries.scalar(tag, scalar_value, new_style, double_precision), global_step, walltime)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None):
        """Several numbers in one chart. Each has a file in a folder of its own."""
        walltime = time.time() if walltime is None else walltime
        self._file()
        for tag, value in tag_scalar_dict.items():
            folder = f"{self.log_dir}/{main_tag.replace('/', '_')}_{tag}"
            self._add(summaries.scalar(main_tag, value), global_step, walltime, folder)

    def add_tensor(self, tag, tensor, global_step=None, walltime=None):
        """All values of a tensor."""
        self._add(summaries.tensor(tag, tensor), global_step, walltime)

    def add_histogram(self, tag, values, global_step=None, bins="tensorflow", walltime=None, max_bins=None):
        """The distribution of values.

        Parameters
        ----------
        bins : str, int or sequence of float, default: "tensorflow"
            Limits that grow by a tenth, or what :func:`numpy.histogram` takes.
        max_bins : int, optional
            Above this number of bins neighbours are merged.
        """
        self._add(summaries.histogram(tag, values, bins, max_bins), global_step, walltime)

    def add_histogram_raw(self, tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts, global_step=None,
                          walltime=None):
        """A histogram from given counts; `bucket_limits` are the right ends of the bins."""
        if len(bucket_limits) != len(bucket_counts):
            raise ValueError(f"add_histogram_raw: bucket_limits and bucket_counts must have equal lengths, got "
                             f"{len(bucket_limits)} and {len(bucket_counts)}")
        summary = summaries.histogram_raw(tag, min, max, num, sum, sum_squares, bucket_limits, bucket_counts)
        self._add(summary, global_step, walltime)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW"):
        """An image: ``uint8``, or numbers from 0 to 1. Written as PNG.

        Parameters
        ----------
        dataformats : str, default: "CHW"
            The order of the dimensions: of the letters C, H, W, or H, W.
        """
        self._add(summaries.image(tag, img_tensor, dataformats), global_step, walltime)

    def add_images(self, tag, img_tensor, global_step=None, walltime=None, dataformats="NCHW"):
        """Several images side by side, eight in a row."""
        self.add_image(tag, img_tensor, global_step, walltime, dataformats)

    def add_image_with_boxes(self, tag, img_tensor, box_tensor, global_step=None, walltime=None, rescale=1,
                             dataformats="CHW", labels=None):
        """An image with red boxes, drawn by Pillow.

        Parameters
        ----------
        box_tensor : Tensor
            A row for each box: left, top, right, bottom.
        rescale : float, default: 1
            By how much the image is enlarged.
        labels : list of str, optional
            One for each box.
        """
        if isinstance(labels, str):
            labels = [labels]
        self._add(summaries.boxes(tag, img_tensor, box_tensor, dataformats, rescale, labels), global_step, walltime)

    def add_video(self, tag, vid_tensor, global_step=None, fps=4, walltime=None):
        """A video, or several side by side: of shape (N, T, C, H, W), ``uint8`` or numbers from 0 to 1.

        Written as an animated PNG, which browsers show and repeat.
        """
        self._add(summaries.video(tag, vid_tensor, fps), global_step, walltime)

    def add_mesh(self, tag, vertices, colors=None, faces=None, config_dict=None, global_step=None, walltime=None):
        """Points in space, each with a colour (0 to 255), and the triangles between them.

        Parameters
        ----------
        vertices, colors : Tensor
            Of shape (N, number of points, 3).
        faces : Tensor, optional
            Of shape (N, number of triangles, 3): numbers of points.
        config_dict : dict, optional
            Classes of Three.js and their settings: camera, lights, material.
        """
        for summary in summaries.mesh(tag, vertices, colors, faces, config_dict):
            self._add(summary, global_step, walltime)

    def add_embedding(self, mat, metadata=None, label_img=None, global_step=None, tag="default", metadata_header=None):
        """Points for the projector, a row of `mat` each; written as files of their own.

        Parameters
        ----------
        metadata : list, optional
            A label for each point; with `metadata_header`, the columns' names, a list of labels.
        label_img : Tensor, optional
            A picture for each point, of shape (N, C, H, W).
        """
        step = 0 if global_step is None else int(global_step)
        entry = summaries.embedding(self.log_dir, tag, step, mat, metadata, metadata_header, label_img)
        self._embeddings.append(entry)
        write_text_atomically(os.path.join(self.log_dir, "projector_config.pbtxt"), "".join(self._embeddings))

    def add_figure(self, tag, figure, global_step=None, close=True, walltime=None):
        """A figure of matplotlib, or a list of figures of one size; they are closed unless `close` is False."""
        pixels = summaries.figures(figure, close)
        self.add_image(tag, pixels, global_step, walltime, "NCHW" if isinstance(figure, list) else "CHW")

    def add_audio(self, tag, snd_tensor, global_step=None, sample_rate=44100, walltime=None):
        """Sound of one channel with values from -1 to 1."""
        self._add(summaries.audio(tag, snd_tensor, sample_rate), global_step, walltime)

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        """A text in Markdown."""
        self._add(summaries.text(tag, text_string), global_step, walltime)

    def add_pr_curve(self, tag, labels, predictions, global_step=None, num_thresholds=127, weights=None, walltime=None):
        """Precision and recall of `predictions` (from 0 to 1) of binary `labels`."""
        self._add(summaries.pr_curve(tag, labels, predictions, num_thresholds, weights), global_step, walltime)

    def add_pr_curve_raw(self, tag, true_positive_counts, false_positive_counts, true_negative_counts,
                         false_negative_counts, precision, recall, global_step=None, num_thresholds=127, weights=None,
                         walltime=None):
        """A curve of precision and recall from given counts, one value for each threshold."""
        summary = summaries.pr_curve_raw(tag, true_positive_counts, false_positive_counts, true_negative_counts,
                                         false_negative_counts, precision, recall, num_thresholds)
        self._add(summary, global_step, walltime)

    def add_custom_scalars(self, layout):
        """Charts made of scalars: ``{category: {title: ["Multiline" or "Margin", tags]}}``."""
        self._add(summaries.custom_scalars(layout))

    def add_custom_scalars_multilinechart(self, tags, category="default", title="untitled"):
        """One chart of the scalars of several tags."""
        self.add_custom_scalars({category: {title: ["Multiline", tags]}})

    def add_custom_scalars_marginchart(self, tags, category="default", title="untitled"):
        """One chart of a scalar with a band: the tags of the value, the lower and the upper limit."""
        self.add_custom_scalars({category: {title: ["Margin", tags]}})

    def add_hparams(self, hparam_dict, metric_dict, hparam_domain_discrete=None, run_name=None, global_step=None):
        """Hyperparameters of a run and its metrics, for the page that compares runs.

        Parameters
        ----------
        hparam_dict : dict
            Names and values: numbers, strings, bools; None is left out.
        metric_dict : dict
            Names and results, which are written as scalars as well.
        hparam_domain_discrete : dict, optional
            Names and lists of all values that a hyperparameter may have.
        run_name : str, optional
            The folder below this writer's; the time by default.
        """
        domains = hparam_domain_discrete or {}
        if not all(type(d) is dict for d in (hparam_dict, metric_dict, domains)):
            raise TypeError("add_hparams: hparam_dict, metric_dict and hparam_domain_discrete must be dictionaries")
        made = summaries.hparams(hparam_dict, metric_dict, domains)
        with SummaryWriter(os.path.join(self.log_dir, run_name or str(time.time()))) as writer:
            for summary in made:
                writer._add(summary, global_step)
            for tag, value in metric_dict.items():
                writer.add_scalar(tag, value, global_step)

    def add_graph(self, model, input_to_model=None, verbose=False, use_strict_trace=True):
        """The calls of one run of a model, as a graph. The model runs in its present mode.

        Parameters
        ----------
        model : Module
        input_to_model : Tensor or tuple
            The arguments of the model.
        verbose : bool, default: False
            Whether the nodes are printed.
        use_strict_trace : bool, default: True
            Makes no difference: results may have any structure.
        """
        from ptcore.utils._graphs import graph_of
        if input_to_model is None:
            raise ValueError("add_graph: input_to_model must be what the model is called with, got None")
        self._file().add(length(4, graph_of(model, input_to_model, verbose)), None, None)

    add_onnx_graph = _refused("add_onnx_graph", "ONNX is not supported")

    def flush(self):
        """Return when everything is in the files."""
        for file in self._files.values():
            file.flush()

    def close(self):
        """Write everything and close the files; later additions begin new files."""
        _close(self._files)
        self._files.clear()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()
