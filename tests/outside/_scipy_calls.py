"""One call for every function that SciPy's table of the array API marks for libraries other than NumPy.

``DATA`` are NumPy's arrays that a call names; they are converted before. ``f`` is the function or class,
``module.name`` the key. What a call gives is compared leaf by leaf between NumPy's arrays and tensors
(``_scipy_walk.py``).
"""
import numpy as np

_random = np.random.default_rng(7)
DATA = {
    "x": _random.normal(size=12),
    "y": _random.normal(size=12),
    "w": np.abs(_random.normal(size=12)) + 0.1,
    "t": np.linspace(0.0, 1.0, 12),
    "long": np.sin(np.linspace(0.0, 20.0, 64)) + 0.1 * _random.normal(size=64),
    "p": np.asarray([0.1, 0.3, 0.5, 0.62, 0.9]),
    "q": np.asarray([0.2, 0.25, 0.7, 0.4, 0.8]),
    "pos": np.asarray([0.5, 1.0, 2.0, 3.5, 6.0]),
    "more": np.asarray([1.5, 2.0, 3.0, 4.5, 7.0]),
    "n": np.asarray([5.0, 6.0, 7.0, 8.0, 9.0]),
    "k": np.asarray([0.0, 1.0, 2.0, 3.0, 4.0]),
    "deg": np.asarray([0.0, 30.0, 45.0, 60.0, 100.0]),
    "counts": np.asarray([16.0, 18.0, 16.0, 14.0, 12.0, 12.0]),
    "m": _random.normal(size=(6, 4)),
    "m2": _random.normal(size=(6, 4)),
    "square": _random.normal(size=(4, 4)),
    "img": _random.normal(size=(8, 9)),
    "big": _random.normal(size=(48, 40)),
    "lab": np.asarray([[1, 1, 0, 2, 2]] * 3 + [[0, 3, 3, 3, 0]]),
    "vals": _random.normal(size=(4, 5)),
    "mask": _random.random((8, 9)) > 0.4,
    "kernel": np.asarray([[0.0, 1.0, 0.0], [1.0, 2.0, 1.0], [0.0, 1.0, 0.0]]),
    "cross": np.asarray([[False, True, False], [True, True, True], [False, True, False]]),
    "taps": np.asarray([1.0, 2.0, 1.0]),
    "pts": _random.normal(size=(10, 2)),
    "pair": np.asarray([0.0, 1.0]),
    "spd": np.asarray([[4.0, 1.0], [1.0, 3.0]]),
    "z": _random.normal(size=8) + 1j * _random.normal(size=8),
    "b": np.asarray([0.2, 0.4, 0.2]),
    "a": np.asarray([1.0, -0.5, 0.1]),
    "zeros": np.asarray([-0.5, 0.3]),
    "poles": np.asarray([0.2 + 0.3j, 0.2 - 0.3j]),
    "freq": np.linspace(0.1, 3.0, 7),
    "quat": np.asarray([[0.0, 0.0, 0.6, 0.8], [0.5, 0.5, 0.5, 0.5]]),
    "rotvec": np.asarray([[0.1, 0.2, 0.3], [-0.4, 0.1, 0.0]]),
    "vec": np.asarray([[1.0, 0.0, 0.0], [0.0, 2.0, 1.0]]),
    "up": np.asarray([[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]]),
    "affine": np.asarray([[0.0, -1.0, 0.0, 1.0], [1.0, 0.0, 0.0, 2.0], [0.0, 0.0, 1.0, 3.0], [0.0, 0.0, 0.0, 1.0]]),
    "twist": np.asarray([0.1, 0.2, 0.3, 1.0, 2.0, 3.0]),
    "dual": np.asarray([0.0, 0.0, 0.6, 0.8, 0.1, 0.2, 0.3, -0.225]),
    "tree": np.asarray([[0.0, 1.0, 0.5, 2.0], [2.0, 3.0, 0.7, 2.0], [4.0, 5.0, 1.5, 4.0]]),
    "matlab": np.asarray([[1.0, 2.0, 0.5], [3.0, 4.0, 0.7], [5.0, 6.0, 1.5]]),
    "labels": np.asarray([1, 1, 2, 2], dtype=np.int32),
    "dist": np.asarray([0.5, 1.6, 1.7, 1.5, 1.8, 0.7]),
    "knots": np.linspace(0.0, 1.0, 6),
    "sos": np.asarray([[0.2, 0.4, 0.2, 1.0, -0.5, 0.1]]),
    "bits": np.asarray([0.1, 0.7]),
    "ints": np.asarray([3, 1, 2, 3, 2, 3]),
    "uint8": np.asarray([[9, 1, 9, 9], [9, 9, 9, 9], [9, 9, 2, 9], [9, 9, 9, 9]], dtype=np.uint8),
    "markers": np.asarray([[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, 2, 0], [0, 0, 0, 0]], dtype=np.int16),
}
CALLS = {}


