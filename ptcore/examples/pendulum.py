"""Reinforcement learning: a motor that is too weak learns to swing a pendulum up.

    python -m ptcore.examples.pendulum

Proximal policy optimisation (Schulman, Wolski, Dhariwal, Radford, Klimov, 2017) on the classic swing-up task: the motor
cannot lift the pendulum, it has to swing. With the angle ``a`` from upright, its rate ``w`` and the torque ``u`` within
+-2, a step of 0.05 s is

    w <- w + (3 g / 2 l sin a + 3 u / m l^2) dt,        a <- a + w dt,        |w| <= 8,

and costs ``a^2 + 0.1 w^2 + 0.001 u^2``, as in Gymnasium's ``Pendulum-v1``; an episode has 200 steps. The physics is
written in ops, so that hundreds of pendulums are one batch and a step of all of them is a few calls.

The policy is a network that gives the mean of a normal distribution of torques, the critic one that guesses the
return that is still to come. Each iteration plays one episode with all pendulums, computes advantages by generalised
advantage estimation (Schulman, Moritz, Levine, Jordan, Abbeel, 2016), and makes those actions likelier that did better
than the critic had guessed, while the ratio of new to old probabilities stays near 1:

    loss = -E[min(r A, clip(r, 1 - e, 1 + e) A)],        r = p_new(u | s) / p_old(u | s).

Stated is the mean return of episodes from random starts under the mean torque. Random torques have about -1200; a good
controller has about -150, most of which the way up costs.
"""

import math
import sys

import ptcore
from ptcore import nn
from ptcore.distributions import Normal
from ptcore.examples._common import Example
from ptcore.optim.lr_scheduler import LinearLR

GRAVITY, LENGTH, MASS = 10.0, 1.0, 1.0
TORQUE, SPEED, DT, STEPS = 2.0, 8.0, 0.05, 200
REWARD_SCALE = 0.1      # returns of a size that a network's output has


def start(count, where):
    """Random angles in (-pi, pi) and rates in (-1, 1), as one tensor of shape (count, 2)."""
    unit = 2 * ptcore.rand(count, 2, device=where) - 1
    return unit * ptcore.tensor([math.pi, 1.0], device=where)


def advance(state, torque):
    """Return the states after a step and its rewards."""
    angle, rate = state.unbind(-1)
    torque = torque.clamp(-TORQUE, TORQUE)
    away = ptcore.remainder(angle + math.pi, 2 * math.pi) - math.pi
    reward = -(away**2 + 0.1 * rate**2 + 0.001 * torque**2)
    push = 1.5 * GRAVITY / LENGTH * angle.sin() + 3 / (MASS * LENGTH**2) * torque
    rate = (rate + push * DT).clamp(-SPEED, SPEED)
    return ptcore.stack([angle + rate * DT, rate], -1), reward


def observe(state):
    """What the networks see of the states: numbers about 1, without the jump of the angle at pi."""
    angle, rate = state.unbind(-1)
    return ptcore.stack([angle.cos(), angle.sin(), rate / SPEED], -1)


def network(width):
    """Three numbers to one."""
    layers = [nn.Linear(3, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)]
    for layer in layers[::2]:
        nn.init.orthogonal_(layer.weight, math.sqrt(2) if layer is not layers[-1] else 0.01)
        nn.init.zeros_(layer.bias)
    return nn.Sequential(*layers)


class Agent(nn.Module):
    """The policy and the critic."""

    def __init__(self, width):
        super().__init__()
        self.mean, self.critic = network(width), network(width)
        self.log_scale = nn.Parameter(ptcore.zeros(()))

    def policy(self, seen):
        """The distribution of the torque."""
        mean = TORQUE * self.mean(seen).squeeze(-1)
        return Normal(mean, self.log_scale.exp(), validate_args=False)

    def value(self, seen):
        """The return to come that the critic guesses."""
        return self.critic(seen).squeeze(-1)


@ptcore.no_grad()
def play(agent, act, state):
    """One episode of all pendulums: what was seen, done and got, each of shape (STEPS, count), and the last sight."""
    rows = []
    for _ in range(STEPS):
        seen = observe(state)
        torque, log_prob, state, reward = act(seen, state)
        rows.append((seen, torque, log_prob, reward))
    return [ptcore.stack(column) for column in zip(*rows, strict=True)], observe(state)


def advantages(rewards, values, discount, mixing):
    """How much better than guessed each action was; ``values`` has one row more, of the state after the last step."""
    surprise = rewards + discount * values[1:] - values[:-1]
    found = ptcore.zeros_like(rewards)
    running = ptcore.zeros_like(rewards[0])
    for t in range(len(rewards) - 1, -1, -1):
        running = surprise[t] + discount * mixing * running
        found[t] = running
    return found


