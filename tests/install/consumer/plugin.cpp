// A plugin: one C function over rill.
#include <rill/rill.h>

/// The largest error of the gradient of Σ (W x)², or -1 if mismatched shapes are not rejected.
extern "C" double plugin_check() {
  rill::Rng rng(1);
  const rill::Tensor w = rill::randn({3, 5}, rng).set_requires_grad();
  const rill::Tensor x = rill::randn({5, 2}, rng);
  rill::sum(rill::square(rill::matmul(w, x))).backward();
  const rill::NoGrad no_grad;
  try {
    rill::matmul(x, x);
    return -1;
  } catch (const rill::Error&) {
  }
  return rill::amax(rill::abs(w.grad() - 2.0 * rill::matmul(rill::matmul(w, x), x.t()))).item();
}