def _add(module, text):
    """Lines ``names: call``."""
    for line in text.strip().splitlines():
        names, _, call = line.partition(":")
        CALLS.update({f"{module}.{name}": call.strip() for name in names.split()})


_add("special", """
erf expit i0 i0e i1 i1e log_ndtr ndtr j0 j1 cbrt exprel sinc boxcox_unused: f(x)
psi entr gammaln gamma gammasgn loggamma rgamma spence zetac k0 k0e k1 k1e y0 y1 exp1 expi erfcx: f(pos)
erfc exp2 exp10 cosm1: f(x)
erfinv logit ndtri ellipk ellipkm1: f(p)
cosdg sindg tandg cotdg: f(deg + 10.0)
chdtr chdtrc gammainc gammaincc rel_entr kl_div betaln binom poch: f(pos, more)
log_softmax logsumexp softmax: f(m, axis=1)
multigammaln: f(more, 2)
polygamma: f(ints, 2.0)
xlog1py xlogy: f(x[:5], pos)
zeta: f(more, pos)
bdtr bdtrc: f(k, n, p)
bdtri: f(k, n, p)
betainc betaincc betaincinv: f(pos, more, p)
boxcox boxcox1p inv_boxcox inv_boxcox1p: f(p, q)
chdtri gammainccinv gammaincinv stdtrit: f(pos, p)
expn: f(ints[:5], pos)
fdtr fdtrc: f(pos, more, pos)
fdtri: f(pos, more, p)
gdtr gdtrc: f(pos, more, p)
huber pseudo_huber: f(pos, x[:5])
hyp1f1: f(p, more, q)
lpmv: f(k, n, p)
nbdtr nbdtrc nbdtri: f(k, n, p)
pdtr pdtrc: f(k, pos)
pdtri: f(k, p)
radian: f(deg, deg, deg)
stdtr: f(pos, x[:5])
yn: f(ints[:5], pos)
""")
del CALLS["special.boxcox_unused"]

_add("fft", """
fft ifft ihfft: f(x)
hfft irfft: f(z)
rfft: f(x, n=10)
fft2 fftn rfft2 rfftn ifft2 ifftn ihfft2 ihfftn: f(img)
irfft2 irfftn hfft2 hfftn: f(img + 0j)
fftshift ifftshift: f(x)
fftfreq rfftfreq: f(8, d=0.5, xp=xp)
fht ifht: f(w, 0.1, mu=0.5)
dct dst idct idst: f(x)
dctn dstn idctn idstn: f(img)
""")

_add("constants", """
convert_temperature: f(deg, "Celsius", "Kelvin")
lambda2nu nu2lambda: f(pos)
""")

_add("differentiate", """
derivative: f(xp.sin, pos, order=4, maxiter=2)
hessian: f(lambda v: v[0] * v[0] * v[1] + v[1] * v[1], pair + 0.5).ddf
jacobian: f(lambda v: xp.stack([xp.sin(v[0]) * v[1], xp.cos(v[0] + v[1])]), pair + 0.5, order=4, maxiter=2)
""")

_add("integrate", """
cubature: f(lambda v: xp.sum(v * v, axis=-1), pair[:1], pair[1:]).estimate
cumulative_simpson cumulative_trapezoid simpson: f(w, x=t)
fixed_quad: f(lambda v: v * v * v, pair[0], pair[1], n=4)
nsum: f(lambda v: 1 / v**2, pair[1], xp.asarray(float("inf")))
qmc_quad: f(lambda v: xp.sum(v * v, axis=0), pair, pair + 1.0, n_points=64, qrng=qmc.Halton(2, rng=1))
romb: f(long[:17])
tanhsinh: f(lambda v: xp.exp(-v * v), pair[0], pair[1])
trapezoid: f(w, x=t)
""")

