/* Bessel functions of an imaginary argument, the scaled complementary error
 * function, the normal distribution and the incomplete gamma functions. Doubles
 * are written for accuracy, not for vectorising; floats are branch-free, by
 * shorter polynomials in double. The coefficients were fitted with mpmath to 40
 * digits. Part of scalar.h. */
#ifndef PTCORE_SCALAR_SPECIAL_H
#define PTCORE_SCALAR_SPECIAL_H
#include "scalar.h"

namespace pt { namespace {

/* sum of c[k] T_k(t), by Clenshaw's recurrence */
PT_INLINE double chebyshev(const double *c, int n, double t) {
    double a = 0, b = 0;
    for (int k = n - 1; k > 0; k--) {
        const double next = 2.0 * t * a - b + c[k];
        b = a;
        a = next;
    }
    return t * a - b + c[0];
}

/* exp(-|x|) I_0(x) and I_1(x): for |x| <= 8 a polynomial, else one in 16 / x over sqrt(x) */
PT_NOINLINE double bessel_i0_scaled(double x) {
    static const double near[29] = {
        0.33839763720473803,    -0.3046826723431984,     0.17162090152220877,
        -0.09490109704804764,   0.04930528423967071,     -0.02373741480589947,
        0.010546460394594998,   -0.004324309995050576,   0.0016394756169413357,
        -0.0005763755745385824, 0.00018850288509584165,  -5.754195010082104e-05,
        1.6448448070728896e-05, -4.4167383584587505e-06, 1.1173875391201037e-06,
        -2.670793853940612e-07, 6.046995022541919e-08,   -1.300025009986248e-08,
        2.6598237246823866e-09, -5.189795601635263e-10,  9.675809035373237e-11,
        -1.726826291441556e-11, 2.95505266312964e-12,    -4.856446783111929e-13,
        7.676185498604936e-14,  -1.1685332877993451e-14, 1.715391285555133e-15,
        -2.431279846547955e-16, 3.3307945188222384e-17};
    static const double far[23] = {
        0.4022452055070544,      0.0033691164782556943,   6.889758346916825e-05,
        2.8913705208347567e-06,  2.0489185894690638e-07,  2.266668990498178e-08,
        3.3962320257083865e-09,  4.94060238822497e-10,    1.1889147107846439e-11,
        -3.1499165279632416e-11, -1.3215811840447713e-11, -1.7941785315068062e-12,
        7.180124451383666e-13,   3.8527783827421426e-13,  1.54008621752141e-14,
        -4.150569347287222e-14,  -9.554846698828307e-15,  3.8116806693526224e-15,
        1.7725601330565263e-15,  -3.425485619677219e-16,  -2.8276239805165836e-16,
        3.461222867697461e-17,   4.46562142029676e-17};
    const double a = abs(x);
    if (!(a < infinity<double>())) return a == a ? 0.0 : a;
    if (a == 0) return 1.0;                     /* exactly */
    const double r = a <= 8.0 ? chebyshev(near, 29, 0.25 * a - 1.0)
                              : chebyshev(far, 23, 16.0 / a - 1.0) / sqrt(a);
    return r;
}
PT_NOINLINE double bessel_i1_scaled(double x) {
    static const double near[28] = {
        0.12629359322181682,     -0.17641651835783406,    0.1026436586898471,
        -0.05294598120809499,    0.024726449030626516,    -0.010564084894626197,
        0.004156422944312888,    -0.0015135724506312532,  0.0005122859561685758,
        -0.00016176081582589674, 4.781565107550054e-05,   -1.3273163656039436e-05,
        3.4702513081376785e-06,  -8.568720264695455e-07,  2.0032947535521353e-07,
        -4.445059128796328e-08,  9.381537386495773e-09,   -1.8872497517228294e-09,
        3.625590281552117e-10,   -6.663489723502027e-11,  1.1736186298890901e-11,
        -1.9839743977649436e-12, 3.223793365945575e-13,   -5.042185504727912e-14,
        7.600684294735408e-15,   -1.1055969477353862e-15, 1.5536319577362005e-16,
        -2.111421214358166e-17};
    static const double far[23] = {
        0.38928811750914005,     -0.009761097491361469,   -0.00011058893876262371,
        -3.882564808877691e-06,  -2.512236237870209e-07,  -2.6314688468895196e-08,
        -3.835380385964237e-09,  -5.589743462196584e-10,  -1.8974958123505413e-11,
        3.2526035830154884e-11,  1.4125807436613782e-11,  2.0356285441470896e-12,
        -7.198551776245908e-13,  -4.0835511110921974e-13, -2.1015418427726643e-14,
        4.272440016711951e-14,   1.0420276984128802e-14,  -3.8144030724370075e-15,
        -1.8803547755107825e-15, 3.3082023109209285e-16,  2.96262899764595e-16,
        -3.209525921993424e-17,  -4.6503053684893586e-17};
    const double a = abs(x);
    if (!(a < infinity<double>())) return a == a ? copysign(0.0, x) : a;
    const double r = a <= 8.0 ? chebyshev(near, 28, 0.25 * a - 1.0) * a
                              : chebyshev(far, 23, 16.0 / a - 1.0) / sqrt(a);
    return x < 0 ? -r : r;
}
/* Multiplies by exp(|x|) in two factors, so that it overflows later than exp does */
PT_NOINLINE double grown(double scaled, double x) {
    const double half = exp_called(0.5 * abs(x));
    return x != x                         ? x
           : abs(x) == infinity<double>() ? (scaled < 0 ? -abs(x) : abs(x))
                                          : scaled * half * half;
}
PT_INLINE double i0e(double x) { return bessel_i0_scaled(x); }
PT_INLINE double i1e(double x) { return bessel_i1_scaled(x); }
PT_INLINE double i0(double x) { return grown(bessel_i0_scaled(x), x); }
PT_INLINE double i1(double x) {
    return grown(x == -infinity<double>() ? -0.5 : bessel_i1_scaled(x), x);
}

/* For floats: `near` is the result for |x| <= 8, `far` is sqrt(|x|) times that for |x| > 8. */
PT_INLINE double scaled_by_side(double a, double near, double far) {
    return a <= 8.0 ? near : far / sqrt(a);
}
PT_INLINE double float_i0e(double a) {
    const double t = 0.25 * a - 1.0, u = 16.0 / a - 1.0;
    const double near = poly(t, 0.2070019212239867, -0.11300433610864266, 0.09451563189402233,
                             -0.08904288918698641, 0.08734321532557372, -0.08497304959010592,
                             0.07927874418670428, -0.06946451493109221, 0.05674911084395445,
                             -0.04331379367909357, 0.030297408532378764, -0.018865125988389776,
                             0.011661634063608236, -0.00800984960667441, 0.0040626536466720365,
                             -0.0007596967284124182, 0.00046962487311860636, -0.0008508526976662284,
                             0.0003359461388227254);
    const double far = poly(u, 0.4021765094450081, 0.003360555851925354, 0.00013621684311530046,
                            1.1111525456650673e-05, 1.4767921099426897e-06, 3.631710305277285e-07,
                            1.0829898259260847e-07);
    return scaled_by_side(a, near, far);
}
PT_INLINE double float_i1e(double a) {
    const double t = 0.25 * a - 1.0, u = 16.0 / a - 1.0;
    const double near =
        a * poly(t, 0.04468770986450251, -0.061124338025990106, 0.06805760212960305,
                 -0.06848260694070092, 0.06376733064622675, -0.05528001503648954,
                 0.0446755031610766, -0.03367166370472805, 0.023680016667049938,
                 -0.015569320920202672, 0.009606095385955372, -0.005541908244896256,
                 0.0029563628396675574, -0.001522471036028631, 0.000812047943412777,
                 -0.0003636452040028463, 9.375809886867844e-05, -4.317720058003002e-05,
                 4.7479082033953785e-05, -1.694785151624946e-05);
    const double far = poly(u, 0.38939845902587233, -0.009749581526547915, -0.00021923666942859845,
                            -1.500332306614829e-05, -1.8267145046635388e-06,
                            -4.2155543729815765e-07, -1.2212498465941114e-07);
    return scaled_by_side(a, near, far);
}
PT_INLINE float i0e(float x) { return (float)float_i0e((double)abs(x)); }
PT_INLINE float i1e(float x) {
    const float y = (float)float_i1e((double)abs(x));
    return x < 0 ? -y : y;
}
/* beyond 100 both are inf, so exp's argument is clamped */
PT_INLINE float i0(float x) {
    const double a = abs(x), b = a > 100.0 ? 100.0 : a;
    return (float)(float_i0e(b) * exp(b));
}
PT_INLINE float i1(float x) {
    const double a = abs(x), b = a > 100.0 ? 100.0 : a;
    const float y = (float)(float_i1e(b) * exp(b));
    return x < 0 ? -y : y;
}

/* exp(x^2) erfc(x) */
PT_NOINLINE double erfcx_slow(double x) {
    static const double c[25] = {
        1.1775789345674017,      -0.004590054580646478,   -0.08424913336651792,
        0.05920993999819189,     -0.026658668435305753,   0.009074997670705265,
        -0.002413163540417608,   0.0004907758365258086,   -6.916973302501207e-05,
        4.139027986073001e-06,   7.7403830661984e-07,     -2.1886401049235297e-07,
        1.076499946566193e-08,   4.521959811209351e-09,   -7.754400208920236e-10,
        -6.318088341770441e-11,  2.8687950100523475e-11,  1.9455867673227423e-13,
        -9.654696835077547e-13,  3.252547288150517e-14,   3.3478110950629934e-14,
        -1.8645713416239818e-15, -1.2508034399781258e-15, 7.417404318570045e-17,
        5.067326039956653e-17};
    if (x != x) return x;
    if (x == 0) return 1.0;                     /* exactly */
    if (x < -26.7) return infinity<double>();
    if (x < 0) {                                /* corrects the square's rounding error */
        const double high = (double)(float)x, rest = (x - high) * (x + high);
        return 2.0 * exp_called(high * high) * exp_called(rest) - erfcx_slow(-x);
    }
    if (x > 1e8) return 0.5641895835477563 / x;
    return chebyshev(c, 25, (x - 3.75) / (x + 3.75)) / (1.0 + 2.0 * x);
}
PT_INLINE double erfcx(double x) { return erfcx_slow(x); }

/* For floats: erfcx(|x|). For x < 0 the callers combine it with an exponential. */
PT_INLINE double float_erfcx(double a) {
    const double q = a < 1e18 ? (a - 3.75) / (a + 3.75) : 1.0;
    return poly(q, 1.2375126300030113, -0.1402405987127234, 0.0035854974289632052,
                0.08227675095346368, -0.10880525203898243, 0.09230412174644181,
                -0.05868533658608146, 0.028363473790408853, -0.009770286714565772,
                0.001752209498690462, 0.00033034420935822574, -0.0002851543388991308,
                2.1987965983870166e-05, 1.8780736285192822e-05) /
           (1.0 + 2.0 * a);
}
PT_INLINE float erfcx(float x) {
    const double d = x, a = abs(d), y = float_erfcx(a), b = a > 10.0 ? 10.0 : a;
    return (float)(d < 0 ? 2.0 * exp(b * b) - y : y);
}

/* ---- the normal distribution and entropy ---- */

template<class T> PT_INLINE T real_entr(T x) {
    const T y = -x * log(x);
    return x > T(0) ? y : x == T(0) ? T(0) : x < T(0) ? -infinity<T>() : x;
}
PT_REAL_1(entr)

/* log of the area below the density up to x: for x >= -1 by log1p of the upper area, else by
 * erfcx, which does not underflow */
PT_NOINLINE double log_ndtr_slow(double x) {
    const double t = x * 0.7071067811865476;
    return x < -1.0 ? log_called(0.5 * erfcx(-t)) - t * t : log1p(-0.5 * erfc(t));
}
PT_INLINE double log_ndtr(double x) { return log_ndtr_slow(x); }
PT_INLINE float log_ndtr(float x) {
    const double t = (double)x * 0.7071067811865476, a = abs(t), y = 0.5 * float_erfcx(a);
    const double square = a * a;
    const double e = exp(-square), low = log(y) - square, high = log1p(-y * e);
    return (float)(x < 0 ? low : high);
}

/* d - log(x / a) for d = (x - a) / a; by its series where d is small */
PT_NOINLINE double log_gap(double a, double x) {
    const double d = (x - a) / a;
    if (!(abs(d) < 0.1)) return d - log_called(x / a);
    double gap = 0, power = d * d;
    for (int k = 2; k < 20; k++, power *= -d) gap += power / k;
    return gap;
}
/* x^a exp(-x) / Gamma(a + 1); for large a by Stirling's series, which avoids a cancellation */
PT_NOINLINE double gamma_weight(double a, double x) {
    if (a < 16.0) return exp_called(a * log_called(x) - x - lgamma(a + 1.0));
    const double i = 1.0 / a, q = i * i;
    const double stirling =
        i * (0.08333333333333333 +
             q * (-0.002777777777777778 + q * (0.0007936507936507937 - q * 0.0005952380952380953)));
    return exp_called(-a * log_gap(a, x) - stirling) / sqrt(6.283185307179586 * a);
}

/* The regularised incomplete gamma functions. For x up to a, or 1, the lower one is summed by its
 * series; beyond, the upper one by its continued fraction, until a step changes it by less than
 * `close` of itself. Both take about 6 sqrt(a) steps for x near a; for a above 2e5 two terms of
 * Temme's expansion in 1 / a are enough. */
PT_NOINLINE double gamma_ratio(double a, double x, bool upper, double close) {
    if (a != a || x != x || a < 0 || x < 0) return not_a_number<double>();
    if (a == 0) return x > 0 ? (upper ? 0.0 : 1.0) : not_a_number<double>();
    if (x == 0) return upper ? 1.0 : 0.0;
    if (a == infinity<double>()) return x == a ? not_a_number<double>() : upper ? 1.0 : 0.0;
    if (x == infinity<double>()) return upper ? 0.0 : 1.0;
    if (a > 2e5) {
        const double d = (x - a) / a, gap = log_gap(a, x), eta = copysign(sqrt(2.0 * gap), d);
        const double c0 = abs(eta) < 0.01 ? poly(eta, -0.3333333333333333, 0.08333333333333333,
                                                 -0.014814814814814815, 0.0011574074074074073,
                                                 0.0003527336860670194)
                                          : 1.0 / d - 1.0 / eta;
        const double c1 =
            poly(eta, -0.001851851851851852, -0.003472222222222222, 0.0026455026455026454);
        const double rest = exp_called(-a * gap) / sqrt(6.283185307179586 * a) *
                            (abs(eta) < 0.1 ? c0 + c1 / a : 0.0);
        const double half = 0.5 * erfc((upper ? eta : -eta) * sqrt(0.5 * a));
        return upper ? half + rest : half - rest;
    }
    /* here 1 minus the lower function would cancel */
    if (upper && x <= 1.1 && a <= (x <= 0.5 ? -0.4 / log_called(x) : 1.1 * x)) {
        double sum = 0, term = 1;
        for (int n = 1; n < 60 && abs(term) > 0.01 * close; n++) {
            term *= -x / n;
            sum += term / (a + n);
        }
        const double log_gamma =
            a < 5e-3 ? a * poly(a, -0.5772156649015329, 0.8224670334241132, -0.40068563438653143,
                                0.27058080842778454, -0.20738555102867398, 0.16955717699740818)
                     : lgamma(1.0 + a);
        const double power = a * log_called(x) - log_gamma;
        const double r = -expm1(power) - a * exp_called(power) * sum;
        return r <= 0 ? 0.0 : r;
    }
    const double weight = gamma_weight(a, x);
    if (weight == 0) return (x > a) == upper ? 0.0 : 1.0;
    const int steps = 1000 + (int)(20.0 * sqrt(a));
    if (x <= 1.0 || x <= a) {
        double sum = 1, term = 1, n = a;
        for (int k = 0; k < steps && term > 0.1 * close * sum; k++) {
            n += 1.0;
            term *= x / n;
            sum += term;
        }
        /* rounding may bring the sum slightly above 1, and 1 - sum below 0 */
        sum *= weight;
        sum = sum > 1.0 ? 1.0 : sum;
        return upper ? 1.0 - sum : sum;
    }
    /* By the recurrences of numerator and denominator, which need no division per step; both
     * are scaled down together. */
    double b = x + 1.0 - a + 1.0, p0 = 1, q0 = x, p1 = x + 1.0, q1 = b * x, h = p1 / q1;
    for (int k = 1; k < steps; k++) {
        b += 2.0;
        const double e = k * (k + 1.0 - a), p = b * p1 - e * p0, q = b * q1 - e * q0, last = h;
        p0 = p1, q0 = q1, p1 = p, q1 = q;
        if (abs(q) > 1e100) p0 *= 1e-100, q0 *= 1e-100, p1 *= 1e-100, q1 *= 1e-100;
        if (q == 0) continue;
        h = p / q;
        if (abs(h - last) <= close * abs(h)) break;
    }
    const double r = weight * a * h;
    return upper ? r : 1.0 - r;
}
PT_INLINE double igamma(double a, double x) { return gamma_ratio(a, x, false, 1e-16); }
PT_INLINE double igammac(double a, double x) { return gamma_ratio(a, x, true, 1e-16); }
PT_INLINE float igamma(float a, float x) {
    return (float)gamma_ratio((double)a, (double)x, false, 1e-9);
}
PT_INLINE float igammac(float a, float x) {
    return (float)gamma_ratio((double)a, (double)x, true, 1e-9);
}

/* The inverse of the normal distribution function (Cephes' ndtri): a rational function of y - 1/2;
 * where |y - 1/2| exceeds 3/8, one of 1 / sqrt(-2 log y). */
PT_NOINLINE double ndtri_slow(double x) {
    const bool low = x <= 0.8646647167633873;
    const double y = low ? x : 1.0 - x;
    const double d = y - 0.5, q = d * d;
    const double central =
        2.5066282746310002 *
        (d + d * q *
                 poly(q, -1.2391658386738125, 13.931260938727968, -56.67628574690703,
                      98.00107541859997, -59.96335010141079) /
                 poly(q, -1.1833162112133, 15.90562251262117, -82.03722561683334,
                      200.26021238006066, -225.46268785411937, 86.36024213908905, 4.676279128988815,
                      1.9544885833814176, 1.0));
    const double t = sqrt(-2.0 * log_called(y)), z = 1.0 / t;
    const double near = poly(z, -0.0008574567851546854, -0.03504246268278482, -0.1402560791713545,
                             2.1866330685079025, 14.684956192885803, 44.08050738932008,
                             57.16281922464213, 31.525109459989388, 4.0554489230596245) /
                        poly(z, -0.0009332594808954574, -0.03808064076915783, -0.14218292285478779,
                             2.504649462083094, 15.04253856929075, 41.3172038254672,
                             45.39076351288792, 15.779988325646675, 1.0);
    const double far =
        poly(z, 6.239745391849833e-09, 2.6580697468673755e-06, 0.00030158155350823543,
             0.012371663481782003, 0.20148538954917908, 1.3330346081580755, 3.9388102529247444,
             6.915228890689842, 3.2377489177694603) /
        poly(z, 6.790194080099813e-09, 2.8924786474538068e-06, 0.00032801446468212774,
             0.013420400608854318, 0.21623699359449663, 1.3770209948908132, 3.6798356385616087,
             6.02427039364742, 1.0);
    const double tail = t - log_called(t) / t - z * (t < 8.0 ? near : far);
    const double r = y > 0.1353352832366127 ? central : low ? -tail : tail;
    return x > 0 && x < 1.0 ? r
           : x == 0         ? -infinity<double>()
           : x == 1.0       ? infinity<double>()
                            : not_a_number<double>();
}
PT_SLOW_1(ndtri)

}}  /* namespace pt, unnamed */
#endif
