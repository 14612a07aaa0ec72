"""Steps, schedules and norms where programs are unusual: generators that are spent, schedules that begin in the middle,
limits of evaluations, copies after a normalization."""
import copy
import warnings

import pytest

torch = pytest.importorskip("torch")

import ptcore as pt  # noqa: E402

pytestmark = pytest.mark.parity


def spent_generator(m):
    layer = m.nn.Linear(2, 2)
    m.nn.init.ones_(layer.weight)
    m.nn.init.ones_(layer.bias)
    layer(m.ones(1, 2)).sum().backward()
    parameters = layer.parameters()
    assert len(list(parameters)) == 2
    with pytest.warns(UserWarning, match="`parameters` is an empty generator, no gradient clipping will occur"):
        norms = [float(m.nn.utils.clip_grad_norm_(parameters, 0.1))]
    norms += [float(m.nn.utils.clip_grad_norm_(layer.parameters(), 0.1)) for _ in range(2)]
    return norms, layer.weight.grad.tolist()


def schedule(m, last_epoch=-1):
    optimizer = m.optim.SGD([m.nn.Parameter(m.ones(1))], lr=1.0)
    S = m.optim.lr_scheduler
    if last_epoch >= 0:
        optimizer.param_groups[0]["initial_lr"] = 1.0
    with warnings.catch_warnings(action="ignore"):
        return optimizer, S.SequentialLR(optimizer, [S.ConstantLR(optimizer, 0.1, 2), S.ExponentialLR(optimizer, 0.9)],
                                         milestones=[2], last_epoch=last_epoch)


def rates(optimizer, its, n):
    found = [optimizer.param_groups[0]["lr"], its.last_epoch]
    with warnings.catch_warnings(action="ignore"):
        for _ in range(n):
            optimizer.step()
            its.step()
            found.append(optimizer.param_groups[0]["lr"])
    return found


def sequence_goes_on(m):
    first, second = schedule(m), schedule(m)
    found = rates(*first, 5)
    second[1].load_state_dict(first[1].state_dict())
    second[0].load_state_dict(first[0].state_dict())
    return found + rates(*second, 4)


def sequence_from_the_middle(m):
    return rates(*schedule(m, last_epoch=2), 4)


def evaluations(m, **options):
    weight = m.nn.Parameter(m.tensor([3.0, -2.0]))
    optimizer = m.optim.LBFGS([weight], max_iter=20, **options)
    calls = []

    def closure():
        calls.append(1)
        optimizer.zero_grad()
        loss = (weight**4).sum() + (weight**2).sum()
        loss.backward()
        return loss
    optimizer.step(closure)
    return len(calls), optimizer.state_dict()["state"][0]["func_evals"], weight.tolist()


def few_evaluations(m):
    return evaluations(m, lr=0.5, max_eval=5)


def few_evaluations_of_a_search(m):
    return evaluations(m, lr=1, max_eval=7, line_search_fn="strong_wolfe")


def normalized(m):
    found = []
    for name in ("weight_norm", "spectral_norm", "parametrizations.weight_norm", "parametrizations.spectral_norm"):
        space, _, last = name.rpartition(".")
        norm = getattr(getattr(m.nn.utils, space) if space else m.nn.utils, last)
        with warnings.catch_warnings(action="ignore"):
            layer = norm(m.nn.Linear(2, 2))
        layer(m.ones(1, 2))
        try:
            found.append(type(copy.deepcopy(layer)).__name__)
        except RuntimeError:
            found.append("refused")
    return found


@pytest.mark.parametrize("program", [
    spent_generator, sequence_goes_on, sequence_from_the_middle, few_evaluations, few_evaluations_of_a_search,
    normalized], ids=lambda f: f.__name__)
def test_unusual_steps(program):
    assert flat(program(pt)) == pytest.approx(flat(program(torch)), rel=1e-5)


def flat(value):
    if isinstance(value, (list, tuple)):
        return [x for part in value for x in flat(part)]
    return [value] if not isinstance(value, str) else [float(value == "refused")]