_add("interpolate", """
RBFInterpolator: f(pts, pts[:, 0])(pts[:3, ...] + 0.1)
Akima1DInterpolator PchipInterpolator CubicSpline: f(t, x)(p)
CubicHermiteSpline: f(t, x, y)(p)
BPoly PPoly: f(m[:3, :], knots[:5])(p)
BSpline: f(knots, x[:4], 1)(p)
NdBSpline: f((knots, knots), square, 1)(pts * 0.01 + 0.5)
RegularGridInterpolator: f((knots[:4], knots[:5]), vals)(xp.abs(pts) * 0.1)
generate_knots: list(f(t, x, k=3, s=0.1))[0]
make_interp_spline: f(t, x)(p)
make_lsq_spline: f(t, x, xp.concat([t[:1]] * 4 + [t[5:6]] + [t[-1:]] * 4))(p)
make_smoothing_spline: f(t, x)(p)
make_splprep: f(xp.stack([x, y]), s=0.1)[0](p)
make_splrep: f(t, x, s=0.1)(p)
""")

_add("linalg", """
block_diag: f(square, kernel)
fiedler: f(pos)
orthogonal_procrustes: f(m, m2)
""")

_add("optimize", """
rosen rosen_der rosen_hess: f(pos)
rosen_hess_prod: f(pos, more)
""")
_add("optimize.elementwise", """
bracket_minimum: f(lambda v: v * v, pos)
bracket_root: f(lambda v: v * v * v - 2.0, pair[:1], pair[1:])
find_minimum: f(lambda v: (v - 0.5) * (v - 0.5), (pair[:1] - 1.0, pair[:1] + 0.1, pair[1:] + 1.0))
find_root: f(lambda v: v * v * v - 2.0, (pair[:1], pair[1:] + 1.0))
""")

_add("cluster.hierarchy", """
correspond: f(tree, dist)
is_isomorphic: f(labels, labels)
is_monotonic is_valid_linkage num_obs_linkage to_mlab_linkage leaves_list maxdists: f(tree)
is_valid_im: f(hierarchy.inconsistent(tree))
to_tree: f(tree).get_count()
average centroid complete linkage median single ward weighted: f(dist)
cophenet inconsistent: f(tree)
dendrogram: f(tree, no_plot=True)["leaves"]
fcluster: f(tree, 1.0, criterion="distance")
fclusterdata: f(pts, 1.0)
from_mlab_linkage: f(matlab)
leaders: f(tree, labels)
maxRstat: f(tree, hierarchy.inconsistent(tree), 1)
maxinconsts: f(tree, hierarchy.inconsistent(tree))
optimal_leaf_ordering: f(tree, dist)
""")
_add("cluster.vq", """
whiten: f(pts)
kmeans: f(pts, pts[:2, ...])
kmeans2: f(pts, pts[:2, ...], minit="matrix")
vq: f(pts, pts[:2, ...])
""")

_add("ndimage", """
affine_transform: f(img, xp.asarray([[1.0, 0.2], [0.0, 0.9]]))
binary_closing binary_dilation binary_erosion binary_fill_holes binary_opening binary_propagation: f(mask)
binary_hit_or_miss: f(mask, structure1=cross)
black_tophat white_tophat grey_closing grey_dilation grey_erosion grey_opening: f(img, size=3)
morphological_gradient morphological_laplace: f(img, size=3)
center_of_mass: f(vals)
convolve correlate: f(img, kernel)
convolve1d correlate1d: f(img, taps)
distance_transform_bf distance_transform_cdt distance_transform_edt: f(mask)
extrema maximum maximum_position mean median minimum minimum_position: f(vals, lab, index=xp.asarray([1, 2, 3]))
standard_deviation sum sum_labels variance: f(vals, lab, index=xp.asarray([1, 2, 3]))
find_objects: f(lab)
fourier_ellipsoid fourier_gaussian fourier_uniform: f(img + 0j, 1.5)
fourier_shift: f(img + 0j, 1.0)
gaussian_filter gaussian_filter1d gaussian_gradient_magnitude gaussian_laplace: f(img, 1.0)
generic_filter: f(img, lambda v: v.sum(), size=3)
generic_filter1d: f(img, lambda i, o: o.__setitem__(slice(None), i[1:-1]), 3)
generic_gradient_magnitude: f(img, ndimage.sobel)
generic_laplace: f(img, lambda v, a, output, mode, cval: ndimage.correlate1d(v, [1, -2, 1], a, output, mode, cval))
geometric_transform: f(img, lambda c: (c[0] - 0.5, c[1]))
histogram: f(vals, -2, 2, 4)
iterate_structure: f(cross, 2)
label: f(mask)
labeled_comprehension: f(vals, lab, xp.asarray([1, 2, 3]), lambda v: v.max(), float, 0)
laplace prewitt sobel spline_filter spline_filter1d: f(img)
map_coordinates: f(img, xp.asarray([[0.5, 2.0], [1.0, 3.3]]))
maximum_filter median_filter minimum_filter uniform_filter maximum_filter1d minimum_filter1d uniform_filter1d: f(img, 3)
percentile_filter: f(img, 30, size=3)
rank_filter: f(img, 2, size=3)
rotate: f(img, 30.0)
shift: f(img, 0.5)
value_indices: f(lab)
vectorized_filter: f(img, np.sum, size=3)
watershed_ift: f(uint8, markers)
zoom: f(img, 1.5)
""")

