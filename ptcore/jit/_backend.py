"""The backend "cpu" of ``compile``: a graph of rows runs as plans, with gradients where they are needed."""
from ptcore._ops.plan.pair import Runner
from ptcore._ops.plan.plan import can_plan
from ptcore._state import is_history_recorded
from ptcore.fx.node import attribute_at
from ptcore.jit._joint import Joint, OpByOp, looks_of_all
from ptcore.jit._plan import Planned, Program, key_of_numbers
from ptcore.jit.passes import copy_of, merge_equal

__all__ = ["Compiled", "compile_graph"]

MOST_JOINTS = 16                    # limit for one graph, with different sizes and gradients


def compile_graph(module, example_inputs=None, fixed=False):
    """Gives a function that computes the values of a graph of rows without Python between its kernels.

    Parameters
    ----------
    module : GraphModule
        Of rows (see :func:`ptcore.fx.verify`).
    example_inputs : sequence, optional
        Not used: kernels are looked up at the first call with tensors of new sizes.
    fixed : bool
        Whether the tensors of the module stay the objects that they are.

    Returns
    -------
    Compiled
        Takes the graph's arguments.

    Examples
    --------
    >>> import ptcore
    >>> from ptcore.fx.experimental.proxy_tensor import make_fx
    >>> from ptcore.jit._backend import compile_graph
    >>> f = compile_graph(make_fx(lambda x: (x * x + 1).log().sum())(ptcore.ones(3)))
    >>> x = ptcore.tensor([0., 1., 2.], requires_grad=True)
    >>> f(x).backward()
    >>> x.grad
    tensor([0.0000, 1.0000, 0.8000])
    """
    return Compiled(module, fixed=fixed)


def places_of(root, paths):
    """Places of a module's tensors, [(dict, name), ...], and of submodules on the way, [(dict, name, module), ...].

    Returns None where a path leads to no parameter, buffer or attribute of a module.
    """
    sources, links = [], {}
    for path in paths:
        module, *names = root, *path.split(".")
        for k, name in enumerate(names[:-1]):
            inside = vars(module).get("_modules", {}).get(name)
            if inside is None:
                return None
            links[".".join(names[:k + 1])] = (vars(module)["_modules"], name, inside)
            module = inside
        own = vars(module)
        space = next((d for d in (own, own.get("_parameters", {}), own.get("_buffers", {})) if names[-1] in d), None)
        if space is None:
            return None
        sources.append((space, names[-1]))
    return sources, list(links.values())


class Compiled:
    """A graph of rows, as plans of its values and of its gradients.

    Attributes
    ----------
    values : Planned
        For calls that record no history.
    joints : list of Joint
        Those that do, for each choice of sizes, strides and of tensors that ask for gradients.
    """

    def __init__(self, module, fuse=True, root=None, fixed=False):
        self.program = Program(module, root)
        # Equal calls are merged in the graph of values alone. With gradients each call adds a term of its own to a sum,
        # so merging would change its rounding.
        merged = copy_of(module)
        self.values = Planned(Program(merged, self.program.root) if merge_equal(merged) else self.program, fuse)
        self.joints, self.op_by_op = [], []
        # The runner: for calls whose arguments are tensors and whose results are a tuple of tensors.
        constants = [attribute_at(self.program.root, n.target) for n in self.program.attributes] if fixed else ()
        self.runner = Runner(self.call, constants)
        self.is_simple = self.values.is_flat and not self.program.sets_mode and not self.program.makes_leaves
        self.watches = self.is_simple and not fixed and len(self.program.attributes) > 0
        if self.is_simple:
            self.values.quick = self.runner.plans
        if self.watches:
            self.is_simple = False      # not before the first call: the module may yet get its tensors

    def __call__(self, *args):
        return self.runner(*args) if self.is_simple else self.call(*args)

    def call(self, *args):
        """Runs the plan that fits the arguments, or makes one."""
        if self.watches and self.runner.sources is None:
            found = places_of(self.program.root, [n.target for n in self.program.attributes])
            self.watches = self.is_simple = found is not None
            if found is not None:
                self.runner.watch(*found)
        tensors = self.program.tensors(args)
        asked = any([x.requires_grad for x in tensors])
        if self.program.makes_leaves or (self.program.sets_mode and asked and not is_history_recorded()):
            return self.program.run(*self.program.places(args, tensors))    # results may have a history of their own
        if is_history_recorded() and asked:
            return self._with_gradients(args, tensors)
        return self.values.call(args, tensors)

    def _with_gradients(self, args, tensors):
        numbers = key_of_numbers(args)
        for joint in self.joints:
            if joint.fits(tensors) and joint.numbers == numbers:
                return joint(tensors)
        if (self.program.refused is not None or not can_plan(tensors) or len(self.joints) >= MOST_JOINTS
                or (looks_of_all(tensors), numbers) in self.op_by_op):
            return self.program.run(*self.program.places(args, tensors))
        try:
            joint = Joint(self.program, args, tensors)
        except OpByOp:
            self.op_by_op = [*self.op_by_op[-MOST_JOINTS:], (looks_of_all(tensors), numbers)]
            return self.program.run(*self.program.places(args, tensors))
        result = joint(tensors)
        self.joints.insert(0, joint)
        if self.is_simple and joint.pair is not None and not joint.has_random and all(joint.tensor_leaves):
            self.runner.pairs.insert(0, joint.pair)
        return result
