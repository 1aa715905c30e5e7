"""REINFORCE in the style of pytorch/examples: a policy learns to stay on a line of five cells.

The imports are the only difference from the PyTorch program.
"""

import random

import lucid.compat.torch.nn.functional as F
import lucid.compat.torch.optim as optim
from lucid.compat.torch.distributions import Categorical

import lucid.compat.torch as torch
import lucid.compat.torch.nn as nn

CELLS, LENGTH, GAMMA = 5, 20, 0.95


class Line:
    """Steps go left or right, and the wind sometimes blows right; outside, the game ends."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def reset(self):
        self.cell = CELLS // 2
        return self.observation()

    def observation(self):
        return torch.eye(CELLS)[self.cell]

    def step(self, action):
        self.cell += (1 if action else -1) + (self.random.random() < 0.3)
        done = not 0 <= self.cell < CELLS
        self.cell = min(max(self.cell, 0), CELLS - 1)
        return self.observation(), 0.0 if done else 1.0, done


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine = nn.Linear(CELLS, 2)
        self.saved_log_probs, self.rewards = [], []

    def forward(self, x):
        return F.softmax(self.affine(x), dim=-1)


def select_action(policy, state):
    m = Categorical(policy(state.unsqueeze(0)))
    action = m.sample()
    policy.saved_log_probs.append(m.log_prob(action))
    return action.item()


def finish_episode(policy, optimizer):
    total, returns = 0.0, []
    for reward in policy.rewards[::-1]:
        total = reward + GAMMA * total
        returns.insert(0, total)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    loss = torch.cat([-p * r for p, r in zip(policy.saved_log_probs, returns)]).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    del policy.rewards[:], policy.saved_log_probs[:]


def main(episodes=150):
    torch.manual_seed(1)
    line, policy = Line(0), Policy()
    optimizer = optim.Adam(policy.parameters(), lr=5e-2)
    lengths = []
    for _ in range(episodes):
        state = line.reset()
        for _ in range(LENGTH):
            state, reward, done = line.step(select_action(policy, state))
            policy.rewards.append(reward)
            if done:
                break
        lengths.append(len(policy.rewards))
        finish_episode(policy, optimizer)
    early, late = sum(lengths[:30]) / 30, sum(lengths[-30:]) / 30
    print(f"steps on the line: {early:.1f} -> {late:.1f}")
    return early, late


if __name__ == "__main__":
    main()
