"""Fourier transforms, forward and with backward: small ones, which are mostly the call, batches and long ones."""
from . import WORKLOADS, workload


def transform(name, n, dtype, target):
    def make(xp):
        x = xp.randn(n, dtype=getattr(xp, "float32" if dtype in ("float32", "complex64") else "float64"))
        return {"f": getattr(xp.fft, name), "x": xp.complex(x, x.flip(0)) if dtype.startswith("complex") else x}
    WORKLOADS.append(("fft", f"{name} {n} {dtype}", "f(x)", make, target))


for _n in (8, 64, 256, 1024, 65536):
    for _dtype in ("float32", "float64", "complex64", "complex128"):
        transform("fft", _n, _dtype, 1.0)
        transform("irfft" if _dtype.startswith("complex") else "rfft", _n, _dtype, 1.0)


def over(name, call, *shape, grad=False, target=1.05):
    def make(xp):
        x = xp.randn(*shape, requires_grad=grad)
        window = xp.hann_window(400)

        def forward():
            return call(xp, x, window)

        def back():
            x.grad = None
            y = forward()
            y.backward(y.detach())
        return back if grad else forward
    workload("fft", name, make, target)


for _grad in (False, True):
    _more = " and backward" if _grad else ""
    over("rfft 64 x 512" + _more, lambda xp, x, w: xp.fft.rfft(x), 64, 512, grad=_grad)
    over("fft2 256 x 256" + _more, lambda xp, x, w: xp.fft.fft2(x), 256, 256, grad=_grad)
    over("rfft2 8 x 256 x 256" + _more, lambda xp, x, w: xp.fft.rfft2(x), 8, 256, 256, grad=_grad)
    over("stft 4 x 16000" + _more,
         lambda xp, x, w: xp.stft(x, 400, 160, window=w, return_complex=True), 4, 16000, grad=_grad)
    over("stft and istft 4 x 16000" + _more, lambda xp, x, w: xp.istft(
        xp.stft(x, 400, 160, window=w, return_complex=True), 400, 160, window=w), 4, 16000, grad=_grad)
