"""More programs as those of ``_package_programs``, over packages that are installed by hand."""
MORE = {
    "vit_pytorch": '''
torchvision_without_its_extension()
from vit_pytorch import ViT
m = same(ViT(image_size=16, patch_size=4, num_classes=5, dim=16, depth=2, heads=2, mlp_dim=32))
x, y = data(4, 3, 16, 16), tokens(5, 4)
print(json.dumps(train(m.parameters(), lambda: torch.nn.functional.cross_entropy(m(x), y))))
''',
    "higher": '''
import higher
m = same(torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)))
x, y = data(10, 3), data(10, 1, seed=1)
inner, outer = torch.optim.SGD(m.parameters(), 0.1), torch.optim.Adam(m.parameters(), 1e-2)
losses = []
for _ in range(20):
    outer.zero_grad()
    with higher.innerloop_ctx(m, inner, copy_initial_weights=False) as (f, steps):
        for _ in range(3):
            steps.step(((f(x[:5]) - y[:5]) ** 2).mean())
        loss = ((f(x[5:]) - y[5:]) ** 2).mean()
        loss.backward()
    outer.step()
    losses.append(loss.item())
print(json.dumps(losses))
''',
    "captum": '''
from captum.attr import DeepLift, IntegratedGradients, LayerGradCam, Occlusion, Saliency
m = same(torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3)))
x = data(2, 1, 8, 8)
found = [IntegratedGradients(m).attribute(x, target=1, n_steps=20),
         Saliency(m).attribute(x.clone().requires_grad_(), target=1), DeepLift(m).attribute(x, target=1),
         LayerGradCam(m, m[0]).attribute(x, target=1),
         Occlusion(m).attribute(x, target=1, sliding_window_shapes=(1, 4, 4), strides=(1, 4, 4))]
print(json.dumps([v for t in found for v in t.flatten()[:20].tolist()]))
''',
    "torchinfo": '''
from torchinfo import summary
m = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 3))
found = []
for size in ((2, 1, 8, 8), (1, 1, 8, 8)):
    s = summary(m, size, verbose=0)
    found += [s.total_params, s.trainable_params, s.total_mult_adds, s.total_input, s.total_output_bytes,
              s.total_param_bytes]
print(json.dumps(found))
''',
    "segmentation_models_pytorch": '''
torchvision_without_its_extension()
import segmentation_models_pytorch as smp
m = same(smp.Unet("resnet18", encoder_weights=None, classes=2)).double().eval()
x, y = data(2, 3, 32, 32).double(), tokens(2, 2, 32, 32)
dice = smp.losses.DiceLoss("multiclass")
def loss():
    out = m(x)
    return dice(out, y) + torch.nn.functional.cross_entropy(out, y)
print(json.dumps(train(None, loss, torch.optim.SGD(m.parameters(), 1e-2), steps=10)))
''',
    "efficientnet_pytorch": '''
from efficientnet_pytorch import EfficientNet
m = same(EfficientNet.from_name("efficientnet-b0", num_classes=4)).double().eval()
x, y = data(2, 3, 32, 32).double(), tokens(4, 2)
optimizer = torch.optim.SGD(m.parameters(), 1e-3)
print(json.dumps(train(None, lambda: torch.nn.functional.cross_entropy(m(x), y), optimizer, steps=10)))
''',
    "e3nn": '''
from e3nn import o3
torch.set_default_dtype(torch.float64)
irreps = o3.Irreps("2x0e + 1x1o")
m = same(o3.FullyConnectedTensorProduct(irreps, irreps, "1x0e + 1x1o"))
x, y = data(8, 5).double(), data(8, 5, seed=1).double()
found = o3.spherical_harmonics("1o + 2e", data(8, 3).double(), True).flatten()[:20].tolist()
print(json.dumps(train(m.parameters(), lambda: (m(x, y) ** 2).mean()) + found))
''',
    "peft": '''
torchvision_without_its_extension()
from peft import LoraConfig, get_peft_model
from transformers import GPT2Config, GPT2LMHeadModel
m = GPT2LMHeadModel(GPT2Config(n_layer=2, n_head=2, n_embd=32, n_positions=16, resid_pdrop=0.0, embd_pdrop=0.0,
                               attn_pdrop=0.0, vocab_size=50, bos_token_id=0, eos_token_id=1))
m = same(get_peft_model(m, LoraConfig(r=4, target_modules=["c_attn"], lora_dropout=0.0, task_type="CAUSAL_LM",
                                      fan_in_fan_out=True)))
x = tokens(50, 2, 8)
print(json.dumps(train([p for p in m.parameters() if p.requires_grad], lambda: m(input_ids=x, labels=x).loss)))
''',
    "diffusers": '''
torchvision_without_its_extension()
from diffusers import DDPMScheduler, UNet2DModel
m = same(UNet2DModel(sample_size=16, in_channels=1, out_channels=1, layers_per_block=1, block_out_channels=(8, 16),
                     norm_num_groups=4, down_block_types=("DownBlock2D", "AttnDownBlock2D"),
                     up_block_types=("AttnUpBlock2D", "UpBlock2D"), attention_head_dim=4))
x, noise, t = data(2, 1, 16, 16), data(2, 1, 16, 16, seed=1), torch.tensor([10, 50])
noisy = DDPMScheduler(100).add_noise(x, noise, t)
print(json.dumps(train(m.parameters(), lambda: ((m(noisy, t).sample - noise) ** 2).mean(), steps=10)))
''',
    "open_clip": '''
torchvision_without_its_extension()
from open_clip.loss import ClipLoss
from open_clip.model import CLIP
m = same(CLIP(embed_dim=16, vision_cfg=dict(image_size=32, layers=2, width=32, patch_size=8, head_width=16),
              text_cfg=dict(context_length=8, vocab_size=50, width=32, heads=2, layers=2)))
x, t, loss = data(4, 3, 32, 32), tokens(50, 4, 8), ClipLoss()
print(json.dumps(train(m.parameters(), lambda: loss(*m(x, t)))))
''',
    "botorch": '''
from botorch.acquisition import LogExpectedImprovement
from botorch.fit import fit_gpytorch_mll
from botorch.models import SingleTaskGP
from botorch.optim import optimize_acqf
from gpytorch.mlls import ExactMarginalLogLikelihood
torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 8)[:, None]
y = torch.sin(6 * x)
m = SingleTaskGP(x, y)
fit_gpytorch_mll(ExactMarginalLogLikelihood(m.likelihood, m))
improvement = LogExpectedImprovement(m, best_f=y.max())
grid = torch.linspace(0, 1, 20)[:, None, None]
_, best = optimize_acqf(improvement, torch.tensor([[0.0], [1.0]]), q=1, num_restarts=2, raw_samples=8,
                        options={"seed": 1})
print(json.dumps(m.posterior(grid[:, 0]).mean.flatten().tolist() + improvement(grid).tolist() + [best.item()]))
''',
    "neuralop": '''
from neuralop.models import FNO
m = FNO(n_modes=(4, 4), hidden_channels=8, in_channels=1, out_channels=1, n_layers=2)
with torch.no_grad():           # its state holds more than tensors
    for k, p in enumerate(m.parameters()):
        p.copy_(data(*p.shape, seed=100 + k).to(p.dtype) * 0.1)
x, y = data(2, 1, 16, 16), data(2, 1, 16, 16, seed=1)
print(json.dumps(train(m.parameters(), lambda: ((m(x) - y) ** 2).mean(), steps=10)))
''',
    "nflows": '''
from nflows.distributions.normal import StandardNormal
from nflows.flows.base import Flow
from nflows.transforms import CompositeTransform, MaskedAffineAutoregressiveTransform, ReversePermutation
m = same(Flow(CompositeTransform([f for _ in range(2) for f in (
    ReversePermutation(2), MaskedAffineAutoregressiveTransform(2, 8))]), StandardNormal([2])))
x = data(32, 2)
print(json.dumps(train(m.parameters(), lambda: -m.log_prob(x).mean())))
''',
    "normflows": '''
import normflows as nf
m = same(nf.NormalizingFlow(nf.distributions.DiagGaussian(2), [
    nf.flows.AutoregressiveRationalQuadraticSpline(2, 1, 8), nf.flows.LULinearPermute(2)]))
x = data(32, 2)
print(json.dumps(train(m.parameters(), lambda: m.forward_kld(x))))
''',
    "monai": '''
from monai.losses import DiceLoss
from monai.networks.nets import UNet
m = same(UNet(spatial_dims=2, in_channels=1, out_channels=2, channels=(4, 8), strides=(2,), num_res_units=1,
              norm="batch")).double()
x, y, loss = data(2, 1, 16, 16).double(), tokens(2, 2, 1, 16, 16), DiceLoss(to_onehot_y=True, softmax=True)
print(json.dumps(train(m.parameters(), lambda: loss(m(x), y), steps=10)))
''',
    "pytorch_optimizer": '''
import pytorch_optimizer
losses = []
for name in ("Lion", "AdaBelief", "AdamP", "Adan", "Lamb", "AdaFactor", "Prodigy", "DAdaptAdam"):
    m = same(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)))
    x, y = data(32, 4), data(32, 1, seed=1)
    optimizer = getattr(pytorch_optimizer, name)(m.parameters(), lr=1e-2)
    losses += train(None, lambda: ((m(x) - y) ** 2).mean(), optimizer)
print(json.dumps(losses))
''',
    "torch_optimizer": '''
import torch_optimizer
losses = []
for name in ("AdaBound", "DiffGrad", "Lamb", "NovoGrad", "QHAdam", "Yogi", "Shampoo", "AggMo"):
    m = same(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)))
    x, y = data(32, 4), data(32, 1, seed=1)
    optimizer = getattr(torch_optimizer, name)(m.parameters(), lr=1e-2)
    losses += train(None, lambda: ((m(x) - y) ** 2).mean(), optimizer)
print(json.dumps(losses))
''',
    "skorch": '''
from skorch import NeuralNetClassifier
m = same(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3), torch.nn.Softmax(-1)))
net = NeuralNetClassifier(m, max_epochs=12, lr=0.1, iterator_train__shuffle=False, train_split=None, verbose=0)
net.fit(data(40, 4).numpy(), tokens(3, 40).numpy())
print(json.dumps(net.history[:, "train_loss"]))
''',
    "ignite": '''
from ignite.engine import Events, create_supervised_evaluator, create_supervised_trainer
from ignite.metrics import Accuracy, Loss
m = same(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data(40, 4), tokens(3, 40)), batch_size=8)
loss, found = torch.nn.CrossEntropyLoss(), []
trainer = create_supervised_trainer(m, torch.optim.Adam(m.parameters(), 1e-2), loss)
evaluator = create_supervised_evaluator(m, metrics={"accuracy": Accuracy(), "loss": Loss(loss)})
@trainer.on(Events.ITERATION_COMPLETED)
def _(engine):
    found.append(engine.state.output)
@trainer.on(Events.EPOCH_COMPLETED)
def _(engine):
    evaluator.run(loader)
    found.extend([evaluator.state.metrics["accuracy"], evaluator.state.metrics["loss"]])
trainer.run(loader, max_epochs=3)
print(json.dumps(found))
''',
    "accelerate": '''
torchvision_without_its_extension()
from accelerate import Accelerator
accelerator = Accelerator(cpu=True)
m = same(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)))
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(data(40, 4), tokens(3, 40)), batch_size=8)
m, optimizer, loader = accelerator.prepare(m, torch.optim.Adam(m.parameters(), 1e-2), loader)
losses = []
for _ in range(3):
    for x, y in loader:
        loss = torch.nn.functional.cross_entropy(m(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
print(json.dumps(losses))
''',
    "torchani": '''
import torchani
m = torchani.AEVComputer.like_2x().double()
species, places = torch.tensor([[0, 1, 1]]), data(1, 3, 3).double().requires_grad_()
found = m(species, places)
found = found[1] if isinstance(found, tuple) else found
found.sum().backward()
print(json.dumps(found.flatten()[:20].tolist() + places.grad.flatten().tolist()))
''',
    "pytorch_tabnet": '''
from pytorch_tabnet.tab_network import TabNet
m = same(TabNet(5, 2, n_steps=2, n_d=4, n_a=4, group_attention_matrix=torch.eye(5)))
x, y = data(32, 5), tokens(2, 32)
def loss():
    out, extra = m(x)
    return torch.nn.functional.cross_entropy(out, y) - 1e-3 * extra
print(json.dumps(train(m.parameters(), loss)))
''',
    "torchsde": '''
import torchsde
class System(torch.nn.Module):
    noise_type, sde_type = "diagonal", "ito"
    def __init__(self):
        super().__init__()
        self.drift = torch.nn.Linear(2, 2)
    def f(self, t, y):
        return self.drift(y)
    def g(self, t, y):
        return 0.0 * y          # the noise of the two frameworks is another one
m = same(System())
x, t = data(4, 2), torch.linspace(0, 1, 3)
print(json.dumps(train(m.parameters(), lambda: (torchsde.sdeint(m, x, t, dt=0.1, method="euler")[-1] ** 2).mean())))
''',
    "tltorch": '''
import tltorch
m = same(tltorch.FactorizedLinear((2, 2), (3, 2), rank=0.5, factorization="cp"))
x = data(8, 4)
print(json.dumps(train(m.parameters(), lambda: (m(x) ** 2).mean())))
''',
    "geomloss": '''
from geomloss import SamplesLoss
x, y = torch.nn.Parameter(data(10, 2)), data(12, 2, seed=1)
losses = []
for kind in ("sinkhorn", "gaussian", "energy"):
    loss = SamplesLoss(kind, p=2, blur=0.1, backend="tensorized")
    losses += train(None, lambda: loss(x, y), torch.optim.SGD([x], 0.1), steps=7)
print(json.dumps(losses))
''',
    "local_attention": '''
from local_attention import LocalAttention
attention = LocalAttention(dim=8, window_size=4, causal=True)
q, k, v = (torch.nn.Parameter(data(2, 2, 16, 8, seed=i)) for i in range(3))
print(json.dumps(train([q, k, v], lambda: attention(q, k, v).square().mean())))
''',
    "performer_pytorch": '''
from performer_pytorch import Performer
m = same(Performer(dim=16, depth=1, heads=2, dim_head=8, causal=False))
x = data(2, 10, 16)
print(json.dumps(train(m.parameters(), lambda: m(x).square().mean())))
''',
}
