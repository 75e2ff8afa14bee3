#include <support/reference.h>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

namespace test {
namespace {

void check_close(const rill::Tensor& got, const rill::Tensor& want, const std::string& name) {
  REQUIRE_MESSAGE(want.defined(), "the case has no '", name, "'");
  REQUIRE_MESSAGE(got.defined(), "nothing to compare with '", name, "'");
  REQUIRE_MESSAGE(got.shape() == want.shape(), name, ": ",
                  fmt::format("{} against {}", got.shape(), want.shape()));
  const std::vector<double> a = got.to_vector(), b = want.to_vector();
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double error = std::fabs(a[i] - b[i]) / (1e-11 + 1e-9 * std::fabs(b[i]));
    worst = error >= worst || std::isnan(error) ? error : worst;
  }
  CHECK_MESSAGE(worst <= 1, name, " is off by ", worst, " times the tolerance");
}

}  // namespace

Reference::Reference(const std::string& file, const std::string& prefix)
    : file_(rill::load_safetensors(std::string(RILL_TEST_DATA) + "/" + file)), prefix_(prefix + "/") {}

rill::Tensor Reference::operator()(const std::string& name) const {
  const rill::Tensor* found = file_.find(prefix_ + name);
  return found ? *found : rill::Tensor();
}

rill::Tensor Reference::input(const std::string& name) const {
  rill::Tensor x = (*this)("in." + name);
  if (x.defined()) x.set_requires_grad();
  return x;
}

void Reference::load_into(rill::nn::Module& m) const {
  rill::NamedTensors state;
  for (const auto& [name, tensor] : file_.tensors) {
    const std::string start = prefix_ + "param.";
    if (name.starts_with(start)) state.emplace_back(name.substr(start.size()), tensor);
  }
  m.to(rill::float64);
  m.load_state_dict(state);
}

void Reference::check_gradients(const rill::nn::Module& m) const {
  for (const auto& [name, gradient] : m.named_grads()) {
    check_close(gradient, (*this)("grad.param." + name), "grad.param." + name);
  }
}

void Reference::check_gradient(const rill::Tensor& input, const std::string& name) const {
  check_close(input.grad(), (*this)("grad.in." + name), "grad.in." + name);
}

void Reference::check_equal(const rill::Tensor& got, const std::string& name) const {
  check_close(got, (*this)(name), name);
}

}  // namespace test