_add("signal", """
abcd_normalize: f(spd, spd, spd, spd)
besselap buttap: f(3, xp=xp)
bode: f((taps, a), w=freq)
cheb1ap cheb2ap: f(3, 1.0, xp=xp)
choose_conv_method: f(x, taps)
ellipap: f(3, 1.0, 20.0, xp=xp)
envelope: f(long)
filtfilt: f(b, a, long)
freqz_zpk: f(zeros, poles, 1.0, worN=8)
gammatone: f(440, "iir", fs=16000, xp=xp)
gauss_spline: f(x, 3)
get_window: f("hann", 8, xp=xp)
iircomb: f(0.2, 30.0, xp=xp)
iirdesign: f(pair[1] * 0.2, pair[1] * 0.3, 1, 40)
iirnotch iirpeak: f(0.2, 30.0, xp=xp)
impulse: f((b, a), T=freq)
place_poles: f(spd, spd, pair - 2.0).gain_matrix
savgol_coeffs: f(5, 2, xp=xp)
sosfilt_zi: f(sos)
bessel butter: f(3, pair[1] * 0.3)
bilinear: f(taps, a)
bilinear_zpk: f(zeros, poles, 1.0, 2.0)
buttord: f(0.2, 0.3, 3, 40)
cheb1ord cheb2ord ellipord: f(pair[1] * 0.2, pair[1] * 0.3, 3, 40)
cheby1 cheby2: f(3, 1.0, pair[1] * 0.3)
convolve correlate fftconvolve oaconvolve: f(x, taps)
convolve2d correlate2d: f(img, kernel)
cspline1d qspline1d: f(x)
cspline1d_eval qspline1d_eval: f(x, p * 8)
cspline2d: f(big)
deconvolve: f(x, taps)
detrend: f(long)
ellip: f(3, 1.0, 20.0, pair[1] * 0.3)
firls: f(7, bits * 0.5 + 0.1, pair)
firwin: f(7, pair[1] * 0.3)
firwin2: f(9, xp.asarray([0.0, 0.5, 1.0]), xp.asarray([1.0, 1.0, 0.0]))
freqs: f(b, a, worN=freq)
freqs_zpk: f(zeros, poles, 1.0, worN=freq)
freqz: f(b, a, worN=8)
freqz_sos sosfreqz: f(sos, worN=8)
findfreqs: f(b, a, 8)
sawtooth square: f(t * 20.0, 0.3)
group_delay: f((b, a), w=8)
hilbert: f(x)
hilbert2: f(img)
iirfilter: f(3, pair[1] * 0.3, btype="lowpass")
lfilter: f(b, a, x)
lfilter_zi: f(b, a)
lfiltic: f(b, a, pair)
lp2bp lp2bs: f(b, a, 2.0, 0.5)
lp2bp_zpk lp2bs_zpk: f(zeros, poles, 1.0, 0.1, 4.0)
lp2hp lp2lp: f(b, a, 2.0)
lp2hp_zpk lp2lp_zpk: f(zeros, poles, 1.0, 2.0)
medfilt: f(x, 3)
medfilt2d: f(img, 3)
minimum_phase: f(xp.asarray([0.1, 0.2, 0.4, 0.2, 0.1]))
normalize: f(b, 2 * a)
order_filter: f(x, xp.ones(3), 1)
remez: f(15, xp.asarray([0.0, 0.1, 0.2, 0.5]), xp.asarray([1.0, 0.0]))
resample: f(long, 32)
resample_poly: f(long, 2, 3)
savgol_filter: f(long, 5, 2)
sos2tf sos2zpk: f(sos)
sosfilt sosfiltfilt: f(sos, long)
spline_filter: f(big)
tf2sos tf2zpk: f(b, a)
upfirdn: f(taps, x, 2)
vectorstrength: f(w, pair[1] * 2.0)
wiener: f(img)
zpk2sos zpk2tf: f(zeros, poles, 1.0)
""")
_add("signal.windows", """
barthann bartlett blackman blackmanharris bohman boxcar cosine exponential flattop hamming hann: f(8, xp=xp)
lanczos nuttall parzen triang tukey taylor: f(8, xp=xp)
chebwin: f(8, 100.0, xp=xp)
gaussian: f(8, 1.5, xp=xp)
general_cosine: f(8, pair + 0.5)
general_gaussian: f(8, 1.5, 2.0, xp=xp)
general_hamming: f(8, 0.6, xp=xp)
kaiser kaiser_bessel_derived: f(8, 5.0, xp=xp)
get_window: f("hann", 8, xp=xp)
""")

