"""Small ops, views, the engine, small training steps: what calls cost besides arithmetic."""
from . import WORKLOADS, workload

# -- small ops: 1/6; with a Python scalar 1/12; views, indexing, empty 1/5 ----------------------

def small(name, statement, target, group="small"):
    def operands(xp, grad):
        return {"xp": xp, "a": xp.randn(8, 8, requires_grad=grad), "b": xp.randn(8, 8, requires_grad=grad),
                "bias": xp.randn(8), "linear": xp.nn.functional.linear}
    WORKLOADS.append((group, name, statement, lambda xp: operands(xp, False), target))
    if group == "small":
        WORKLOADS.append(("record", name, statement, lambda xp: operands(xp, True), target))


small("add(a, b)", "xp.add(a, b)", 1 / 6)
small("a * b", "a * b", 1 / 6)
small("a * 2.0", "a * 2.0", 1 / 12)
small("a + bias", "a + bias", 1 / 6)
small("relu", "xp.relu(a)", 1 / 6)
small("exp", "xp.exp(a)", 1 / 6)
small("sum", "a.sum()", 1 / 6)
small("sum(1)", "a.sum(1)", 1 / 6)
small("mean", "a.mean()", 1 / 6)
small("softmax", "a.softmax(1)", 1 / 6)
small("a @ b", "a @ b", 1 / 6)
small("linear", "linear(a, b, bias)", 1 / 6)
small("a < b", "a < b", 1 / 6)
small("cat", "xp.cat([a, b])", 1 / 6)
small("a[1]", "a[1]", 1 / 5, "view")
small("a[1:3]", "a[1:3]", 1 / 5, "view")
small("view(-1)", "a.view(-1)", 1 / 5, "view")
small("t()", "a.t()", 1 / 5, "view")
small("unsqueeze", "a.unsqueeze(0)", 1 / 5, "view")
small("empty(8, 8)", "xp.empty(8, 8)", 1 / 5, "view")
small("zeros(8, 8)", "xp.zeros(8, 8)", 1 / 5, "view")
small("detach", "a.detach()", 1 / 5, "view")


# -- backward and small training steps: 1/8; module call 1/3 --------------------------------------

def chain_of_100_mul(xp):
    x, b = xp.randn(4, requires_grad=True), xp.randn(4, requires_grad=True)
    one = xp.ones(4)

    def run():
        y = x
        for _ in range(100):
            y = y * b
        y.backward(one)
    return run


def backward_of_one_node(xp):
    x = xp.randn(4, requires_grad=True)

    def run():
        x.sum().backward()
    return run


workload("backward", "chain of 100 mul", chain_of_100_mul, 1 / 8)
workload("backward", "backward of one node", backward_of_one_node, 1 / 8)


def mlp(xp, width):
    nn = xp.nn
    model = nn.Sequential(nn.Linear(16, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(),
                          nn.Linear(width, 4))
    return model, xp.randn(8, 16), xp.randn(8, 4)


def training_step(optimizer, width):
    def make(xp):
        model, x, y = mlp(xp, width)
        opt = getattr(xp.optim, optimizer)(model.parameters(), lr=1e-3)
        loss_fn = xp.nn.MSELoss()

        def run():
            opt.zero_grad()
            loss_fn(model(x), y).backward()
            opt.step()
        return run
    workload("step", f"MLP {width}, batch 8, {optimizer}", make, 1 / 8)


for _width in (16, 64):
    for _optimizer in ("SGD", "Adam"):
        training_step(_optimizer, _width)


WORKLOADS.append(("step", "Identity module", "m(x)",
                  lambda xp: {"m": xp.nn.Identity(), "x": xp.randn(4)}, 1 / 3))
