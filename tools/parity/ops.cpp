#include <parity/ops.h>

#include <optional>
#include <string>
#include <utility>

#include <rill/core/ops.h>
#include <rill/nn/layers/dropout.h>

namespace rill::parity {
namespace {

void add_pointwise(OpTable& table) {
  using Unary = Tensor (*)(const Tensor&);
  const std::pair<std::string_view, Unary> unary[] = {{"neg", neg},         {"exp", exp},
                                                      {"log", log},         {"log1p", log1p},
                                                      {"sqrt", sqrt},       {"rsqrt", rsqrt},
                                                      {"square", square},   {"reciprocal", reciprocal},
                                                      {"abs", abs},         {"sin", sin},
                                                      {"cos", cos},         {"erf", erf},
                                                      {"sigmoid", sigmoid}, {"logsigmoid", logsigmoid},
                                                      {"tanh", tanh},       {"relu", relu},
                                                      {"silu", silu},       {"contiguous", contiguous},
                                                      {"clone", clone}};
  for (const auto& [name, function] : unary) {
    table[name] = {{"x"}, [f = function](Call& c) { return single(f(c.tensor("x"))); }};
  }
  table["detach"] = {{"x"}, [](Call& c) { return single(c.tensor("x").detach()); }};
  table["leaky_relu"] = {{"x", "negative_slope"}, [](Call& c) {
                           return single(leaky_relu(c.tensor("x"), c.number("negative_slope", 0.01)));
                         }};
  table["softplus"] = {
      {"x", "beta", "threshold"}, [](Call& c) {
        return single(softplus(c.tensor("x"), c.number("beta", 1), c.number("threshold", 20)));
      }};
  table["gelu"] = {
      {"x", "approximate"}, [](Call& c) {
        const std::string form = c.has("approximate") ? c.text("approximate") : "none";
        check(form == "none" || form == "tanh", "gelu: approximate '{}'; use none or tanh", form);
        return single(gelu(c.tensor("x"), form == "tanh" ? Approximate::tanh : Approximate::none));
      }};
  table["clamp"] = {{"x", "min", "max"}, [](Call& c) {
                      const auto bound = [&](std::string_view name) {
                        return c.has(name) ? std::optional(c.number(name)) : std::nullopt;
                      };
                      return single(clamp(c.tensor("x"), bound("min"), bound("max")));
                    }};
}

/// a and b, or a (in some sets x) and a number.
void add_binary(OpTable& table) {
  using Tensors = Tensor (*)(const Tensor&, const Tensor&);
  using Scalar = Tensor (*)(const Tensor&, double);
  struct Forms {
    std::string_view name;
    Tensors tensors;
    Scalar scalar;
  };
  const Forms binary[] = {{"add", add, add},
                          {"sub", sub, sub},
                          {"mul", mul, mul},
                          {"div", div, div},
                          {"pow", pow, pow},
                          {"maximum", maximum, nullptr},
                          {"minimum", minimum, nullptr},
                          {"rsub", nullptr, [](const Tensor& a, double b) { return sub(b, a); }},
                          {"rdiv", nullptr, [](const Tensor& a, double b) { return div(b, a); }},
                          {"eq", eq, eq},
                          {"ne", ne, ne},
                          {"lt", lt, lt},
                          {"le", le, le},
                          {"gt", gt, gt},
                          {"ge", ge, ge}};
  for (const Forms& f : binary) {
    table[f.name] = {{"a", "b"}, [f](Call& c) {
                       const Tensor a = c.tensor(c.has("a") ? "a" : "x");
                       for (std::string_view number : {"scalar", "exponent"}) {
                         if (f.scalar != nullptr && c.has(number))
                           return single(f.scalar(a, c.number(number)));
                       }
                       check(f.tensors != nullptr, "{}: no argument 'scalar'", f.name);
                       return single(f.tensors(a, c.tensor("b")));
                     }};
  }
  table["where"] = {{"mask", "a", "b"},
                    [](Call& c) { return single(where(c.tensor("mask"), c.tensor("a"), c.tensor("b"))); }};
  table["masked_fill"] = {{"x", "mask", "value"}, [](Call& c) {
                            return single(masked_fill(c.tensor("x"), c.tensor("mask"), c.number("value")));
                          }};
}

void add_products(OpTable& table) {
  table["matmul"] = {{"a", "b"}, [](Call& c) { return single(matmul(c.tensor("a"), c.tensor("b"))); }};
  table["bmm"] = {{"a", "b"}, [](Call& c) { return single(bmm(c.tensor("a"), c.tensor("b"))); }};
  table["addmm"] = {{"c", "a", "b", "beta", "alpha"}, [](Call& c) {
                      return single(addmm(c.tensor("c"), c.tensor("a"), c.tensor("b"), c.number("beta", 1),
                                          c.number("alpha", 1)));
                    }};
  table["linear"] = {{"x", "weight", "bias"}, [](Call& c) {
                       return single(linear(c.tensor("x"), c.tensor("weight"), c.tensor_or_none("bias")));
                     }};
}

NamedTensors chunks_of(std::vector<Tensor> parts, Call& c) {
  if (c.has("used")) {
    const std::int64_t used = c.integer("used");
    check(used >= 0 && used < static_cast<std::int64_t>(parts.size()), "used: {} of {} chunks", used,
          parts.size());
    return single(parts[static_cast<std::size_t>(used)]);
  }
  NamedTensors out;
  for (std::size_t i = 0; i < parts.size(); ++i) out.emplace_back(std::to_string(i), parts[i]);
  return out;
}

void add_views(OpTable& table) {
  table["reshape"] = {{"x", "shape"},
                      [](Call& c) { return single(reshape(c.tensor("x"), c.dims("shape"))); }};
  table["flatten"] = {{"x", "start", "end"}, [](Call& c) {
                        return single(flatten(c.tensor("x"), c.integer("start", 0), c.integer("end", -1)));
                      }};
  table["permute"] = {{"x", "dims"}, [](Call& c) { return single(permute(c.tensor("x"), c.dims("dims"))); }};
  table["permute_reshape"] = {
      {"x", "dims", "shape"},
      [](Call& c) { return single(reshape(permute(c.tensor("x"), c.dims("dims")), c.dims("shape"))); }};
  table["transpose"] = {{"x", "dim0", "dim1"}, [](Call& c) {
                          return single(transpose(c.tensor("x"), c.integer("dim0"), c.integer("dim1")));
                        }};
  table["narrow"] = {
      {"x", "dim", "start", "length"}, [](Call& c) {
        return single(narrow(c.tensor("x"), c.integer("dim"), c.integer("start"), c.integer("length")));
      }};
  table["slice"] = {{"x", "dim", "start", "end", "step"}, [](Call& c) {
                      const Tensor x = c.tensor("x");
                      const std::int64_t dim = c.integer("dim", 0);
                      return single(slice(x, dim, c.integer("start", 0), c.integer("end", x.size(dim)),
                                          c.integer("step", 1)));
                    }};
  table["select"] = {{"x", "dim", "index"}, [](Call& c) {
                       return single(select(c.tensor("x"), c.integer("dim"), c.integer("index")));
                     }};
  table["expand"] = {{"x", "shape"}, [](Call& c) { return single(expand(c.tensor("x"), c.dims("shape"))); }};
  table["squeeze"] = {{"x", "dim"}, [](Call& c) {
                        const Tensor x = c.tensor("x");
                        return single(c.has("dim") ? squeeze(x, c.integer("dim")) : squeeze(x));
                      }};
  table["unsqueeze"] = {{"x", "dim"},
                        [](Call& c) { return single(unsqueeze(c.tensor("x"), c.integer("dim"))); }};
  table["chunk"] = {{"x", "chunks", "dim"}, [](Call& c) {
                      return chunks_of(chunk(c.tensor("x"), c.integer("chunks"), c.integer("dim", 0)), c);
                    }};
  table["split"] = {{"x", "sizes", "dim"}, [](Call& c) {
                      const Tensor x = c.tensor("x");
                      const std::int64_t dim = c.integer("dim", 0);
                      if (c.has("size")) return chunks_of(split(x, c.integer("size"), dim), c);
                      if (c.json("sizes").is_number()) return chunks_of(split(x, c.integer("sizes"), dim), c);
                      return chunks_of(split(x, c.json("sizes").get<std::vector<std::int64_t>>(), dim), c);
                    }};
}

void add_copies(OpTable& table) {
  table["cat"] = {{"list", "dim"},
                  [](Call& c) { return single(cat(c.tensors("list"), c.integer("dim", 0))); }};
  table["stack"] = {{"list", "dim"},
                    [](Call& c) { return single(stack(c.tensors("list"), c.integer("dim", 0))); }};
  table["flip"] = {{"x", "dims"}, [](Call& c) { return single(flip(c.tensor("x"), c.dims("dims"))); }};
  table["repeat"] = {{"x", "repeats"},
                     [](Call& c) { return single(repeat(c.tensor("x"), c.dims("repeats"))); }};
  table["tril"] = {{"x", "diagonal"},
                   [](Call& c) { return single(tril(c.tensor("x"), c.integer("diagonal", 0))); }};
  table["index_select"] = {{"x", "dim", "index"}, [](Call& c) {
                             return single(index_select(c.tensor("x"), c.integer("dim"), c.tensor("index")));
                           }};
  table["gather"] = {{"x", "dim", "index"}, [](Call& c) {
                       return single(gather(c.tensor("x"), c.integer("dim"), c.tensor("index")));
                     }};
  table["index_add"] = {
      {"x", "dim", "index", "src"}, [](Call& c) {
        return single(index_add(c.tensor("x"), c.integer("dim"), c.tensor("index"), c.tensor("src")));
      }};
  table["masked_select"] = {{"x", "mask"},
                            [](Call& c) { return single(masked_select(c.tensor("x"), c.tensor("mask"))); }};
  table["embedding"] = {{"weight", "index", "padding_idx"}, [](Call& c) {
                          const auto padding =
                              c.has("padding_idx") ? std::optional(c.integer("padding_idx")) : std::nullopt;
                          return single(embedding(c.tensor("weight"), c.tensor("index"), padding));
                        }};
}

void add_softmax_and_dropout(OpTable& table) {
  table["softmax"] = {{"x", "dim"}, [](Call& c) { return single(softmax(c.tensor("x"), c.integer("dim"))); }};
  table["log_softmax"] = {{"x", "dim"},
                          [](Call& c) { return single(log_softmax(c.tensor("x"), c.integer("dim"))); }};
  table["Dropout"] = {{"x", "p", "training"}, [](Call& c) {
                        Rng rng(0);
                        nn::Dropout dropout({.p = c.number("p", 0.5)}, rng);
                        dropout.train(c.flag("training", true));
                        return single(dropout(c.tensor("x")));
                      }};
  table["layer_norm"] = {
      {"x", "normalized_shape", "weight", "bias", "eps"}, [](Call& c) {
        return single(layer_norm(c.tensor("x"), c.dims("normalized_shape"), c.tensor_or_none("weight"),
                                 c.tensor_or_none("bias"), c.number("eps", 1e-5)));
      }};
}

}  // namespace

const Op* find_op(std::string_view name) {
  static const OpTable table = [] {
    OpTable t;
    add_pointwise(t);
    add_binary(t);
    add_products(t);
    add_views(t);
    add_copies(t);
    add_softmax_and_dropout(t);
    add_reductions(t);
    add_losses(t);
    return t;
  }();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
}

}  // namespace rill::parity