_add("stats", """
alexandergovern fligner friedmanchisquare kruskal levene f_oneway bartlett: f(x, y, w)
bootstrap: f((x,), lambda v, axis: xp.mean(v, axis=axis), n_resamples=9, rng=1)
boxcox_llf: f(0.5, w)
chatterjeexi: f(x, y)
chisquare power_divergence: f(counts)
circmean circstd circvar directional_stats_unused: f(x)
describe: f(m, axis=0)
differential_entropy: f(long)
directional_stats: f(m)
entropy: f(counts)
epps_singleton_2samp ansari mood brunnermunzel mannwhitneyu cramervonmises_2samp: f(x, y)
false_discovery_control: f(p)
gmean gstd gzscore hmean: f(w)
iqr jarque_bera kstatvar kurtosis median_abs_deviation sem skew: f(x)
kstat: f(x, 3)
kurtosistest normaltest skewtest: f(long)
mode: f(ints)
moment: f(x, 3)
monte_carlo_test: f(x, lambda size: np_or(rng_normal(size)), lambda v, axis: xp.mean(v, axis=axis), n_resamples=9)
permutation_test: f((x[:4], y[:4]), lambda u, v, axis: xp.mean(u, axis=axis) - xp.mean(v, axis=axis), vectorized=True)
pmean: f(w, 2)
power: f(lambda u, v, axis: xp.mean(u, axis=axis), (lambda size: np_or(rng_normal(size)),) * 2, (8, 8), n_resamples=9)
quantile: f(x, p)
rankdata: f(x)
sigmaclip: f(long, 1.5, 1.5)
binomtest: f(3, 10, 0.4).pvalue
bws_test: f(x[:6], y[:6])
cumfreq relfreq: f(x, numbins=5)
estimated_cdf: f(x, p)
expectile: f(x, 0.3)
kendalltau ks_2samp linregress obrientransform siegelslopes theilslopes: f(x, y)
kstest: f(x, lambda v: normal_cdf(v))
pointbiserialr: f(x > 0.0, y)
quantile_test: f(x, q=0.1, p=0.4)
shapiro: f(x)
tmax tmean tmin tsem tstd tvar: f(x, (-1.0, 1.0))
tmax: f(x, 1.0)
tmin: f(x, -1.0)
trim_mean: f(x, 0.1)
variation: f(w)
yeojohnson_llf: f(0.5, x)
zmap: f(x, y)
zscore: f(m)
combine_pvalues: f(p)
cramervonmises ks_1samp: f(x, lambda v: normal_cdf(v))
lmoment: f(x, 2)
pearsonr spearmanrho ttest_ind ttest_rel: f(x, y)
ttest_1samp: f(x, 0.1)
ttest_ind_from_stats: f(pair[0], pair[1], 10.0, pair[1], pair[1], 12.0)
wilcoxon: f(x)
""")
del CALLS["stats.directional_stats_unused"]

