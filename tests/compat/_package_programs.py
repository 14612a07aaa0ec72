"""Programs over packages that were written for PyTorch: each trains for 20 steps and prints its losses.

``PREAMBLE`` stands in front of each: ``same`` gives a module the weights that the first run of the program drew,
``data`` and ``tokens`` draw numbers by NumPy, so that PyTorch and ptcore have the same.
"""
PREAMBLE = '''
import json, os, sys, warnings
warnings.simplefilter("ignore")
import numpy as np
import torch

def same(module, name="weights"):
    path = os.path.join(os.environ["PROGRAM_FOLDER"], name + ".npz")
    if os.path.exists(path):
        found = np.load(path)
        module.load_state_dict({key: torch.from_numpy(found[key].copy()) for key in module.state_dict()})
    else:
        np.savez(path, **{key: x.detach().numpy() for key, x in module.state_dict().items()})
    return module

def data(*shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).standard_normal(shape).astype("float32"))

def tokens(n, *shape, seed=0):
    return torch.from_numpy(np.random.default_rng(seed).integers(0, n, shape))

def train(parameters, loss, optimizer=None, steps=20):
    optimizer = torch.optim.AdamW(parameters, 1e-3) if optimizer is None else optimizer
    losses = []
    for _ in range(steps):
        value = loss()
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(value.item())
    return losses

def torchvision_without_its_extension():
    """PyTorch's own torchvision registers functions for ops that its extension has, if it is there."""
    if "ptcore" not in sys.modules:
        for name in ("nms", "qnms"):
            torch.library.define(f"torchvision::{name}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")

torch.manual_seed(0)
'''

