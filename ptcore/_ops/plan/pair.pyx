"""Pair: the plan of a program's values and the plan of its gradients, as one node of the graph."""
cimport cython
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.object cimport PyObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.sequence cimport PySequence_Fast_ITEMS
from cpython.tuple cimport PyTuple_New, PyTuple_SET_ITEM

from ptcore._types cimport *
from ptcore._node cimport Node, new_node
from ptcore._tensor cimport *
from ptcore._ops.history cimport link, save
from ptcore._ops.plan.plan cimport Plan
from ptcore._dtype cimport dtype_of

cdef enum:
    FEW_RESULTS = 16                    # up to this many results are held on the stack


@cython.binding(False)                  # so that methods check their self
cdef class Pair:
    """The data of a call with gradients.

    Parameters
    ----------
    first : Plan or None
        Its results are the results of the program, then values to be saved besides inputs. None: there is no such plan.
    second : callable
        Takes the saved tensors and the gradients of results; gives the gradients of the inputs in ``needs``.
    again : callable
        The same with history: takes the inputs, the gradients and a state. A gradient is None where nothing leads to
        that result.
    partly : callable
        Takes a tuple of bool, which of the results have gradients in a backward, and the inputs. Gives the callable
        that stands for ``second`` in such a backward, without the gradients that are absent; None if there is none.
    saved : list of int
        The saved tensors: positions among the inputs, then among the results of ``first`` beyond the program's.
    graded : list of bool
        Which results have gradients.
    needs : list of bool
        Which inputs ask for a gradient.
    written : iterable of int
        Inputs that the program writes to.
    """

    def __init__(self, Plan first, second, again, partly, saved, graded, needs, written=()):
        cdef int k
        self.written = tuple(written)
        self.first, self.second, self.again, self.partly, self.parts = first, second, again, partly, {}
        self.needs = tuple(needs)
        self.n_outs, self.n_saved = <int>len(graded), <int>len(saved)
        self.graded = <uint8_t *>PyMem_Malloc(self.n_outs + 1)
        self.saved = <int *>PyMem_Malloc((self.n_saved + 1) * sizeof(int))
        if self.graded == NULL or self.saved == NULL:
            raise MemoryError()
        for k in range(self.n_saved):
            self.saved[k] = saved[k]
        for k in range(self.n_outs):
            self.graded[k] = bool(graded[k])

    def __dealloc__(self):
        PyMem_Free(self.graded)
        PyMem_Free(self.saved)

    def fits(self, list tensors):
        """Whether the program can run on these tensors: they fit, and the same inputs ask for gradients."""
        return self.first is not None and self.first.may_take(PySequence_Fast_ITEMS(tensors), len(tensors), True)

    def record(self, list tensors, results, state=None):
        """Gives the results of ``first`` their history; returns the program's results."""
        cdef tuple made = tuple(results)
        self.give_history(PySequence_Fast_ITEMS(tensors), len(tensors), PySequence_Fast_ITEMS(made), state)
        return made[:self.n_outs]

    cdef int give_history(self, PyObject **tensors, Py_ssize_t m, PyObject **results, object state) except -1:
        """Makes the node of a call. Its params: the inputs, a bytes of their versions, and the state."""
        cdef Node n = new_node(-1, <int>m)
        cdef tuple params = PyTuple_New(m + 2)
        cdef bytes versions = PyBytes_FromStringAndSize(NULL, m * sizeof(uint64_t))
        cdef int i, k
        cdef Tensor t
        Py_INCREF(versions)
        PyTuple_SET_ITEM(params, m, versions)
        Py_INCREF(state)
        PyTuple_SET_ITEM(params, m + 1, state)
        for i in range(m):
            t = <Tensor>tensors[i]
            Py_INCREF(t)
            PyTuple_SET_ITEM(params, i, t)
            (<uint64_t *>PyBytes_AS_STRING(versions))[i] = version_of(t)
            if needs_grad(t):
                link(n, i, t)
        n.fn, n.params, n.nout = self, params, self.n_outs
        for k in range(self.n_saved):
            i = self.saved[k]
            # A saved result is saved as an alias: a result must not hold the node that holds it.
            save(n, k, <object>(tensors[i] if i < m else results[i - m + self.n_outs]))
        if self.n_outs > 1:
            n.out_meta = tuple([(shape_of(<Tensor>results[i]), dtype_of((<Tensor>results[i]).dt),
                                 (<object>results[i]).device)
                                if self.graded[i] else None for i in range(self.n_outs)])
        for i in range(self.n_outs):
            if self.graded[i]:
                set_node(<Tensor>results[i], n, i)
        return 0

    def attempt(self, list tensors, state=None):
        """The program's results, with their history; None if it cannot run on these tensors now."""
        if not self.fits(tensors):
            return None
        return self.called(PySequence_Fast_ITEMS(tensors), len(tensors), state, NULL)

    cdef object called(self, PyObject **tensors, Py_ssize_t m, object state, bint *alone):
        """The tuple of results; if ``alone`` is not NULL and there is one result, that result, and alone[0] is set."""
        cdef (PyObject *)[FEW_RESULTS] few
        cdef PyObject **results = few
        cdef int k, n = self.first.n_outputs
        if n > FEW_RESULTS:
            results = <PyObject **>PyMem_Malloc(n * sizeof(PyObject *))
            if results == NULL:
                raise MemoryError()
        for k in range(n):
            results[k] = NULL
        try:
            self.first.fill(tensors, None, results)
            self.give_history(tensors, m, results, state)
            if alone != NULL and self.n_outs == 1:
                alone[0] = True
                return <object>results[0]
            made = PyTuple_New(self.n_outs)
            for k in range(self.n_outs):
                Py_INCREF(<object>results[k])
                PyTuple_SET_ITEM(made, k, <object>results[k])
            return made
        finally:
            for k in range(n):
                Py_XDECREF(results[k])
            if results != few:
                PyMem_Free(results)

    # -- the rule of the node ------------------------------------------------------------------------------

    @property
    def __name__(self):
        return "CompiledBackward"

    def __call__(self, Node node not None, g, needs):
        """The gradients of one call, as the engine asks for them."""
        cdef list given = [], result = [], tangents = []
        cdef tuple found
        cdef int k, i = 0
        cdef bint is_whole = True
        for k in range(self.n_saved):
            given.append(node.saved(k))
        for k in range(self.n_outs):
            if not self.graded[k]:
                continue
            x = g[k] if self.n_outs > 1 else g
            tangents.append(x)
            if x is None:
                is_whole = False
            else:
                given.append(x)
        if pt_tls.grad_enabled:
            found = tuple(self.again(self.primals_of(node), tangents, node.params[node.nin + 1]))
        elif not is_whole:
            found = self.some_of(node, given, tangents)
        elif self.second_plan is not None and self.second_plan.may_take(PySequence_Fast_ITEMS(given), len(given),
                                                                        False):
            found = self.second_plan.results_of(PySequence_Fast_ITEMS(given), None)
        else:
            found = tuple(self.second.call(given, given))
            plans = self.second.simple_plans
            self.second_plan = plans[0] if plans else None
        for k in range(<int>len(self.needs)):
            if self.needs[k]:
                result.append(found[i])
                i += 1
            else:
                result.append(None)
        return tuple(result)

    cdef tuple some_of(self, Node node, list given, list tangents):
        """The gradients of a backward that reaches some of the results. An input that none of these leads to gets None.
        """
        cdef tuple mask = tuple([x is not None for x in tangents])
        if mask not in self.parts:
            self.parts[mask] = self.partly(mask, node.params[:node.nin])
        second = self.parts[mask]
        if second is None:
            return tuple(self.again(self.primals_of(node), tangents, node.params[node.nin + 1]))
        return tuple(second.call(given, given))

    cdef tuple primals_of(self, Node node):
        """The inputs of a call. Raises if one has changed: it is not known which the second derivative needs."""
        cdef tuple primals = node.params[:node.nin]
        cdef bytes versions = node.params[node.nin]
        cdef int k
        for k in range(node.nin):
            if (version_of(<Tensor>primals[k]) != (<uint64_t *>PyBytes_AS_STRING(versions))[k]
                    and k not in self.written):
                raise RuntimeError("one of the variables needed for gradient computation has been modified by an "
                                   "inplace operation: an argument of a compiled function, whose second derivative is "
                                   "asked for")
        return primals


