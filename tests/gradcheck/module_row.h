/// Rows of the gradient-check table for modules.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include <rill/nn/gradcheck.h>
#include <rill/nn/init.h>
#include <support/gradcheck_table.h>

namespace test {

/// A module as a function of its parameters, initialised at random, and `inputs`.
template <class M, class F>
GradcheckRow module_row(const char* name, std::decay_t<decltype(std::declval<M>().options())> options, F call,
                        const std::vector<rill::Tensor>& inputs) {
  using Inputs = std::vector<rill::Tensor>;
  rill::Rng rng(700);
  const auto module = std::make_shared<M>(std::move(options), rng);
  module->to(rill::float64);
  module->eval();
  const std::vector<rill::nn::Parameter> parameters = module->parameters();
  Inputs all(parameters.begin(), parameters.end());
  for (const rill::Tensor& p : all) rill::nn::init::normal_(p, 0, 0.7, rng);
  const std::size_t count = all.size();
  all.insert(all.end(), inputs.begin(), inputs.end());
  const auto f = [module, call, count](const Inputs& given) {
    const rill::nn::Substitution substitution(*module, std::span(given).first(count));
    return Inputs(call(*module, Inputs(given.begin() + static_cast<std::ptrdiff_t>(count), given.end())));
  };
  return {name, f, all};
}

}  // namespace test
