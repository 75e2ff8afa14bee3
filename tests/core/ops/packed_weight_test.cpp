#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <rill/core/core.h>
#include <rill/core/ops/packed_weight.h>
#include <rill/optim/sgd.h>

#include <support/child.h>

namespace rill {
namespace {

// The column sums of w, computed as a product of ones and its packed form.
std::vector<float> column_sums(const Tensor& w) {
  const std::vector<float> ones(static_cast<std::size_t>(w.size(0)), 1.0F);
  std::vector<float> sums(static_cast<std::size_t>(w.size(1)));
  packed<float>(w, 1)->multiply({ones.data(), 1, w.size(0)}, 0.0F, {sums.data(), 1, w.size(1)});
  return sums;
}

}  // namespace

TEST_CASE("packed: every kind of change to a weight drops its packed form") {
  const auto by_optimizer = [](Tensor& weight) {
    weight.set_requires_grad();
    sum(-weight).backward();
    optim::SGD({weight}, {.lr = 1}).step();
  };
  const auto by_copy = [](Tensor& weight) {
    const NoGrad no_grad;
    weight.copy_(full({70, 50}, 2, float32));
  };
  const std::vector<std::pair<std::string, std::function<void(Tensor&)>>> changes{
      {"in place", [](Tensor& weight) { weight.mul_(2); }},
      {"a view", [](Tensor& weight) { weight.narrow(0, 0, 70).fill_(2); }},
      {"mutable_data",
       [](Tensor& weight) {
         std::fill_n(weight.mutable_data<float>(), static_cast<std::size_t>(70 * 50), 2.0F);
       }},
      {"copy_", by_copy},
      {"optimizer", by_optimizer}};
  for (const auto& [name, change] : changes) {
    CAPTURE(name);
    Tensor weight = ones({70, 50}, float32);
    const std::weak_ptr<const PackedMatrix<float>> kept = packed<float>(weight, 1);
    CHECK_FALSE(kept.expired());
    CHECK(packed<float>(weight, 1) == kept.lock());
    change(weight);
    CHECK(kept.expired());
    CHECK(column_sums(weight.detach()) == std::vector<float>(50, 140.0F));
  }
}

TEST_CASE("packed: a view without unit stride packs like its contiguous copy") {
  const Tensor every_other = arange(4 * 6, float32).reshape({4, 3, 2}).select(2, 1);  // strides 6 and 2
  CHECK(column_sums(every_other) == column_sums(every_other.contiguous()));
  CHECK(column_sums(every_other.t()) == column_sums(every_other.t().contiguous()));
}

TEST_CASE("packed: a matrix may be an expanded row or column") {
  const Tensor row = arange(50, float32).reshape({1, 50}).expand({70, 50});
  const Tensor column = row.t();
  const std::vector<float> row_sums = column_sums(row), sums = column_sums(column);
  for (std::size_t j = 0; j < 50; ++j) CHECK(row_sums[j] == 70.0F * static_cast<float>(j));
  CHECK(sums == std::vector<float>(70, 1225.0F));
}

TEST_CASE("packed: concurrent requests for the same form share one") {
  for (int round = 0; round < 20; ++round) {
    const Tensor weight = ones({300, 200}, float32);
    std::vector<std::shared_ptr<const PackedMatrix<float>>> forms(4);
    std::vector<std::thread> threads;
    for (auto& form : forms) threads.emplace_back([&] { form = packed<float>(weight, 1); });
    for (std::thread& thread : threads) thread.join();
    for (const auto& form : forms) CHECK(form == forms[0]);
  }
}

// ThreadSanitizer cannot start threads after a fork, and AddressSanitizer does not hold its locks across one.
#if !defined(__SANITIZE_THREAD__) && !defined(__SANITIZE_ADDRESS__)
TEST_CASE("packed: a child forked while another thread packs and changes a weight can pack") {
  Tensor weight = ones({300, 200}, float32);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    Tensor small = ones({4, 4}, float32);
    while (!stop) {
      packed<float>(small, 1);
      for (int i = 0; i < 100; ++i) small.mutable_data<float>();
    }
  });
  int good = 0;
  const auto in_child = [&] {
    weight.mul_(2);
    return column_sums(weight) == std::vector<float>(200, 600.0F) ? 3 : 1;
  };
  while (good < 200 && test::status_in_child(in_child) == 3) ++good;
  CHECK(good == 200);
  stop = true;
  other.join();
}
#endif

}  // namespace rill
