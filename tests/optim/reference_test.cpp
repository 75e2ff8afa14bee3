// Optimiser trajectories against PyTorch 1.13 (tests/reference), with tighter bounds than rill-parity.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include <rill/optim/optim.h>

namespace {

using namespace rill;
using namespace rill::optim;

SafetensorsFile reference(const std::string& name) {
  return load_safetensors(std::filesystem::path(RILL_TEST_DATA) / name);
}

/// The prefixes of all reference cases of one kind.
std::set<std::string> prefixes(const std::string& kind) {
  std::ifstream stream(std::filesystem::path(RILL_TEST_DATA) / "index.json");
  const nlohmann::json index = nlohmann::json::parse(stream);
  std::set<std::string> out;
  for (const auto& c : index["cases"]) {
    if (c["kind"] == kind) out.insert(c["prefix"].get<std::string>());
  }
  return out;
}

/// Largest |got - want| / max(1, |want|).
double worst(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  double most = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    most = std::max(most, std::abs(got[i] - want[i]) / std::max(1.0, std::abs(want[i])));
  }
  return most;
}

struct OptimCase {
  std::function<std::unique_ptr<Optimizer>(const Tensor& w, const Tensor& b, const Tensor& unused)> make;
  bool steps_down = false;  // with StepLR
};

template <class O>
OptimCase plain(typename O::Options options) {
  return {[options](const Tensor& w, const Tensor& b, const Tensor& unused) {
    return std::make_unique<O>(NamedTensors{{"w", w}, {"b", b}, {"unused", unused}}, options);
  }};
}

const std::map<std::string, OptimCase>& optim_cases() {
  static const std::map<std::string, OptimCase> cases{
      {"sgd/", plain<SGD>({.lr = 0.1})},
      {"sgd_momentum/", plain<SGD>({.lr = 0.1, .momentum = 0.9})},
      {"sgd_dampening/", plain<SGD>({.lr = 0.1, .momentum = 0.9, .dampening = 0.5})},
      {"sgd_nesterov/", plain<SGD>({.lr = 0.1, .momentum = 0.9, .nesterov = true})},
      {"sgd_weight_decay/", plain<SGD>({.lr = 0.1, .weight_decay = 0.05})},
      {"sgd_all/", plain<SGD>({.lr = 0.05, .momentum = 0.8, .weight_decay = 0.02, .nesterov = true})},
      {"adam/", plain<Adam>({.lr = 0.05})},
      {"adam_betas_eps/", plain<Adam>({.lr = 0.03, .betas = {0.8, 0.95}, .eps = 1e-4})},
      {"adam_l2/", plain<Adam>({.lr = 0.05, .weight_decay = 0.1})},
      {"adam_amsgrad/", plain<Adam>({.lr = 0.05, .amsgrad = true})},
      {"adamw/", plain<AdamW>({.lr = 0.05, .weight_decay = 0.1})},
      {"adamw_amsgrad/", plain<AdamW>({.lr = 0.05, .weight_decay = 0.02, .amsgrad = true})},
      {"rmsprop/", plain<RMSprop>({.lr = 0.02, .alpha = 0.9})},
      {"rmsprop_centered_momentum/",
       plain<RMSprop>({.lr = 0.02, .alpha = 0.95, .weight_decay = 0.01, .momentum = 0.9, .centered = true})},
      {"adagrad/", plain<Adagrad>({.lr = 0.2})},
      {"adagrad_all/",
       plain<Adagrad>({.lr = 0.2, .lr_decay = 0.1, .weight_decay = 0.01, .initial_accumulator_value = 0.1})},
      {"adadelta/", plain<Adadelta>({})},
      {"adadelta_2014/", plain<Adadelta>({.rho = 0.95, .eps = 1e-6, .weight_decay = 0.01})},
      {"adam_groups/", {[](const Tensor& w, const Tensor& b, const Tensor&) {
         return std::make_unique<Adam>(
             std::vector<Adam::Group>{{.params = {w}, .options = {.lr = 0.05}},
                                      {.params = {b}, .options = {.lr = 0.01, .weight_decay = 0.1}}});
       }}},
      {"sgd_momentum_steplr/", {plain<SGD>({.lr = 0.1, .momentum = 0.9}).make, true}},
  };
  return cases;
}

template <class Cases>
void check_complete(const Cases& cases, const std::string& kind) {
  std::set<std::string> have;
  for (const auto& item : cases) have.insert(item.first);
  CHECK(have == prefixes(kind));
}

TEST_CASE("optim: optimisers follow every trajectory of the reference set") {
  check_complete(optim_cases(), "optim");
  const SafetensorsFile file = reference("optim.safetensors");
  for (const auto& [prefix, c] : optim_cases()) {
    CAPTURE(prefix);
    Tensor w = file.at(prefix + "param.w").clone().set_requires_grad();
    Tensor b = file.at(prefix + "param.b").clone().set_requires_grad();
    const Tensor* unused = file.find(prefix + "param.unused");
    const Tensor untouched = unused != nullptr ? unused->clone().set_requires_grad() : zeros({1}, float64);
    const auto optimizer = c.make(w, b, untouched);
    std::unique_ptr<LRScheduler> schedule;
    if (c.steps_down)
      schedule = std::make_unique<StepLR>(*optimizer, StepLROptions{.step_size = 3, .gamma = 0.5});
    const Tensor& ws = file.at(prefix + "out.w");
    double most = 0;
    for (std::int64_t k = 0; k < ws.size(0); ++k) {
      w.set_grad(file.at(prefix + "grad.w").select(0, k));
      b.set_grad(file.at(prefix + "grad.b").select(0, k));
      optimizer->step();
      if (schedule) schedule->step();
      most = std::max(most, worst(w.to_vector(), ws.select(0, k).to_vector()));
      most = std::max(most, worst(b.to_vector(), file.at(prefix + "out.b").select(0, k).to_vector()));
    }
    CHECK(most < 1e-12);
    if (unused != nullptr) CHECK(untouched.to_vector() == unused->to_vector());
  }
}

}  // namespace
