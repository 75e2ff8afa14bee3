// The optimisers, clipping and schedules against numbers of PyTorch 1.13 (tests/reference).
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
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

constexpr double infinity = std::numeric_limits<double>::infinity();

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

TEST_CASE("optim: every trajectory of the reference set is followed") {
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

TEST_CASE("optim: clipping agrees with the reference set") {
  const std::map<std::string, std::pair<double, double>> cases{
      {"clips/", {1, 2}},        {"keeps/", {100, 2}},    {"l1/", {2, 1}},
      {"inf/", {0.5, infinity}}, {"zero_grads/", {1, 2}}, {"value/", {0.5, 0}}};
  check_complete(cases, "util");
  const SafetensorsFile file = reference("clip_grad.safetensors");
  for (const auto& [prefix, numbers] : cases) {
    CAPTURE(prefix);
    std::vector<Tensor> parameters;
    for (const char* name : {"g0", "g1", "g2"}) {
      const Tensor* g = file.find(prefix + "in." + name);
      if (g == nullptr) continue;
      parameters.push_back(zeros_like(*g).set_requires_grad());
      parameters.back().set_grad(*g);
    }
    if (prefix == "value/") {
      clip_grad_value_(parameters, numbers.first);
    } else {
      const double norm = clip_grad_norm_(parameters, numbers.first, numbers.second);
      CHECK(norm == doctest::Approx(file.at(prefix + "out.total_norm").item()).epsilon(1e-12));
    }
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      const Tensor& want = file.at(prefix + "out.g" + std::to_string(i));
      CHECK(worst(parameters[i].grad().to_vector(), want.to_vector()) < 1e-12);
    }
  }
}

double inverse_sqrt(std::int64_t k) {
  const double w = 4;
  const auto n = static_cast<double>(k + 1);
  return std::min(n / w, std::sqrt(w / n));
}

TEST_CASE("optim: every schedule of the reference set is followed") {
  using Make = std::function<std::unique_ptr<LRScheduler>(Optimizer&)>;
  const std::map<std::string, Make> schedules{
      {"step/",
       [](Optimizer& o) { return std::make_unique<StepLR>(o, StepLROptions{.step_size = 4, .gamma = 0.5}); }},
      {"multi_step/",
       [](Optimizer& o) {
         return std::make_unique<MultiStepLR>(o, MultiStepLROptions{.milestones = {3, 7, 15}, .gamma = 0.3});
       }},
      {"exponential/",
       [](Optimizer& o) { return std::make_unique<ExponentialLR>(o, ExponentialLROptions{.gamma = 0.9}); }},
      {"cosine/",
       [](Optimizer& o) {
         return std::make_unique<CosineAnnealingLR>(o,
                                                    CosineAnnealingLROptions{.T_max = 23, .eta_min = 0.001});
       }},
      {"linear_warmup/",
       [](Optimizer& o) {
         return std::make_unique<LinearLR>(
             o, LinearLROptions{.start_factor = 0.1, .end_factor = 1, .total_iters = 5});
       }},
      {"lambda_inv_sqrt/", [](Optimizer& o) { return std::make_unique<LambdaLR>(o, inverse_sqrt); }}};
  const std::map<std::string, ReduceLROnPlateauOptions> plateaus{
      {"plateau/", {.factor = 0.5, .patience = 2}},
      {"plateau_cooldown_min/", {.factor = 0.1, .patience = 1, .cooldown = 2, .min_lr = 0.001}},
      {"plateau_abs/",
       {.factor = 0.5, .patience = 1, .threshold = 0.05, .threshold_mode = ThresholdMode::abs}},
      {"plateau_max/", {.mode = PlateauMode::max, .factor = 0.5, .patience = 3}}};
  std::set<std::string> have;
  for (const auto& item : schedules) have.insert(item.first);
  for (const auto& item : plateaus) have.insert(item.first);
  CHECK(have == prefixes("schedule"));

  const SafetensorsFile file = reference("lr_schedule.safetensors");
  for (const auto& [prefix, make] : schedules) {
    CAPTURE(prefix);
    SGD sgd({zeros({1})}, {.lr = 0.1});
    const auto schedule = make(sgd);
    std::vector<double> rates;
    for (std::int64_t k = 0; k < file.at(prefix + "out.lr").numel(); ++k) {
      rates.push_back(sgd.lr());
      schedule->step();
    }
    CHECK(worst(rates, file.at(prefix + "out.lr").to_vector()) < 1e-14);
  }
  for (const auto& [prefix, options] : plateaus) {
    CAPTURE(prefix);
    SGD sgd({zeros({1})}, {.lr = 0.1});
    ReduceLROnPlateau schedule(sgd, options);
    std::vector<double> rates;
    for (double metric : file.at(prefix + "in.metrics").to_vector()) {
      schedule.step(metric);
      rates.push_back(sgd.lr());
    }
    CHECK(worst(rates, file.at(prefix + "out.lr").to_vector()) < 1e-14);
  }
}

}  // namespace
