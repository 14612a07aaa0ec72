"""
2. Gradients
============

To learn is to change some numbers, the *parameters*, so that an error becomes smaller. In which direction should
each one be moved? Its *gradient* says so: how much the error grows if that parameter grows a little. With thousands
of parameters nobody wants to derive that by hand. Autograd does: it writes down what you compute, and walks back
through it.
"""
import matplotlib.pyplot as plt

import ptcore as pt

# %%
# One number
# ----------
# ``requires_grad=True`` says: of this tensor I want the gradient. Each result remembers the operation that made it.

x = pt.tensor(3.0, requires_grad=True)
y = x ** 2 + 2 * x
print(y)

# %%
# ``backward`` walks back from the result and leaves the gradient in ``x.grad``. By hand it is :math:`2x + 2 = 8`:

y.backward()
print(x.grad)

# %%
# Gradients *add up*: a second ``backward`` adds to what is there. That is useful, and also the most frequent mistake
# of beginners, who forget to clear them before the next step.

(x ** 2).backward()
print(x.grad)           # 8 + 6
x.grad = None

# %%
# Fitting a curve
# ---------------
# Here are measurements of a cooling cup: temperature over minutes, with some noise. Physics says that they follow
# :math:`a + b e^{-ct}`, but not with which :math:`a`, :math:`b` and :math:`c`.

pt.manual_seed(0)
t = pt.linspace(0, 30, 40)
measured = 21 + 65 * pt.exp(-0.12 * t) + pt.randn(40)

# %%
# We start from a poor guess, and repeat four steps, which are the same for a curve and for a large language model:
#
# 1. *forward*: compute the prediction and the loss, one number that says how bad it is;
# 2. *backward*: compute the gradients;
# 3. *step*: move each parameter a little against its gradient;
# 4. clear the gradients.
#
# The parameters are of different size, so each one gets a step size of its own. Later, an optimizer looks after that.

theta = pt.tensor([0.0, 30.0, 0.05], requires_grad=True)
rates = pt.tensor([0.2, 0.4, 1e-5])


def curve(theta):
    a, b, c = theta
    return a + b * pt.exp(-c * t)


start, losses = curve(theta).detach(), []
for _ in range(1000):
    loss = ((curve(theta) - measured) ** 2).mean()
    loss.backward()
    with pt.no_grad():
        theta -= rates * theta.grad
    theta.grad = None
    losses.append(loss.item())
print("a, b, c =", theta.tolist())

# %%
# Two things are new. ``no_grad`` says that the step itself is no part of what is derived. ``detach`` gives the values
# without their history, as a plot wants them; so does ``item`` with a single number.

fig, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.plot(t, measured, "o", markersize=3, label="measured")
left.plot(t, start, "--", label="first guess")
left.plot(t, curve(theta).detach(), label="fitted")
left.set(xlabel="minutes", ylabel="degrees")
left.legend()
right.semilogy(losses)
right.set(xlabel="step", ylabel="loss")
plt.show()

# %%
# Is it right?
# ------------
# A derivative can be checked by moving the input a little and looking at what happens.
# :func:`ptcore.autograd.gradcheck` does so for any function, with ``float64``, as differences lose digits. Use it
# whenever you write a derivative yourself.

sample = pt.randn(5, dtype=pt.float64, requires_grad=True)
print(pt.autograd.gradcheck(lambda x: pt.sin(x).cumsum(0), sample))

# %%
# Gradients of gradients
# ----------------------
# With ``create_graph=True`` the gradient is itself recorded, and can be derived again:

x = pt.linspace(-2, 2, 5, requires_grad=True)
(slope,) = pt.autograd.grad((x ** 3).sum(), x, create_graph=True)
(curvature,) = pt.autograd.grad(slope.sum(), x)
print(slope.detach(), curvature)

# %%
# :doc:`/guide/autograd` goes on from here, and :doc:`/guide/transformations` shows whole Jacobians and forward mode.