# Methods of classes: f is the class.
CALLS.update({f"spatial.transform.Rotation.{name}": call for name, call in {
    "from_quat": "f.from_quat(quat).as_matrix()",
    "from_matrix": "f.from_matrix(f.from_quat(quat).as_matrix()).as_quat()",
    "from_rotvec": "f.from_rotvec(rotvec).as_quat()",
    "from_euler": "f.from_euler('xyz', rotvec).as_quat()",
    "from_davenport": "f.from_davenport(up[0, :], 'e', pair[1]).as_quat()",
    "from_mrp": "f.from_mrp(rotvec).as_quat()",
    "as_quat": "f.from_quat(quat).as_quat()",
    "as_matrix": "f.from_quat(quat).as_matrix()",
    "as_rotvec": "f.from_quat(quat).as_rotvec()",
    "as_euler": "f.from_quat(quat).as_euler('zyx')",
    "as_davenport": "f.from_rotvec(rotvec).as_davenport(xp.eye(3), 'extrinsic')",
    "as_mrp": "f.from_quat(quat).as_mrp()",
    "concatenate": "f.concatenate([f.from_quat(quat), f.from_rotvec(rotvec)]).as_quat()",
    "apply": "f.from_quat(quat).apply(vec)",
    "__mul__": "(f.from_quat(quat) * f.from_rotvec(rotvec)).as_quat()",
    "__pow__": "(f.from_quat(quat) ** 2).as_quat()",
    "inv": "f.from_quat(quat).inv().as_quat()",
    "magnitude": "f.from_quat(quat).magnitude()",
    "approx_equal": "f.from_quat(quat).approx_equal(f.from_quat(quat))",
    "mean": "f.from_quat(quat).mean().as_quat()",
    "reduce": "f.from_quat(quat).reduce(f.from_rotvec(rotvec), f.from_quat(quat)).as_quat()",
    "__getitem__": "f.from_quat(quat)[0].as_quat()",
    "__setitem__": "set_item(f.from_quat(quat), 0, f.from_rotvec(rotvec)[1]).as_quat()",
    "align_vectors": "f.align_vectors(vec, vec)[0].as_matrix()",
    "__iter__": "[r.as_quat() for r in f.from_quat(quat)]",
    "__repr__": "len(repr(f.from_quat(quat))) > 0",
}.items()})
CALLS.update({f"spatial.transform.Slerp.{name}": "f(pair, Rotation.from_quat(quat))(p).as_quat()"
              for name in ("__init__", "__call__")})
CALLS.update({f"spatial.transform.RigidTransform.{name}": call for name, call in {
    "from_matrix": "f.from_matrix(affine).as_matrix()",
    "from_rotation": "f.from_rotation(Rotation.from_quat(quat)).as_matrix()",
    "from_translation": "f.from_translation(vec).as_matrix()",
    "from_components": "f.from_components(vec, Rotation.from_quat(quat)).as_matrix()",
    "from_exp_coords": "f.from_exp_coords(twist).as_matrix()",
    "from_dual_quat": "f.from_dual_quat(dual).as_matrix()",
    "identity": "f.identity(2).as_matrix()",
    "concatenate": "f.concatenate([f.from_matrix(affine), f.from_translation(vec)]).as_matrix()",
    "mean": "f.from_translation(vec).mean().as_matrix()",
    "as_matrix": "f.from_matrix(affine).as_matrix()",
    "as_components": "f.from_matrix(affine).as_components()[0]",
    "as_exp_coords": "f.from_matrix(affine).as_exp_coords()",
    "as_dual_quat": "f.from_matrix(affine).as_dual_quat()",
    "__getitem__": "f.from_translation(vec)[0].as_matrix()",
    "__setitem__": "set_item(f.from_translation(vec), 0, f.from_matrix(affine)).as_matrix()",
    "__mul__": "(f.from_matrix(affine) * f.from_translation(vec)).as_matrix()",
    "__pow__": "(f.from_matrix(affine) ** 2).as_matrix()",
    "inv": "f.from_matrix(affine).inv().as_matrix()",
    "apply": "f.from_matrix(affine).apply(vec)",
    "__iter__": "[r.as_matrix() for r in f.from_translation(vec)]",
}.items()})