cdef class _UsedUp:
    """The rule of a history that a backward has freed."""

    @property
    def __name__(self):
        return "CompiledBackward"

    def __call__(self, node, g, needs):
        raise RuntimeError("backward: the graph has been freed by the backward that the compiled function has called; "
                           "trying to backward through it a second time needs retain_graph=True the first time")


cdef bint is_asked(PyObject **tensors, Py_ssize_t m) except -1:
    """Whether one of the values is a tensor that asks for a gradient."""
    cdef Tensor t
    cdef Py_ssize_t k
    for k in range(m):
        if isinstance(<object>tensors[k], Tensor):
            t = <Tensor>tensors[k]
            if t.flags & PT_REQUIRES_GRAD or (t.flags & PT_VIEW and needs_grad(t)):
                return True
    return False


cdef object USED_UP = _UsedUp()
cdef Tensor END = None


cdef int use_up(results, tuple places) except -1:
    """Gives fresh tensors, ``results[k]`` for k in ``places``, a history that raises in backward."""
    global END
    cdef Node n
    if END is None:
        from ptcore._ops.creation.creation import zeros
        END = zeros((), device="cpu").requires_grad_()
    for k in places:
        n = new_node(-1, 1)
        link(n, 0, END)
        n.fn = USED_UP
        set_node(<Tensor?>results[k], n, 0)
    return 0


