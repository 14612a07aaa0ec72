/* Taylor's polynomial of degree 18 of the exponential of a matrix A by five products of matrices
 * (Bader, Blanes and Casas, Mathematics 7, 2019), on the CPU and on devices:
 *
 *     Q = P1 P5,  N = P4 + Q,  V = P3 + N,  exp(A) = I + A + P2 + FACTOR Q + V N
 *
 * where P1, P3 and P4 are sums of A, A^2, A^3 and A^6 with the coefficients below, and P2 and P5 of
 * A^2, A^3 and A^6. Their constants are multiplied out, so that I + A is exact. */
#ifndef PTCORE_EXPONENTIAL_H
#define PTCORE_EXPONENTIAL_H

#define PT_EXP_1                                                                                 \
    -1.00365581030144618291e-01, -8.02924648241156932449e-03, -8.92138498045729985177e-04
#define PT_EXP_2                                                                                 \
    0.609071425048946503393, 0.169424154717016536098, -0.000485762278605524163468
#define PT_EXP_3                                                                                 \
    1.68015813878906206114e+00, 5.71779846478865511061e-02, -6.98210122488052056106e-03,         \
        3.34975017086070470649e-05
#define PT_EXP_4                                                                                 \
    -6.76404519071381882256e-02, 6.75961301770459654925e-02, 2.95552570429315521194e-02,         \
        -1.39180257516060693404e-05
#define PT_EXP_5                                                                                 \
    -9.23364619367118555360e-02, -1.69364939002081722752e-02, -1.40086798182036094347e-05
#define PT_EXP_FACTOR -11.1485029717743679927

#endif