def train(agent, example):
    """Play and learn for ``--iterations``; return the mean returns of the episodes."""
    options = example.options
    optimizer = ptcore.optim.Adam(agent.parameters(), options.lr, eps=1e-5)
    schedule = LinearLR(optimizer, 1.0, 0.1, total_iters=options.iterations)

    def act(seen, state):
        policy = agent.policy(seen)
        torque = policy.sample()
        return torque, policy.log_prob(torque), *advance(state, torque)

    def learn(seen, torque, log_prob, advantage, target):
        optimizer.zero_grad()
        ratio = (agent.policy(seen).log_prob(torque) - log_prob).exp()
        near = ratio.clamp(1 - options.clip, 1 + options.clip)
        loss = -ptcore.minimum(ratio * advantage, near * advantage).mean()
        loss = loss + 0.5 * (agent.value(seen) - target).square().mean()
        loss.backward()
        nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
        optimizer.step()

    act, learn = example.compiled(act), example.compiled(learn)
    returns = []
    iterations = example.progress(range(options.iterations), unit="iteration")
    for _ in iterations:
        (seen, torque, log_prob, reward), last = play(agent, act, start(options.pendulums, options.device))
        with ptcore.no_grad():
            values = agent.value(ptcore.cat([seen, last[None]]))
            gain = advantages(reward * REWARD_SCALE, values, options.discount, options.mixing)
            target = gain + values[:-1]
            gain = (gain - gain.mean()) / (gain.std() + 1e-8)
        flat = [t.flatten(0, 1) for t in (seen, torque, log_prob, gain, target)]
        for _ in range(options.epochs):
            for rows in ptcore.randperm(flat[0].shape[0], device=options.device).split(options.batch_size):
                learn(*(t[rows] for t in flat))
        schedule.step()
        returns.append(reward.sum(0).mean().item())
        iterations.set_postfix(mean_return=f"{returns[-1]:.0f}")
    return returns


@ptcore.no_grad()
def evaluate(agent, count, where):
    """Returns of ``count`` episodes without noise, and their states, of shape (STEPS, count, 2)."""
    state, states, total = start(count, where), [], 0.0
    for _ in range(STEPS):
        state, reward = advance(state, agent.policy(observe(state)).mean)
        states.append(state)
        total = total + reward
    return total, ptcore.stack(states)


@ptcore.no_grad()
def draw(example, agent, returns, states):
    """Write the curve, some swings and the policy."""
    figure, (left, middle, right) = example.picture(columns=3)
    left.plot(returns)
    left.set(xlabel="iteration", ylabel="mean return of an episode", title="learning")
    time = DT * ptcore.arange(STEPS).numpy()
    middle.plot(time, states[:, :12, 0].cos().cpu().numpy(), lw=0.8)
    middle.set(xlabel="seconds", ylabel="height of the tip", title="twelve swings from random starts")
    angle = ptcore.linspace(-math.pi, math.pi, 121)
    rate = ptcore.linspace(-SPEED, SPEED, 121)
    grid = ptcore.stack(ptcore.meshgrid(angle, rate, indexing="xy"), -1).to(states.device)
    torque = agent.policy(observe(grid)).mean.clamp(-TORQUE, TORQUE).cpu().numpy()
    mesh = right.pcolormesh(angle.numpy(), rate.numpy(), torque, cmap="coolwarm", shading="auto", rasterized=True)
    figure.colorbar(mesh, label="torque")
    right.set(xlabel="angle from upright", ylabel="rate", title="what was learned")
    example.save(figure)


def main(argv=None):
    """Run the example; return a dictionary of the results."""
    example = Example(
        "pendulum", __doc__, argv,
        iterations=(40, "episodes of every pendulum"),
        pendulums=(64, "that swing at once"),
        epochs=(10, "passes over the steps of an iteration"),
        batch_size=(640, "steps in a minibatch"),
        width=(64, "of the networks' layers"),
        lr=(1e-3, "learning rate of Adam at its highest"),
        discount=(0.95, "of a step"),
        mixing=(0.95, "lambda of the advantages: 0 trusts the critic, 1 what came"),
        clip=(0.2, "how far the ratio of probabilities may be from 1"),
        episodes=(256, "for the evaluation"),
    )
    options = example.options
    agent = Agent(options.width).to(options.device)
    returns = train(agent, example)
    total, states = evaluate(agent, options.episodes, options.device)
    draw(example, agent, returns, states)
    upright = (states[-1, :, 0].cos() > 0.95).float().mean().item()
    example.claim(f"mean return of {options.episodes} episodes:", total.mean().item(), low=-200)
    example.claim("upright at the end:", upright, low=0.95)
    return example.result(mean_return=total.mean().item(), upright=upright, returns=returns)


if __name__ == "__main__":
    sys.exit(main()["status"])
