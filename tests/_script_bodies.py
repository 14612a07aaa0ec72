"""Bodies of functions that script takes or refuses, apart by ``---``: tests/jit/test_parity_script.py says of what."""

# Bodies that both accept, with equal results.
ACCEPTED = """
return n + 1, n - r, n * 2, n / 2, n // 2, n % 2, n ** 2, -n, r ** 0.5
---
return n & 3, n | 4, n ^ 1, n << 2, n >> 1
---
return n == 3, n != 3, n < r, n <= 3, n > r, n >= 3
---
return b and n > 2, b or n > 2, not b, n > 1 and (n < 5 or b)
---
return 1 < n < 5
---
return abs(-n), abs(-r), min(n, 2), max(r, 2.0), min(n, 2.5), round(r), int(r), float(n), bool(n), str(n)
---
return min(a), max(a), sum(a), sorted(a), any([b]), all([b, True]), len(a), divmod(n, 2)
---
return ord("a"), chr(97), hex(n), oct(n), bin(n)
---
return math.sqrt(r), math.pi, math.floor(r), math.ceil(r), math.exp(1), math.log(r), math.gcd(n, 6), math.isnan(r)
---
return math.sin(r), math.cos(r), math.tan(r), math.atan2(r, r), math.pow(r, 2.0), math.fabs(-r), math.degrees(r)
---
return s + "x", s[0], s[1:], s.upper(), s.lower(), s.strip(), len(s), "a" in s, s == "ab", s < "b"
---
return s.split("b"), ",".join(["a", "b"]), s.replace("a", "b"), s.find("b"), s.startswith("a"), s.endswith("b")
---
return s.isdigit(), s.isalpha(), s.isupper(), s.center(8), s.ljust(8), s.rjust(8), s.zfill(5), s.count("a")
---
return s.title(), s.capitalize(), s.swapcase(), s.partition("b"), s.splitlines(), s.expandtabs(2), s.rfind("a")
---
return "{} {}".format(s, n), f"{s} {n}", "%d %s" % (n, s)
---
z: List[List[float]] = x.tolist()
return z
---
if n > 2:
    return 1
return 2
---
if n > 2:
    return 1
---
if o is None:
    return 1
return o + 1
---
if o is not None and o > 2:
    return o
return 0
---
assert o is not None
return o + 1
---
if not (o is None):
    return o
else:
    return 3
---
z = 1 if o is None else o
return z
---
while n > 0:
    n -= 2
    if n == 1:
        break
    if n % 2 == 0:
        continue
return n
---
k = 0
for i in range(10):
    if i == n:
        continue
    if i == 7:
        break
    k += i
return k
---
for i in range(5):
    for j in range(5):
        if i * j == n:
            return i, j
return -1, -1
---
k = 0
for q in a:
    k += q
return k
---
k = ""
for i, c in enumerate(s):
    k += c + str(i)
return k
---
k = 0
for i, j in zip(a, [4, 5, 6]):
    k += i * j
return k
---
a.append(4)
a.extend([5])
a.insert(0, 9)
q = a.pop()
a.remove(9)
a.reverse()
return a, q, a.index(4), a.count(1)
---
z = a.copy()
z.sort()
z.sort(reverse=True)
z.clear()
return a, z
---
a[0] = 7
a[-1] += 2
del a[0]
return a, a[0:1], a[::2], 2 in a, a + [1], a * 2
---
return a == [1, 2, 3], a != [1], [1, 2] == [1, 2]
---
d["z"] = 1
return d["z"], "z" in d, len(d), d.get("q", 5), d.get("z"), d.pop("z")
---
return [k for k in d.keys()], [v for v in d.values()], [k + str(v) for k, v in d.items()]
---
z = {"a": 1, "b": n}
z.update({"c": 3})
z.setdefault("d", 4)
del z["a"]
return z
---
z: Dict[int, List[str]] = {}
z[1] = ["a"]
return z
---
return [i * 2 for i in a], {i: i * 2 for i in a}, [[i + j for i in a] for j in a]
---
return t[0], t[1], len(t), t[-1]
---
p, q = t
(v, w), z = (1, 2), 3
return p, q, v, w, z
---
p, q, v = a
return p + q + v
---
if isinstance(u, int):
    return u + 1
return len(u)
---
if isinstance(y, int):
    return y
return 0
---
if torch.jit.isinstance(y, List[int]):
    return y[0]
return -1
---
return isinstance(n, int), isinstance(n, float), isinstance(s, str), isinstance(a, list), isinstance(t, tuple)
---
z = torch.jit.annotate(List[str], [])
z.append(s)
return z
---
z: Optional[int] = None
if n > 2:
    z = n
return z
---
return x + 1, x - n, 2 * x, x / r, x ** 2, -x, x @ x, x == x, x > 1, ~(x > 1)
---
return x[0], x[0, 1], x[:, 1], x[..., 0], x[None], x[1:], x[:, :1], x[x > 1], x[[0, 1]]
---
x[0] = 5
x[:, 1] += 2
x += 1
x *= 2
return x
---
return x.shape, x.size(0), x.dim(), x.numel(), len(x), x.dtype == torch.float32, x.shape[0]
---
return x.sum(), x.mean(dim=0), x.max(), x.argmax(), x.sum(dim=[0, 1]), x.sum(0, keepdim=True), x.t()
---
z, i = x.max(dim=0)
return z, i
---
return torch.max(x, dim=1).values, x.sort(dim=0).indices, x.topk(1).values
---
z = x.split(1)
return z, torch.cat(z), torch.stack([x, x]), x.chunk(2), x.unbind(0)
---
return torch.relu(x), torch.nn.functional.softmax(x, dim=1), x.view(-1), x.reshape(x.shape[0], -1), x.view([4])
---
return torch.zeros(2, 3), torch.ones([2]), torch.arange(5), torch.full([2], 3.0), torch.eye(2), torch.zeros_like(x)
---
return torch.tensor([1.0, 2.0]), torch.tensor(3), torch.tensor([[1, 2]])
---
return float(x.sum()), int(x.sum()), bool(x.sum()), x.sum().item()
---
if x.sum() > 3:
    return 1
return 2
---
k = 0.0
for row in x:
    k += float(row.sum())
return k
---
with torch.no_grad():
    z = x * 2
return z
---
return x.to(torch.float64), x.to(torch.int64), x.float(), x.int(), x.type_as(x), x.clone(), x.detach()
---
return x.clamp(0, 2), x.clamp(min=1.0), x.masked_fill(x > 1, 0.0), torch.where(x > 1, x, -x)
---
if torch.jit.is_scripting():
    return n
else:
    return "a"
---
raise ValueError("no")
---
assert n > 5, "n is small"
return n
---
if n > 2:
    raise RuntimeError(f"{n}")
return n
---
return helper(n), helper(n, k=4), helper(n=n)
---
z = helper(helper(n))
return z
---
p = Point(n, x)
return p.n, p.x, p[0], p
---
return Color.RED, Color.RED == Color.BLUE, Color.RED.value, Color.RED.name
---
z = [c.value for c in [Color.RED, Color.BLUE]]
return z
---
z = torch.jit.fork(helper, n)
return torch.jit.wait(z)
---
z = None
return z is None, None is None
---
z = (1, 2) + (3,)
return z, z[0:2]
---
pass
---
del n
return 1
---
x: Tensor = x + 1
n += 1
return x, n
---
z = n if b else n + 1
z = z if z > 2 else -z
return z
---
i = 7
for i in range(3):
    pass
return i
---
z = [1, 2, 3]
z += [4]
return z
---
z = [x, x]
return torch.cat(z, dim=1), sum([1.5, 2.5])
---
return x.add_(1), x.mul_(2), x
---
return complex(1, 2), 3j + 1
---
return [i for i in range(4)], [i for i in range(5, 0, -2)], list(a), list(s)
---
return int("12"), float("1.5"), str(r), str(b)
---
print(n, s)
return 1
---
z = 0
while True:
    z += 1
    if z > n:
        return z
---
return torch.nn.functional.linear(x, x), torch.matmul(x, x), torch.einsum("ij,jk->ik", x, x)
---
return (n, s), [n, n], {s: n}, ((1, 2), [3.0])
---
z = 1
z = 2.5
return z
---
return x if n > 2 else x * 2, x.device.type, x.requires_grad, x.is_floating_point()
---
p = q = [1, 2]
p.append(3)
return q
---
return x.device == torch.device("cpu"), x.dtype == torch.float, x.is_cuda, x.layout == torch.strided
---
z = torch.jit.annotate(Optional[int], None)
return z
---
return isinstance(n, (int, float)), isinstance(x, torch.Tensor), isinstance(s, (int, float))
---
return float("inf"), -math.inf, math.nan != math.nan
---
return torch.zeros([2], dtype=torch.float64), torch.ones(2, 3, dtype=torch.int64, device=x.device)
---
return torch.zeros(x.size(0), n)
---
return F.pad(x, [1, 1]), F.pad(x, (1, 0, 0, 1), value=2.0)
---
z = x.unsqueeze(0).unsqueeze(0)
return F.interpolate(z, scale_factor=2.0, mode="nearest"), F.conv2d(z, z, None, stride=1, padding=[1, 1])
---
return x[:, None], x[..., -1:], x[torch.tensor([0, 1])], x[:, [0, 1]], x[0][1], x[-1, -1], x[0:1, 0:1]
---
k = [1, 2, 3]
return torch.tensor(k), torch.tensor([n, n]), torch.tensor(r), torch.tensor([[n], [n]])
---
return torch.tensor([r], dtype=torch.float64)
---
return x.permute(1, 0), x.permute([1, 0]), x.expand(2, 2), x.repeat(2, 1), x.flatten(), x.squeeze(), x.unsqueeze(-1)
---
return torch.sum(x, dim=(0, 1)), torch.mean(x, 0), x.std(), x.var(dim=1), torch.norm(x), x.prod(), x.cumsum(0)
---
return x.new_zeros(2), x.new_ones([2]), torch.empty_like(x).shape, torch.full_like(x, 2.0), x.new_full((2,), 1.0)
---
_ = x.add_(1)
z, _ = x.max(0)
return z
---
return torch.clamp(x, min=0.0), torch.where(x > 2, x, torch.zeros_like(x)), (x > 1) & (x < 3)
---
return torch.bmm(x.unsqueeze(0), x.unsqueeze(0)), torch.mm(x, x), x.matmul(x), torch.addmm(x, x, x)
---
return torch.outer(x[0], x[1])
---
return F.relu(x), F.gelu(x), F.dropout(x, 0.5, False), F.layer_norm(x, [2])
---
return F.one_hot(torch.tensor([0, 1]), 3), F.mse_loss(x, x), F.cross_entropy(x, torch.tensor([0, 1]))
---
z = {"a": x, "b": x * 2}
k = torch.zeros(2, 2)
for key, v in z.items():
    k = k + v
return k, list(z.keys())
---
z: List[Optional[int]] = [1, None]
k = 0
for q in z:
    if q is not None:
        k += q
return k
---
z: List[Tuple[str, int]] = [("a", 1), ("b", 2)]
return [k + str(v) for k, v in z], {k: v for k, v in z}
---
z: List[List[int]] = [[1], [2, 3]]
z[0].append(5)
z[1][0] += 7
return z, [len(q) for q in z], sum([sum(q) for q in z])
---
k = 0
while k < len(a) and a[k] != 2:
    k += 1
return k
---
k = -1
for i in range(len(a) - 1, -1, -1):
    if a[i] < 3:
        k = i
        break
return k
---
return max(a[0], a[1], a[2]), min(r, 1.0), max([1.5, 2.5]), abs(-2.5)
---
if x.shape[0] == 2 and x.dim() == 2:
    return x.sum()
else:
    return x
---
z: Optional[Tensor] = None
if n > 2:
    z = x
if z is None:
    z = x * 2
return z + 1
---
z: Union[int, str] = n
if n > 2:
    z = "a"
if isinstance(z, str):
    return 1
return z
---
z: List[Tensor] = []
for i in range(3):
    z.append(x * i)
return torch.stack(z), torch.cat(z, 0), len(z), z[-1]
---
z = x
for i in range(2):
    z = torch.relu(z @ x)
    if z.max().item() > 20:
        z = z / 2
return z
---
return torch.arange(n), torch.arange(0, 6, 2), torch.linspace(0.0, 1.0, 3), torch.eye(n)
---
return x.view(x.size(0), -1), x.reshape((4,)), x.view(-1, 1, 2).shape, x.transpose(0, 1), x.t().contiguous()
---
return torch.sort(x, dim=1, descending=True), x.argsort(1), x.topk(1, dim=0), torch.unique(torch.tensor([1, 1, 2]))
---
return torch.gather(x, 1, torch.tensor([[0], [1]])), x.index_select(0, torch.tensor([1]))
---
return x.scatter(1, torch.tensor([[0], [1]]), 0.0)
---
return torch.split(x, [1, 1]), torch.chunk(x, 2, dim=1)
---
return torch.meshgrid([torch.arange(2), torch.arange(2)], indexing="ij")
---
return n if b else -n, (n, r) if b else (1, 2.0), [1] if b else [2, 3]
---
return not a, not s, not d, bool(a), bool(s), 1 if a else 2
---
i, j = 0, 10
while i < j:
    i, j = i + 1, j - 1
    if i == 3:
        continue
    j -= 1
return i, j
---
return a[n - 1], a[-n], s[n - 2], t[1][0]
---
return a[:n], a[n:], a[-2:], a[::-1], s[::-1], s[-1:]
---
z = a[:]
z[0] = 100
return a, z
---
return 5 // 2, -5 // 2, 5 % -3, 5.5 // 2, 5.5 % 2, 2 ** 3, 2.0 ** -1, 7 / 2, 1e3, 0x10, 1_000
---
return F.embedding(torch.tensor([0, 1]), x), F.log_softmax(x, 1), F.normalize(x, dim=1)
---
return torch.einsum("ij->i", [x]), torch.tril(x), torch.triu(x, 1), torch.diag(x), torch.flip(x, [0])
---
return torch.roll(x, 1, 0)
---
return x.masked_select(x > 2), x.nonzero(), torch.nonzero(x > 2), x.index_fill(0, torch.tensor([0]), 1.0), x.fill_(2.0)
---
y2 = x.detach().clone().requires_grad_(True)
z = (y2 * y2).sum()
return z.requires_grad, y2.is_leaf, torch.is_grad_enabled()
"""
# Bodies that both refuse.
REFUSED = """
try:
    z = 1
except ValueError:
    z = 2
return z
---
import math
return 1
---
z = lambda q: q
return 1
---
z = {1, 2}
return 1
---
def g():
    return 1
return g()
---
yield n
---
global q
return 1
---
if n > 2:
    z = 1
return z
---
if n > 2:
    z = 1
else:
    z = "a"
return z
---
for i in range(n):
    z = i
return z
---
z = 1
if n > 2:
    z = None
return z
---
z = 1
if n > 2:
    z = 2.5
return z
---
return o + 1
---
return n + s
---
return undefined
---
return n.foo
---
return x.foo()
---
return a.foo()
---
a.append("a")
return a
---
z: List[int] = ["a"]
return z
---
return 1 if n > 2 else 2.5
---
return 1 if n > 2 else "a"
---
if n > 2:
    return 1
return "a"
---
return helper(s)
---
return helper()
---
return helper(n, 1, 2)
---
return helper(n, q=1)
---
for i in n:
    pass
return 1
---
return number
---
return t[n]
---
return d[n]
---
while n > 0:
    n -= 1
else:
    n = 5
return n
---
p, q = t, 1, 2
return p
---
return {**d}
---
return [i for i in range(3) for j in range(3)]
---
return torch.relu(s)
---
return torch.relu(x, 1, 2)
---
return torch.relu(q=x)
---
return open(s)
---
z = (m := n)
return z
---
return (yield n)
---
raise
---
return x in [x]
---
return u + 1
---
return y + 1
---
del n
return n
---
async def g():
    pass
return 1
---
class C:
    pass
return 1
---
n.z = 1
return n
---
t[0] = 1
return t
---
match n:
    case 1:
        return 1
return 2
---
return x.numpy()
---
return x.tolist()
---
return o.foo
---
return int(o)
---
return x[s]
---
with n:
    pass
return 1
---
return a < n
---
return torch.zeros(2).undefined_method()
"""
# Bodies that torch refuses: script accepts more here, with Python's results.
WIDER = """
z = None
if n > 2:
    z = n
return z
---
z = None
for q in a:
    if z is None:
        z = q
    else:
        z = z + q
return z
---
return [i for i in a if i > 1]
---
return f"{n:3d}", f"{s!r}"
---
return s * 2
---
p, q = x
return p
---
return s.isascii(), s.casefold()
---
while o is not None:
    o = o - 1 if o > 0 else None
return 3
---
n //= 2
n <<= 1
return n
---
return math.hypot(r, r), math.isclose(r, r), math.isqrt(n)
---
return repr(s), ~n
---
return [i for i in reversed(a)]
---
a[0:1] = [5, 6]
return a
---
return (1, "a") == (1, "a")
"""
# Bodies that torch accepts and script refuses, with what it says.
NARROWER = [
    ("return n and 2", "take bools"),
    ("return sorted([x])", "items have no order"),
]