# Small packages, which the extra `parity` installs.
SMALL = {
    "einops": '''
from einops import rearrange, reduce
from einops.layers.torch import Rearrange, Reduce
m = same(torch.nn.Sequential(Rearrange("b (h p) (w q) -> b (h w) (p q)", p=2, q=2), torch.nn.Linear(4, 8),
                             torch.nn.GELU(), Reduce("b n d -> b d", "mean"), torch.nn.Linear(8, 1)))
x, y = data(16, 8, 8), data(16, 1, seed=1)
print(json.dumps(train(m.parameters(), lambda: reduce((m(x) - y) ** 2, "b 1 -> ", "mean"))))
''',
    "lion_pytorch": '''
from lion_pytorch import Lion
m = same(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)))
x, y = data(32, 4), data(32, 1, seed=1)
print(json.dumps(train(None, lambda: ((m(x) - y) ** 2).mean(), Lion(m.parameters(), lr=1e-2, weight_decay=1e-2))))
''',
    "torchdiffeq": '''
from torchdiffeq import odeint, odeint_adjoint
class Field(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
    def forward(self, t, y):
        return self.net(y ** 3)
m, start = same(Field()).double(), data(5, 2).double()
t = torch.linspace(0, 1, 5, dtype=torch.float64)
with torch.no_grad():
    goal = odeint(lambda t, y: torch.stack([-y[..., 1], y[..., 0]], -1), start, t, method="dopri5")
losses = train(m.parameters(), lambda: (odeint(m, start, t) - goal).abs().mean())
losses += train(m.parameters(), lambda: (odeint_adjoint(m, start, t, rtol=1e-6) - goal).abs().mean(), steps=5)
print(json.dumps(losses))
''',
    "x_transformers": '''
from x_transformers import AutoregressiveWrapper, Decoder, TransformerWrapper
m = AutoregressiveWrapper(TransformerWrapper(num_tokens=20, max_seq_len=16, attn_layers=Decoder(
    dim=16, depth=2, heads=2, attn_dim_head=8, rotary_pos_emb=True)))
same(m)
x = tokens(20, 4, 17)
print(json.dumps(train(m.parameters(), lambda: m(x))))
''',
}
# Those that are installed by hand, without what they depend on of PyTorch.
LARGE = {
    "gpytorch": '''
import gpytorch
class Model(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean = gpytorch.means.ConstantMean()
        self.kernel = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())
    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean(x), self.kernel(x))
x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
model = Model(x, y, likelihood)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
print(json.dumps(train(None, lambda: -mll(model(x), y), torch.optim.Adam(model.parameters(), 0.1))))
''',
    "pyro": '''
import pyro
import pyro.distributions as dist
from pyro.infer import SVI, Trace_ELBO
from pyro.infer.autoguide import AutoDelta
x, y = data(30, 3), data(30, seed=1)
def model():
    w = pyro.sample("w", dist.Normal(torch.zeros(3), 1.0).to_event(1))
    scale = pyro.sample("scale", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", 30):
        pyro.sample("y", dist.Normal(x @ w, scale), obs=y)
guide = AutoDelta(model, init_loc_fn=lambda site: torch.full(site["fn"].batch_shape + site["fn"].event_shape, 0.5))
svi = SVI(model, guide, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
print(json.dumps([svi.step() for _ in range(20)]))
''',
    "torchmetrics": '''
torchvision_without_its_extension()
import torchmetrics
import torchmetrics.functional as f
p, t = data(50, 5).softmax(1), tokens(5, 50)
many = torchmetrics.MetricCollection([torchmetrics.Accuracy("multiclass", num_classes=5),
                                      torchmetrics.F1Score("multiclass", num_classes=5, average="macro"),
                                      torchmetrics.CohenKappa("multiclass", num_classes=5)])
for k in range(5):
    many.update(p[10 * k:10 * k + 10], t[10 * k:10 * k + 10])
found = [v.item() for v in many.compute().values()]
a, b = data(40), data(40, seed=1)
found += [f.auroc(a.sigmoid(), (b > 0).long(), task="binary").item(), f.mean_squared_error(a, b).item(),
          f.r2_score(a, b).item(), f.pearson_corrcoef(a, b).item(), f.spearman_corrcoef(a, b).item(),
          f.average_precision(a.sigmoid(), (b > 0).long(), task="binary").item(), f.cosine_similarity(
              a.reshape(4, 10), b.reshape(4, 10)).item()]
image, other = data(2, 3, 32, 32).sigmoid(), data(2, 3, 32, 32, seed=1).sigmoid()
found += [f.image.structural_similarity_index_measure(image, other).item(),
          f.image.peak_signal_noise_ratio(image, other, data_range=1.0).item()]
print(json.dumps(found))
''',
    "timm": '''
torchvision_without_its_extension()
import timm
losses = []
for name, options in (("vit_tiny_patch16_224", {"img_size": 32, "patch_size": 8, "depth": 2}), ("resnet10t", {}),
                      ("convnext_atto", {}), ("efficientnet_lite0", {"drop_rate": 0.0})):
    m = same(timm.create_model(name, num_classes=5, **options), name)
    x, y = data(4, 3, 32, 32), tokens(5, 4)
    if name.startswith("efficientnet"):
        m, x = m.double(), x.double()           # relu6 has a kink on either side, which float32 falls off
    m.eval()            # without dropout; batches of four 1x1 images have no statistics
    optimizer = torch.optim.SGD(m.parameters(), 1e-3)       # Adam's first steps depend on the signs of rounding errors
    losses += train(None, lambda: torch.nn.functional.cross_entropy(m(x), y), optimizer)
print(json.dumps(losses))
''',
    "kornia": '''
import kornia
x, y = data(2, 3, 16, 16).sigmoid(), data(2, 3, 16, 16, seed=1).sigmoid()
angle = torch.nn.Parameter(torch.tensor([10.0, 20.0]))
scale = torch.nn.Parameter(torch.ones(2, 2))
def loss():
    m = kornia.geometry.get_rotation_matrix2d(torch.full((2, 2), 8.0), angle, scale)
    z = kornia.geometry.warp_affine(kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)), m, (16, 16))
    z = kornia.enhance.adjust_saturation(z, 1.2)
    edges = kornia.filters.sobel(z).mean() + kornia.filters.canny(z.detach())[0].mean()
    return kornia.losses.ssim_loss(z, y, 5) + 0.1 * edges + kornia.color.rgb_to_hsv(z).mean() * 0.1
print(json.dumps(train(None, loss, torch.optim.Adam([angle, scale], 1e-2))))
''',
    "pytorch_lightning": '''
torchvision_without_its_extension()
import logging
logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)
import pytorch_lightning as lightning
class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.net = same(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))
        self.losses = []
    def training_step(self, batch, index):
        x, y = batch
        loss = torch.nn.functional.cross_entropy(self.net(x), y)
        self.losses.append(loss.item())
        self.log("loss", loss)
        return loss
    def validation_step(self, batch, index):
        self.log("val_loss", torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1]))
    def configure_optimizers(self):
        o = torch.optim.Adam(self.parameters(), 1e-2)
        return [o], [torch.optim.lr_scheduler.StepLR(o, 1, 0.5)]
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data(40, 4), tokens(3, 40)), batch_size=8)
model = Model()
trainer = lightning.Trainer(max_epochs=4, accelerator="cpu", logger=False, enable_checkpointing=False,
                            enable_progress_bar=False, enable_model_summary=False,
                            default_root_dir=os.environ["PROGRAM_FOLDER"])
trainer.fit(model, loader, loader)
print(json.dumps([*model.losses, trainer.callback_metrics["val_loss"].item()]))
''',
    "transformers": '''
torchvision_without_its_extension()
from transformers import (BertConfig, BertForSequenceClassification, GPT2Config, GPT2LMHeadModel, LlamaConfig,
                          LlamaForCausalLM)
small = dict(vocab_size=50, bos_token_id=0, eos_token_id=1, pad_token_id=2)
losses, x = [], tokens(50, 2, 8)
m = same(GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0,
                                    attn_pdrop=0.0, **small)), "gpt2")
losses += train(m.parameters(), lambda: m(input_ids=x, labels=x).loss)
m.eval()
losses += m.generate(x[:, :4], max_new_tokens=4, do_sample=False)[0].tolist()
m = same(BertForSequenceClassification(BertConfig(num_hidden_layers=2, num_attention_heads=2, hidden_size=32,
                                                  intermediate_size=64, hidden_dropout_prob=0.0,
                                                  attention_probs_dropout_prob=0.0, **small)), "bert")
mask = torch.ones(2, 8, dtype=torch.long)
mask[1, 5:] = 0
losses += train(m.parameters(), lambda: m(input_ids=x, attention_mask=mask, labels=torch.tensor([0, 1])).loss)
m = same(LlamaForCausalLM(LlamaConfig(num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, hidden_size=32,
                                      intermediate_size=64, **small)), "llama")
losses += train(m.parameters(), lambda: m(input_ids=x, labels=x).loss)
print(json.dumps(losses))
''',
    "torch_geometric": '''
from torch_geometric.nn import DenseGCNConv, DenseGINConv, DenseGraphConv, DenseSAGEConv, dense_diff_pool
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = DenseGCNConv(4, 8), DenseSAGEConv(8, 8), DenseGraphConv(8, 8)
        self.d, self.pool = DenseGINConv(torch.nn.Linear(8, 8)), DenseSAGEConv(4, 3)
        self.out = torch.nn.Linear(8, 1)
    def forward(self, x, adj):
        s = self.pool(x, adj)
        h = self.c(self.b(self.a(x, adj).relu(), adj).relu(), adj).relu()
        h, adj, link, entropy = dense_diff_pool(h, adj, s)
        return self.out(self.d(h, adj).relu().mean(1)), link + entropy
m, x = same(Net()), data(4, 6, 4)
adj = (data(4, 6, 6, seed=1) > 0).float()
adj = ((adj + adj.transpose(1, 2)) > 0).float()
y = data(4, 1, seed=2)
def loss():
    out, extra = m(x, adj)
    return ((out - y) ** 2).mean() + 0.1 * extra
print(json.dumps(train(m.parameters(), loss)))
''',
    "stable_baselines3": '''
import gymnasium
from stable_baselines3 import PPO
model = PPO("MlpPolicy", "Pendulum-v1", n_steps=64, batch_size=32, seed=0)
policy = same(model.policy)
obs, actions = data(64, 3), data(64, 1, seed=1)
returns, advantages = data(64, seed=2), data(64, seed=3)
with torch.no_grad():
    before = policy.evaluate_actions(obs, actions)[1]
def loss():
    values, log_prob, entropy = policy.evaluate_actions(obs, actions)
    ratio = torch.exp(log_prob - before)
    surrogate = torch.min(advantages * ratio, advantages * torch.clamp(ratio, 0.8, 1.2)).mean()
    return torch.nn.functional.mse_loss(returns, values.flatten()) - surrogate - 0.01 * entropy.mean()
losses = train(None, loss, policy.optimizer)
model.learn(128)
print(json.dumps(losses))
''',
}
