"""A character model of names in the style of makemore: PyTorch's program with its imports changed.

The sampler draws with replacement 10**10 times, so that one loader serves the whole training.
"""

from lucid.compat.torch.utils.data import Dataset
from lucid.compat.torch.utils.data.dataloader import DataLoader

import lucid.compat.torch as torch
import lucid.compat.torch.nn as nn
from lucid.compat.torch.nn import functional as F

WORDS = "anna bella carla dana ella fiona greta hanna ida julia karla lena mona nora olga".split()
CONTEXT = 3


class Names(Dataset):
    """Every letter of every word, after the letters before it; 0 ends a word."""

    def __init__(self, words):
        letters = sorted(set("".join(words)))
        self.index = {letter: i + 1 for i, letter in enumerate(letters)}
        self.letters = {i: letter for letter, i in self.index.items()}
        self.pairs = []
        for word in words:
            context = [0] * CONTEXT
            for i in [*(self.index[letter] for letter in word), 0]:
                self.pairs.append((context, i))
                context = [*context[1:], i]

    def __len__(self):
        return len(self.pairs)

    def __getitem__(self, i):
        context, target = self.pairs[i]
        return torch.tensor(context, dtype=torch.long), torch.tensor(target, dtype=torch.long)


class InfiniteLoader:
    """Batches forever."""

    def __init__(self, dataset, **options):
        sampler = torch.utils.data.RandomSampler(
            dataset, replacement=True, num_samples=int(1e10), generator=torch.Generator(0)
        )
        self.batches = iter(DataLoader(dataset, sampler=sampler, **options))

    def next(self):
        return next(self.batches)


class MLP(nn.Module):
    def __init__(self, size, width=32, features=8):
        super().__init__()
        self.embedding = nn.Embedding(size, features)
        self.hidden = nn.Linear(CONTEXT * features, width)
        self.head = nn.Linear(width, size)

    def forward(self, x):
        return self.head(torch.tanh(self.hidden(self.embedding(x).view(x.size(0), -1))))


@torch.no_grad()
def sample(model, names):
    word, context = "", [0] * CONTEXT
    while len(word) < 10:
        logits = model(torch.tensor([context], dtype=torch.long))
        i = torch.multinomial(F.softmax(logits, dim=-1), num_samples=1).item()
        if i == 0:
            break
        word, context = word + names.letters[i], [*context[1:], i]
    return word


def main(steps=300):
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    names = Names(WORDS)
    model = MLP(len(names.index) + 1).to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    loader = InfiniteLoader(names, batch_size=32, pin_memory=True)
    losses = []
    for _ in range(steps):
        x, y = [t.to(device) for t in loader.next()]
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    print(
        f"loss {losses[0]:.2f} -> {losses[-1]:.2f};",
        " ".join(sample(model, names) for _ in range(5)),
    )
    return losses


if __name__ == "__main__":
    main()