@cython.binding(False)                  # so that methods check their self
cdef class Runner:
    """A compiled graph as one call on tensors: the first plan that fits them runs.

    Attributes
    ----------
    pairs : list of Pair
    plans : list of Plan
        For calls that record no history.
    slow : callable
        Called if no plan fits. Results are tuples of tensors.
    constants : sequence of Tensor
        Tensors that the program takes after its arguments.
    sources : list of (dict, name) or None
        Tensors that are looked up at each call and follow the constants, such as parameters of a module.
    """

    def __init__(self, slow, constants=()):
        self.pairs, self.plans, self.slow = [], [], slow
        self.constants = tuple(constants) or None

    def watch(self, list sources, list links):
        """``links``: (dict, name, object) entries that must stay as they are; otherwise ``sources`` are given up."""
        self.sources, self.links = sources, links

    cdef bint add_sources(self, list tensors):
        for space, name, x in self.links:
            if (<dict>space).get(name) is not x:
                self.sources = None
                return False
        for space, name in self.sources:
            x = (<dict>space).get(name)
            if x is None:
                self.sources = None
                return False
            tensors.append(x)
        return True

    def __call__(self, *args):
        return self.called(PySequence_Fast_ITEMS(args), len(args), NULL)

    cdef object called(self, PyObject **args, Py_ssize_t n, bint *alone):
        """The results for arguments that the caller keeps alive. ``alone``: see ``Pair.called``."""
        cdef list more
        cdef Py_ssize_t k
        if self.constants is None and self.sources is None:
            return self.called_with(args, n, args, n, alone)
        more = [<object>args[k] for k in range(n)]
        if self.constants is not None:
            more += self.constants
        if self.sources is not None and not self.add_sources(more):
            return self.called_slowly(args, n)
        return self.called_with(PySequence_Fast_ITEMS(more), len(more), args, n, alone)

    cdef object called_with(self, PyObject **tensors, Py_ssize_t m, PyObject **args, Py_ssize_t n, bint *alone):
        """``tensors``: the ``n`` arguments, then constants and sources."""
        cdef Pair pair
        cdef Plan plan
        cdef PyObject *made = NULL
        if pt_tls.grad_enabled and is_asked(tensors, m):
            for pair in self.pairs:
                if pair.first.may_take(tensors, m, True):
                    return pair.called(tensors, m, None, alone)
        else:
            for plan in self.plans:
                if plan.may_take(tensors, m, False):
                    if alone == NULL or plan.n_outputs != 1:
                        return plan.results_of(tensors, None)
                    plan.fill(tensors, None, &made)
                    alone[0] = True
                    result = <object>made
                    Py_DECREF(result)           # that of ``made``
                    return result
        return self.called_slowly(args, n)

    cdef object called_slowly(self, PyObject **args, Py_ssize_t n):
        return self.slow(*[<object>args[k] for k in range(n)])
