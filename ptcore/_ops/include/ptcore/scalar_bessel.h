/* Bessel functions of real arguments and the Airy function, in double: written for
 * accuracy, not for vectorising.
 *
 * The rational approximations and Chebyshev series are those of Cephes (S. L. Moshier, release 2.8,
 * 2000). For a float result the series of K_0 and K_1 stop where float's precision ends (`terms`).
 */
#ifndef PTCORE_SCALAR_BESSEL_H
#define PTCORE_SCALAR_BESSEL_H
#include "scalar.h"

namespace pt { namespace {

/* ---- first and second kind ---- */

PT_NOINLINE double waves(double theta, double of_sine, double of_cosine) {
    return sin(theta) * of_sine + cos(theta) * of_cosine;
}
/* Hankel's expansion for x > 5: p and q times the cosine and sine of x - (2 * order + 1) pi / 4. */
PT_INLINE double hankel(int order, bool second, double x, double p, double q) {
    const double u = order ? (second ? q - p : p + q) : (second ? p + q : p - q);
    const double v = order ? (second ? -(p + q) : q - p) : (second ? q - p : p + q);
    return waves(x, u, v) * 0.5641895835477563 / sqrt(x);
}
PT_NOINLINE double hankel0(double x, bool second) {
    const double w = 5.0 / x, z = w * w;
    const double p = poly(z, 1.0, 5.303240382353949, 8.74716500199817, 5.447250030587687,
                          1.239533716464143, 0.08283523921074408, 0.0007969367292973471) /
                     poly(z, 1.0, 5.306052882353947, 8.761908832370695, 5.470977403304171,
                          1.2535274390105895, 0.08562884743544745, 0.0009244088105588637);
    const double q =
        w *
        poly(z, -6.050143506007285, -51.41053267665993, -147.07750515495118, -177.68116798048806,
             -93.20601521237683, -19.553954425773597, -1.2825271867050931, -0.011366383889846916) /
        poly(z, 242.0057402402914, 2062.0933166032783, 5930.727011873169, 7240.467741956525,
             3882.4018360540163, 856.4300259769806, 64.3178256118178, 1.0);
    return hankel(0, second, x, p, q);
}
PT_NOINLINE double hankel1(double x, bool second) {
    const double w = 5.0 / x, z = w * w;
    const double p = poly(z, 1.0, 5.214515986823615, 8.424045901417724, 5.112079511468076,
                          1.1271960812968493, 0.07313970569409176, 0.0007621256162081731) /
                     poly(z, 1.0, 5.209828486823619, 8.399855543276042, 5.073863861286015,
                          1.105142326340617, 0.06884559087544954, 0.0005713231280725487);
    const double q =
        w *
        poly(z, 25.207020585802372, 211.68875710057213, 597.4896124006136, 710.8563049989261,
             366.7796093601508, 75.82382841325453, 4.982138729512334, 0.05108625947501766) /
        poly(z, 336.0936078106983, 2826.1927851763908, 7997.041604473507, 9562.318924047562,
             4986.410583376536, 1056.4488603826283, 74.23732770356752, 1.0);
    return hankel(1, second, x, p, q);
}

PT_NOINLINE double bessel_j0_slow(double x) {
    const double a = abs(x), z = x * x;
    if (a > 5.0) return hankel0(a, false);
    if (a < 1e-5) return 1.0 - 0.25 * z;
    return (z - 5.783185962946785) * (z - 30.471262343662087) *
           poly(z, 9708622510473064.0, -249248344360967.72, 1956174919465.5657,
                -4794432209.782018) /
           poly(z, 1.7108629408104315e+18, 3.1812195594320496e+16, 310518229857422.56,
                2112775201154.892, 11185553704.535683, 48440965.83399621, 173785.4016763747,
                499.563147152651, 1.0);
}
PT_NOINLINE double bessel_j1_slow(double x) {
    const double a = abs(x), z = x * x;
    if (a > 5.0) return copysign(1.0, x) * hankel1(a, false);
    return x * (z - 14.681970642123893) * (z - 49.21845632169460) *
           poly(z, 3682957328638529.0, -72749424522181.83, 452228297998.19403, -899971225.7055594) /
           poly(z, 5.322786203326801e+18, 8.952223361846274e+16, 784369607876235.9,
                4749141220799.914, 22151159547.97925, 83514679.14319493, 256987.25675774884,
                620.8364781180543, 1.0);
}
/* up to 5: a fit of Y_n - 2 / pi log(x) J_n(x), which is smooth */
PT_NOINLINE double bessel_y0_slow(double x) {
    if (!(x > 0)) return x == 0 ? -infinity<double>() : not_a_number<double>();
    if (x > 5.0) return hankel0(x, true);
    const double z = x * x;
    return 0.6366197723675814 * log_called(x) * bessel_j0_slow(x) +
           poly(z, -1.8495080043698668e+16, 4.4273326857256984e+16, -3466283033847297.0,
                87590639439536.7, -982136065717.9115, 5435264770.518765, -14663929.59039716,
                15592.436785523574) /
               poly(z, 2.5059625617265306e+17, 3171577528429750.5, 20297961275010.555,
                    86400248710.3935, 268919633.39381415, 626107.330137135, 1041.2835366425984,
                    1.0);
}
PT_NOINLINE double bessel_y1_slow(double x) {
    if (!(x > 0)) return x == 0 ? -infinity<double>() : not_a_number<double>();
    if (x > 5.0) return hankel1(x, true);
    const double z = x * x;
    return 0.6366197723675814 * (log_called(x) * bessel_j1_slow(x) - 1.0 / x) +
           x *
               poly(z, -7.788771962659501e+17, 2.024394757135949e+17, -8127702555013251.0,
                    114509511541823.73, -647355876379.1603, 1263204747.9017804) /
               poly(z, 3.9727060811656064e+18, 6.871410873553005e+16, 620557727146953.8,
                    3882312774962.3857, 18760131610.870617, 73481194.44597217, 235564.09294306856,
                    594.3015923461282, 1.0);
}

/* f_n from f_0 and f_1, for functions with f_(k + 1) = (2 k + shift) / x f_k - f_(k - 1) that fall
 * where k > x: upwards where that is stable (|x| > n), else by the ratios f_k / f_(k - 1), computed
 * downwards from far above n with any start. */
PT_NOINLINE double falling_order(int n, double x, double shift, double f0, double f1) {
    if (n < 2) return n ? f1 : f0;
    if (x == 0) return 0;
    if (abs(x) > n) {
        for (int k = 1; k < n; k++) {
            const double next = (2 * k + shift) / x * f1 - f0;
            f0 = f1;
            f1 = next;
        }
        return f1;
    }
    double ratio = 0, product = 1;
    for (int k = n + 50; k > 1; k--) {
        ratio = x / ((2 * k + shift) - ratio * x);
        if (k <= n) product *= ratio;
    }
    /* f_1 / f_0 is such a ratio too. Scale by the larger of f_0 and f_1: the smaller may be close
     * to a zero of its function, and inexact */
    return abs(f0) > abs(f1) ? product * f0 * (x / ((2 + shift) - ratio * x)) : product * f1;
}
/* J of an integer order, which derivatives of J_1 need */
PT_NOINLINE double bessel_j_of_slow(double x, double order) {
    const int n = (int)abs(order);
    const double f = falling_order(n, x, 0.0, bessel_j0_slow(x), bessel_j1_slow(x));
    return order < 0 && n % 2 ? -f : f;
}

/* Spherical Bessel functions of the first kind. */
template<class T> PT_INLINE T real_spherical_bessel_j0(T x) {
    return isinf(x) ? T(0) : x == T(0) ? T(1) : sin(x) / x;
}
PT_REAL_1(spherical_bessel_j0)
namespace fast {
template<class T> PT_INLINE T spherical_bessel_j0(T x) {
    const T y = sin(x) / x;
    return x == T(0) ? T(1) : y;
}
}
PT_NOINLINE double spherical_bessel_j_of_slow(double x, double order) {
    const double f0 = spherical_bessel_j0(x), z = x * x;
    if (isinf(x)) return 0;
    const double f1 =
        abs(x) > 0.5 ? (f0 - cos(x)) / x
                     : x * poly(z, 0.3333333333333333, -0.03333333333333333, 0.0011904761904761906,
                                -2.2045855379188714e-05, 2.505210838544172e-07,
                                -1.9270852604185938e-09, 1.0706029224547742e-11);
    /* derivatives of j_0 ask for j_(-1) and multiply it by 0 */
    return order < 0 ? 0.0 : falling_order((int)order, x, 1.0, f0, f1);
}

/* ---- modified, second kind; scalar_special.h has those of the first kind ---- */

/* I_0(x) and I_1(x) / (x / 2) by their power series in (x / 2)^2 <= 1 */
PT_INLINE double small_i0(double q) {
    return poly(q, 1.0, 1.0, 0.25, 0.027777777777777776, 0.001736111111111111,
                6.944444444444444e-05, 1.9290123456790124e-06, 3.936759889140842e-08,
                6.151187326782565e-10, 7.594058428126624e-12, 7.594058428126623e-14,
                6.276081345559193e-16);
}
PT_INLINE double small_i1(double q) {
    return poly(q, 1.0, 0.5, 0.08333333333333333, 0.006944444444444444, 0.0003472222222222222,
                1.1574074074074073e-05, 2.7557319223985894e-07, 4.920949861426052e-09,
                6.834652585313961e-11, 7.594058428126624e-13, 6.9036894801151114e-15,
                5.2300677879659946e-17);
}

/* log(x / 2); for small x without halving, which would underflow a denormal to 0 */
PT_INLINE double log_half(double x) {
    return x < 1.0 ? log_called(x) - 0.6931471805599453 : log_called(0.5 * x);
}

/* K_0 and exp(x) K_0: for x <= 2 a series of K_0 + log(x / 2) I_0, else a
 * series of exp(x) sqrt(x) K_0. */
PT_NOINLINE double bessel_k0(double x, int terms, bool scaled) {
    static const double near[10] = {-0.2676636966169514,   0.3442898999246285,
                                    0.0359799365153615,    0.001264615411446926,
                                    2.286212103119452e-05, 2.5347910790261494e-07,
                                    1.904516377220209e-09, 1.0349695257633842e-11,
                                    4.25981614279661e-14,  1.374465435613523e-16};
    static const double far[25] = {
        1.2201515410329777,      -0.0314481013119645,    0.0015698838857300533,
        -0.00012849549581627802, 1.39498137188765e-05,   -1.8317555227191195e-06,
        2.766813639445015e-07,   -4.660489897687948e-08, 8.574034017414225e-09,
        -1.69753450938906e-09,   3.577397281400301e-10,  -7.957489244477107e-11,
        1.8559491149547177e-11,  -4.514597883373944e-12, 1.140340588208475e-12,
        -2.9800969231727303e-13, 8.032890775363575e-14,  -2.2275133269916698e-14,
        6.3400764774050706e-15,  -1.848593377343779e-15, 5.512055978524319e-16,
        -1.678231096805412e-16,  5.2103915050390274e-17, -1.6475804301524212e-17,
        5.300433772686263e-18};
    if (!(x > 0)) return x == 0 ? infinity<double>() : not_a_number<double>();
    if (x <= 2.0) {
        const double q = 0.25 * x * x,
                     y = chebyshev(near, 10, 2.0 * q - 1.0) - log_half(x) * small_i0(q);
        return scaled ? y * exp_called(x) : y;
    }
    const double y = chebyshev(far, terms, 4.0 / x - 1.0) / sqrt(x);
    return scaled ? y : y * exp_called(-x);
}
/* Likewise K_1; for x <= 2 the series is multiplied by x. */
PT_NOINLINE double bessel_k1(double x, int terms, bool scaled) {
    static const double near[11] = {
        0.7626501136694739,     -0.3531559607765449,     -0.12261118082265715,
        -0.006975723859639864,  -0.0001730288957513052,  -2.4334061415659684e-06,
        -2.213387630734726e-08, -1.4114883926335278e-10, -6.666901694199329e-13,
        -2.427449850519366e-15, -7.023863479386288e-18};
    static const double far[25] = {
        1.3603130952422213,      0.10392373657681724,     -0.002857816859622779,
        0.00019521551847135162,  -1.936197974166083e-05,  2.406484947837217e-06,
        -3.5019606030878126e-07, 5.7410841254500495e-08,  -1.0345762465678097e-08,
        2.015049755197033e-09,   -4.1903547593418965e-10, 9.218315187605006e-11,
        -2.1299678384275683e-11, 5.13963967348173e-12,    -1.2891739609510289e-12,
        3.3484196660784293e-13,  -8.976705182324994e-14,  2.4771544244813043e-14,
        -7.019837090418314e-15,  2.038703165624334e-15,   -6.057047248373319e-16,
        1.838093544366639e-16,   -5.689462558442859e-17,  1.7940508731475592e-17,
        -5.756744483665017e-18};
    if (!(x > 0)) return x == 0 ? infinity<double>() : not_a_number<double>();
    if (x <= 2.0) {
        const double q = 0.25 * x * x;
        const double y =
            0.5 * x * log_half(x) * small_i1(q) + chebyshev(near, 11, 2.0 * q - 1.0) / x;
        return scaled ? y * exp_called(x) : y;
    }
    const double y = chebyshev(far, terms, 4.0 / x - 1.0) / sqrt(x);
    return scaled ? y : y * exp_called(-x);
}
PT_INLINE double modified_bessel_k0_slow(double x, int terms) { return bessel_k0(x, terms, false); }
PT_INLINE double modified_bessel_k1_slow(double x, int terms) { return bessel_k1(x, terms, false); }
PT_INLINE double scaled_modified_bessel_k0_slow(double x, int terms) {
    return bessel_k0(x, terms, true);
}
PT_INLINE double scaled_modified_bessel_k1_slow(double x, int terms) {
    return bessel_k1(x, terms, true);
}

/* ---- Airy's function and its derivative ---- */

/* Maclaurin's series c1 f - c2 g between -2.09 and 2.09 */
template<bool SLOPE> PT_INLINE double airy_near(double x) {
    const double z = x * x * x;
    double u = SLOPE ? 0.5 * x * x : 1.0, v = SLOPE ? 1.0 : x, f = u, g = v;
    for (double j = 3; abs(u) + abs(v) > 1e-17 * (abs(f) + abs(g)); j += 3) {
        u *= z / (SLOPE ? j * (j + 2) : (j - 1) * j);
        v *= z / (SLOPE ? (j - 2) * j : j * (j + 1));
        f += u;
        g += v;
    }
    return 0.3550280538878172 * f - 0.2588194037928068 * g;
}
PT_NOINLINE double airy_ai_slow(double x) {
    if (abs(x) < 2.09) return airy_near<false>(x);
    if (x > 108.0) return 0;                    /* below the smallest denormal */
    const double a = abs(x), t = sqrt(a), zeta = a * t / 1.5, z = 1.0 / zeta,
                 k = 0.5641895835477563 / sqrt(t);
    if (x > 0)
        return 0.5 * k * exp_called(-zeta) *
               poly(z, 1.0, 14.026469116338967, 70.53609068404442, 159.75639135016442,
                    168.08922493463058, 76.27960536152345, 12.007595273964581, 0.346538101525629) /
               poly(z, 1.0, 14.095913560783403, 71.47784008255756, 164.2346928715297,
                    177.31808814540045, 84.51389701414746, 14.75625625848472, 0.5675945326387702);
    const double q = z * z, theta = zeta + 0.7853981633974483;
    const double u =
        1.0 + q *
                  poly(q, -1.6778769848911465e-08, -2.776491081552329e-06, -0.0001592764962392621,
                       -0.004062659235948854, -0.04919001326095003, -0.2797799815451191,
                       -0.6931580360369335, -0.6264565444319123, -0.1316963234183318) /
                  poly(q, 4.5185009297058035e-07, 7.547203482874142e-05, 0.004402916416152112,
                       0.11568717379518804, 1.4752914677166642, 9.187074029072596,
                       26.736704094149957, 32.682503279522464, 13.356042070655324, 1.0);
    const double v =
        z *
        poly(q, 3.415517847659236e-10, 8.117892395543892e-08, 6.98793669997261e-06,
             0.000282851600836737, 0.005858041130483885, 0.06338889196289255, 0.35146565610554764,
             0.9391692298166502, 1.0657989759959559, 0.39110302961568827, 0.01973399320916857) /
        poly(q, 4.9183457006293e-09, 1.1716673321441352e-06, 0.00010125908511650914,
             0.004126565238242226, 0.08645808263523921, 0.9542936116189619, 5.476860694229755,
             15.564662893286462, 19.835292871831214, 9.30892908077442, 1.0);
    return k * waves(theta, u, -v);
}
PT_NOINLINE double airy_ai_slope_slow(double x) {
    if (abs(x) < 2.09) return airy_near<true>(x);
    if (x > 108.0) return -0.0;
    const double a = abs(x), t = sqrt(a), zeta = a * t / 1.5, z = 1.0 / zeta,
                 k = 0.5641895835477563 * sqrt(t);
    if (x > 0)
        return -0.5 * k * exp_called(-zeta) *
               poly(z, 1.0, 13.947085698048157, 69.97785993301031, 159.3178471371418,
                    171.1847813609764, 82.0584123476061, 14.745467078775532, 0.6137591848140358) /
               poly(z, 1.0, 13.849863475825945, 68.67523045927804, 153.20642747580922,
                    158.77808437283832, 71.172735214786, 11.181029730615816, 0.33420367774973697);
    const double q = z * z, theta = zeta + 0.7853981633974483;
    const double u =
        1.0 + q *
                  poly(q, 2.4837993290044246e-08, 4.087187782890355e-06, 0.0002330514094017768,
                       0.005906186579956618, 0.07103049262896312, 0.40124108231800376,
                       0.9873919817473985, 0.8867121880525841, 0.18536562402253556) /
                  poly(q, 5.65978713036027e-07, 9.394212906545112e-05, 0.00544066067017226,
                       0.14173327575366262, 1.788850547669994, 10.996912520729877,
                       31.46577512030464, 37.54239334354896, 14.734585468750254, 1.0);
    const double v =
        z *
        poly(q, -5.638038339588935e-10, -1.3341551868554742e-07, -1.1430083648451737e-05,
             -0.00046032530748678097, -0.009483966959614452, -0.10210103112021689,
             -0.5636066658221027, -1.5022187211731663, -1.7085673888431236, -0.6373115181294355,
             -0.03556154290330823) /
        poly(q, 5.799125149291476e-09, 1.3748067355421944e-06, 0.00011815963332283862,
             0.0047846819968388665, 0.09950055434408885, 1.088486943963215, 6.178721752808288,
             17.31307763897494, 21.640186735658595, 9.858658016961304, 1.0);
    return -k * waves(theta, v, u);
}

/* For a float result 14 terms of the long series are enough. */
#define PT_BY_SERIES(name) \
    PT_INLINE double name(double x) { return name##_slow(x, 25); } \
    PT_INLINE float name(float x) { return (float)name##_slow((double)x, 14); }
PT_SLOW_1(bessel_j0)
PT_SLOW_1(bessel_j1)
PT_SLOW_1(bessel_y0)
PT_SLOW_1(bessel_y1)
PT_SLOW_1(airy_ai)
PT_SLOW_1(airy_ai_slope)
PT_SLOW_2(bessel_j_of)
PT_SLOW_2(spherical_bessel_j_of)
PT_BY_SERIES(modified_bessel_k0)
PT_BY_SERIES(modified_bessel_k1)
PT_BY_SERIES(scaled_modified_bessel_k0)
PT_BY_SERIES(scaled_modified_bessel_k1)
#undef PT_BY_SERIES

}}  /* namespace pt, unnamed */
#endif
