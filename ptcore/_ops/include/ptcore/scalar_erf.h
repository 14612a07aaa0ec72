/* erf, erfc, gelu and the inverse of erf. Part of scalar.h.
 *
 * erf: an odd polynomial up to |x| = 1, beyond it 1 - erfc. erfc(x) = e^(-x^2) P(q)/(1 + 2x),
 * q = (x - k)/(x + k), after Shepherd and Laframboise, with x^2 in two parts. gelu is x Phi(x) with
 * the normal distribution function Phi(x) = erfc(-x/sqrt(2))/2. Its exponent -x^2/2 is in two parts
 * as well: rounded to one it would cost x^2/2 ulp far out on the left.
 */
#ifndef PTCORE_SCALAR_ERF_H
#define PTCORE_SCALAR_ERF_H
#include "scalar.h"

namespace pt { namespace {

/* erf(x)/x - 1 in z = x^2 <= 1 */
PT_INLINE float erf_poly(float z) {
    return poly(z, 0.128379167, -0.37612626, 0.112836003, -0.0268544462, 0.00518953661,
                -0.000802084571, 7.8891193e-05);
}
PT_INLINE double erf_poly(double z) {
    return poly(z, 0.1283791670955126, -0.3761263890318355, 0.11283791670945253,
                -0.02686617064327622, 0.005223977607423468, -0.0008548325989696758,
                0.00012055295320494294, -1.4924744663335489e-05, 1.6447517677871873e-06,
                -1.6209175911748696e-07, 1.3722976265924504e-08, -7.801188874097751e-10);
}

/* P(q) - c0 and c0 of e^(x^2) erfc(x) = P(q)/(1 + 2x), q = (x - k)/(x + k), x >= 0 */
PT_INLINE float erfcx_poly(float x, float *c0) {
    float q = (x - 2.f) / (x + 2.f);
    *c0 = 1.27697837f;
    return q * poly(q, -0.0927638933, -0.166031465, 0.164052933, -0.0542040244, -0.00804225542,
                    0.00863497611, 0.00126480963, -0.00125217822, -0.000354504795, 3.13933524e-05);
}
PT_INLINE double erfcx_poly(double x, double *c0) {
    double q = (x - 4.0) / (x + 4.0);
    *c0 = 1.2329951186255526;
    return q * poly(q, -0.1396211168405629, 0.015379652102619743,
                    0.06809705425473705, -0.10103906603630013, 0.09373283499681118,
                    -0.06633036581258453, 0.03716751556201157, -0.016197734048197375,
                    0.0050319697624929115, -0.0007577734063619189, -0.00019925555704689612,
                    0.00015062247774504537, -2.440295114043755e-05, -1.1225298906167201e-05,
                    5.717307071463984e-06, 3.0198106771116416e-07, -8.342454390369223e-07,
                    6.236797605102406e-08, 1.145578124357157e-07, -7.771351771925222e-09,
                    -1.33829883707813e-08, -1.7175001759822705e-09);
}

/* erfc for c >= 0 with c^2 = high + low; near 0 its error is that of erfc(c) = 1 */
template<class T> PT_INLINE T erfc_from(T c, T high, T low) {
    T n, r = exp_reduce(-high, &n);
    T e = r - low;
    /* y = P/d; the rounding errors of the sums p and d are corrected: P is 1.2 within 7 % */
    T c0, s = erfcx_poly(c, &c0), p = c0 + s, d = T(1) + T(2) * c, y = p / d;
    T fix = T(0.83) * (((c0 - p) + s) - y * (T(1) - (d - T(2) * c)));
    return scale(y + y * (e + e * e * exp_tail(e) + fix), n);
}

/* erfc for x >= 1/2; above the clamp erfc rounds to 0 */
template<class T> PT_INLINE T erfc_positive(T x) {
    const T top = sizeof(T) == 4 ? T(10.5) : T(28);
    T c = x > top ? top : x, h = high_half(c);
    return erfc_from(c, h * h, (c - h) * (c + h));              /* h^2 is exact */
}

template<class T> PT_INLINE T real_erfc(T x) {
    T a = abs(x), y = erfc_positive(a);
    y = x < T(0) ? T(2) - y : y;
    return a < T(0.5) ? T(1) - (x + x * erf_poly(x * x)) : y;
}
PT_REAL_1(erfc)

PT_INLINE float erf(float x) {
    float a = abs(x), c = a > 4.1f ? 4.1f : a;
    /* log(erfc(x)) on [0.9, 4.1] */
    float tail = 1.f - exp(poly(c, -6.4737651e-06, -1.12868297, -0.634930372, -0.106664747,
                                0.0241677109, -0.00384778227, 0.000375893782, -1.67281451e-05));
    return a < 1.f ? x + x * erf_poly(x * x) : copysign(tail, x);
}
PT_INLINE double erf(double x) {
    double a = abs(x), tail = 1.0 - erfc_positive(a);
    return a < 1.0 ? x + x * erf_poly(x * x) : copysign(tail, x);
}

/* ---- gelu ---- */

/* 2 Phi(x). e^(c^2/2) 2 Phi(-c) = P(q) / (c + k), q = (c - k)/(c + k): one division gives both, and
 * what it and the sum c + k lose is added to the exponential's last digits (P / (c + k) changes by
 * some 1.2 times the relative error of 1 / (c + k)). */
PT_INLINE float twice_normal_cdf(float x) {
    const float k = 1.75f;
    float a = abs(x), c = a > 14.8f ? 14.8f : a, h = high_half(c);
    float n, e = exp_reduce(-0.5f * (h * h), &n);
    e = e - 0.5f * ((c - h) * (c + h));
    float d = c + k, r = 1.f / d, q = 1.f - 2.f * k * r;
    float fix = 1.2f * ((1.f - d * r) - r * (c - (d - k)));
    float y = r * poly(q, 1.29662168, -0.535656989, -0.0374793895, 0.0673749149, 0.0213028006,
                       -0.00677460665, -0.00775991846, -0.00187252322, 0.00109830813,
                       0.000891026168, 0.000178300281);
    y = scale(y + y * (e + e * e * exp_tail(e) + fix), n);
    return x < 0.f ? y : 2.f - y;
}
PT_INLINE double twice_normal_cdf(double x) {
    double a = abs(x), c = a > 39.5 ? 39.5 : a, h = high_half(c);
    double y = erfc_from(c * 0.7071067811865476, 0.5 * (h * h), 0.5 * ((c - h) * (c + h)));
    return x < 0.0 ? y : 2.0 - y;
}
/* e^(-x^2/2) */
template<class T> PT_INLINE T exp_of_half_square(T x) {
    const T top = sizeof(T) == 4 ? T(14.8) : T(39.5);
    T a = abs(x), c = a > top ? top : a, h = high_half(c);
    T n, e = exp_reduce(T(-0.5) * (h * h), &n);
    e = e - T(0.5) * ((c - h) * (c + h));
    return scale(T(1) + (e + e * e * exp_tail(e)), n);
}

template<class T> PT_INLINE T gelu_erf(T x) { return T(0.5) * x * twice_normal_cdf(x); }
/* The exponential is 0 where x is cut off: so that it does not meet an infinity. */
template<class T> PT_INLINE T gelu_erf_grad(T x) {
    const T top = sizeof(T) == 4 ? T(14.8) : T(39.5), c = clamp_pass_nan(x, -top, top);
    return T(0.5) * twice_normal_cdf(x) + c * (exp_of_half_square(x) * T(0.3989422804014327));
}

/* a b = the result + *low */
template<class T> PT_INLINE T two_product(T a, T b, T *low) {
    T p = a * b, ah = high_half(a), al = a - ah, bh = high_half(b), bl = b - bh;
    *low = ((ah * bh - p) + ah * bl + al * bh) + al * bl;
    return p;
}
/* sigmoid(x (c0 + c1 x^2)), the argument in two parts */
template<class T> PT_INLINE T sigmoid_of_cubic(T x) {
    const double c0 = 1.5957691216057308, c1 = 0.07135481627260025;
    const T a = T(c0), b = T(c1), top = sizeof(T) == 4 ? T(12) : T(24);
    /* what the constants lose in T */
    const T a_low = sizeof(T) == 4 ? T(c0 - (double)(float)c0) : T(-9.9693088091109203e-17);
    const T b_low = sizeof(T) == 4 ? T(c1 - (double)(float)c1) : T(-6.1751499181553155e-19);
    T c = x > top ? top : (x < -top ? -top : x), e1, e2, e3;
    T s = two_product(c, c, &e1), t = two_product(b, s, &e2), w = a + t, v = w - a;
    T w_low = ((a - (w - v)) + (t - v)) + (e2 + b * e1 + b_low * s + a_low);
    T u = two_product(c, w, &e3), y = sigmoid(u);
    return y + y * (T(1) - y) * (e3 + c * w_low);
}

/* 0.5 x (1 + tanh(u)) = x sigmoid(2u), 2u = x (c0 + c1 x^2) */
template<class T> PT_INLINE T gelu_tanh(T x) { return x * sigmoid_of_cubic(x); }
template<class T> PT_INLINE T gelu_tanh_grad(T x) {
    const T top = sizeof(T) == 4 ? T(12) : T(24), c = clamp_pass_nan(x, -top, top);
    T s = sigmoid_of_cubic(x), e = sigmoid_of_cubic(-x);
    return s + c * (s * e) * (T(1.5957691216057308) + T(0.21406444881780073) * c * c);
}

/* ---- the inverse of erf ---- */

/* erfinv(x) / x as a polynomial in w = -log(1 - x^2), and for large w in sqrt(w) (after Giles,
 * "Approximating the erfinv function", 2010); Chebyshev interpolants of mpmath's values, relative
 * error 4.5e-9 and 1.5e-16 before rounding. */
PT_INLINE float erfinv_ratio(float w) {
    float s = sqrt(w) - 3.218034f, v = w - 2.5f;
    float central = poly(v, 1.501409351, 0.2466402894, -0.004177320041, -0.001252748503,
                         0.000218257724, -4.959691794e-6, -3.423414274e-6, 4.654174105e-7,
                         1.598430613e-8, -8.739010703e-9, 4.671932509e-10);
    float tail = poly(s, 3.051757104, 1.00490376, 0.005746553812, -0.004087680581, 0.002774972273,
                      -0.001878138153, 0.001040837408, -0.0003624810891, -1.546058383e-5,
                      9.408833765e-5, -3.437390147e-5);
    return w < 5.f ? central : tail;
}
PT_INLINE double erfinv_ratio(double w) {
    double s = sqrt(w), t = s - 3.25, u = s - 5.01;
    double first = poly(w - 0.5, 1.00482268397713, 0.24176249324891645, 0.007914108355436192,
                        -0.0024718596040251975, -8.4419680042262e-6, 4.7276047083625504e-5,
                        -1.5434205452935165e-6, -9.5616069696233513e-7, 6.2931680804936117e-8,
                        1.945692402153761e-8, -1.9218190241123552e-9, -3.8491767623507398e-10);
    double central = poly(w - 3.625, 1.7721438672727972, 0.233657801819917, -0.0068829924310091969,
                          -0.00040448306491561601, 0.00014862002163703138, -1.5983727031449624e-5,
                          -1.1710684548605933e-7, 2.8458123031122443e-7, -3.7168948427641358e-8,
                          1.5201963906519224e-10, 6.2527774332090433e-10, -8.6953935700590029e-11,
                          7.2456455721007568e-13, 1.4406205210863026e-12, -2.0893359069532584e-13,
                          1.9372404363759996e-15, 3.7546871287224755e-15, -4.7540072843815093e-16,
                          -2.2637530515311998e-17, 7.1618140503196985e-18);
    double tail = poly(t, 3.0838856104922207, 1.0052589676941592, 0.0053709145535581983,
                       -0.0037512085075638538, 0.0024914420976198812, -0.0016882755561681803,
                       0.00095328935211181778, -0.0003550375186306976, 2.4031363245440548e-5,
                       6.8284840522929234e-5, -4.731952918337189e-5, 1.2475343474376931e-5,
                       2.9273722115986926e-6, -4.0139463981902919e-6, 1.4958263152984917e-6,
                       1.8323999881328578e-8, -2.6860975725571461e-7, 9.0719505710299225e-8,
                       -3.8310399460724114e-10);
    double end = poly(u, 4.8600093919710256, 1.0102976262721411, -0.00014512482092027778,
                      -0.00021200990028034766, 7.5017943289734029e-5, -1.9412280432474436e-5,
                      4.4571838239506206e-6, -9.7494333454347096e-7, 2.2306230613471818e-7,
                      -6.4741592120188817e-8, 2.7500788870332287e-8, -1.4334073086090669e-8,
                      7.1991128259889683e-9, -3.3007785980476633e-9, 1.4290461487999771e-9,
                      -4.2097834596717658e-10, -1.6736025268211171e-11, 3.8124992139481416e-11);
    return w < 1.0 ? first : w < 6.25 ? central : s < 4.0 ? tail : end;
}
template<class T> PT_INLINE T real_erfinv(T x) {
    T a = abs(x), y = x * erfinv_ratio(-log((T(1) - a) * (T(1) + a)));
    return a == T(1) ? copysign(infinity<T>(), x) : y;
}
PT_REAL_1(erfinv)

}}  /* namespace pt, unnamed */
#endif
