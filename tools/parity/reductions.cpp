#include <parity/ops.h>

#include <rill/core/ops.h>

namespace rill::parity {
namespace {

using Reduction = Tensor (*)(const Tensor&, const Dims&, bool);
using Extreme = ValuesAndIndices (*)(const Tensor&, std::int64_t, bool);
using ArgExtreme = Tensor (*)(const Tensor&, std::int64_t, bool);
using Flat = Tensor (*)(const Tensor&);

Op over_dims(Reduction f) {
  return {{"x", "dim", "keepdim"},
          [f](Call& c) { return single(f(c.tensor("x"), c.dims_or_none("dim"), c.flag("keepdim", false))); }};
}

/// max and min: over all elements, or along one dimension with indices.
Op extreme(Extreme along, Reduction over_all) {
  return {{"x", "dim", "keepdim"}, [=](Call& c) {
            const Tensor x = c.tensor("x");
            if (!c.has("dim")) return single(over_all(x, {}, false));
            const auto found = along(x, c.integer("dim"), c.flag("keepdim", false));
            return NamedTensors{{"values", found.values}, {"indices", found.indices}};
          }};
}

Op arg_extreme(ArgExtreme along, Flat over_all) {
  return {{"x", "dim", "keepdim"}, [=](Call& c) {
            const Tensor x = c.tensor("x");
            if (!c.has("dim")) return single(over_all(x));
            return single(along(x, c.integer("dim"), c.flag("keepdim", false)));
          }};
}

/// var and std: `unbiased` or `correction`.
Op spread(Tensor (*f)(const Tensor&, const Dims&, double, bool)) {
  return {{"x", "dim", "unbiased", "keepdim"}, [f](Call& c) {
            const double unbiased = c.flag("unbiased", true) ? 1 : 0;
            return single(f(c.tensor("x"), c.dims_or_none("dim"), c.number("correction", unbiased),
                            c.flag("keepdim", false)));
          }};
}

}  // namespace

void add_reductions(OpTable& table) {
  table["sum"] = over_dims(sum);
  table["mean"] = over_dims(mean);
  table["amax"] = over_dims(amax);
  table["amin"] = over_dims(amin);
  table["logsumexp"] = over_dims(logsumexp);
  table["var"] = spread(var);
  table["std"] = spread(stddev);
  table["max"] = extreme(max, amax);
  table["min"] = extreme(min, amin);
  table["argmax"] = arg_extreme(argmax, argmax);
  table["argmin"] = arg_extreme(argmin, argmin);
  table["norm"] = {
      {"x", "p", "dim", "keepdim"}, [](Call& c) {
        return single(norm(c.tensor("x"), c.number("p", 2), c.dims_or_none("dim"), c.flag("keepdim", false)));
      }};
  table["cumsum"] = {{"x", "dim"}, [](Call& c) { return single(cumsum(c.tensor("x"), c.integer("dim"))); }};
  table["prod"] = over_dims(prod);
}

}  // namespace rill::parity
