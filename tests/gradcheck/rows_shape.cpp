#include <rill/core/core.h>

#include <gradcheck/rows.h>

namespace test {

using rill::Tensor;
using Inputs = std::vector<Tensor>;

std::vector<GradcheckRow> rows_view() {
  std::vector<GradcheckRow> rows;
  const auto add = [&](const char* op, rill::GradcheckFunction f, const rill::Shape& shape) {
    rows.push_back({op, std::move(f), {input(shape, 50 + rows.size())}});
  };
  add("reshape", [](const Inputs& in) { return Inputs{in[0].reshape({3, -1})}; }, {2, 3, 2});
  add("reshape",
      [](const Inputs& in) {
        return Inputs{in[0].permute({1, 0, 2}).reshape({3, -1})};
      },
      {2, 3, 2});
  add("permute", [](const Inputs& in) { return Inputs{in[0].permute({2, 0, 1})}; }, {2, 3, 2});
  add("transpose", [](const Inputs& in) { return Inputs{in[0].transpose(0, -1)}; }, {2, 3, 2});
  add("narrow", [](const Inputs& in) { return Inputs{in[0].narrow(1, 1, 2)}; }, {2, 4});
  add("slice", [](const Inputs& in) { return Inputs{in[0].slice(1, 0, 5, 2)}; }, {2, 5});
  add("select", [](const Inputs& in) { return Inputs{in[0].select(1, -1)}; }, {2, 3});
  add("expand", [](const Inputs& in) { return Inputs{in[0].expand({4, 2, 3})}; }, {2, 1});
  add("squeeze", [](const Inputs& in) { return Inputs{in[0].squeeze(1), rill::squeeze(in[0])}; }, {2, 1, 3});
  add("unsqueeze", [](const Inputs& in) { return Inputs{in[0].unsqueeze(-2)}; }, {2, 3});
  add("narrow", [](const Inputs& in) { return rill::split(in[0], 2, 1); }, {2, 5});
  add("narrow", [](const Inputs& in) { return rill::chunk(in[0], 3, 0); }, {5, 2});
  return rows;
}

std::vector<GradcheckRow> rows_copy() {
  std::vector<GradcheckRow> rows;
  const auto one = [&](const char* op, rill::GradcheckFunction f, const rill::Shape& shape) {
    rows.push_back({op, std::move(f), {input(shape, 80 + rows.size())}});
  };
  one("contiguous", [](const Inputs& in) { return Inputs{in[0].t().contiguous()}; }, {2, 3});
  one("clone", [](const Inputs& in) { return Inputs{in[0].clone()}; }, {2, 3});
  one("flip", [](const Inputs& in) { return Inputs{rill::flip(in[0], {0, 2})}; }, {2, 3, 2});
  one("expand", [](const Inputs& in) { return Inputs{rill::repeat(in[0], {2, 1, 3})}; }, {3, 2});
  one("masked_fill", [](const Inputs& in) { return Inputs{rill::tril(in[0], 1)}; }, {3, 4});
  // Values and a step that are exact in float32, so that rounding does not matter.
  rows.push_back({"to",
                  [](const Inputs& in) { return Inputs{in[0].to(rill::float32).to(rill::float64) * 3.0}; },
                  {rill::tensor({0.25, -0.5, 0.875, 0.0}, {2, 2}).set_requires_grad()},
                  {.eps = 0x1p-10}});
  rows.push_back({"cat",
                  [](const Inputs& in) {
                    return Inputs{rill::cat({in[0], in[1], in[0]}, 1), rill::stack({in[0], in[0]}, -1)};
                  },
                  {input({2, 3}, 90), input({2, 1}, 91)}});
  return rows;
}

std::vector<GradcheckRow> rows_matmul() {
  std::vector<GradcheckRow> rows;
  const auto product = [&](const char* op, const rill::Shape& a, const rill::Shape& b) {
    rows.push_back({op,
                    [](const Inputs& in) { return Inputs{rill::matmul(in[0], in[1])}; },
                    {input(a, 100 + rows.size()), input(b, 200 + rows.size())}});
  };
  product("matmul", {3}, {3});
  product("matmul", {2, 3}, {3});
  product("matmul", {3}, {3, 2});
  product("matmul", {2, 3}, {3, 4});
  product("matmul", {2, 2, 3}, {3, 2});
  product("matmul", {2, 3}, {4, 3, 2});
  product("matmul", {2, 1, 2, 3}, {3, 3, 2});
  product("matmul", {3}, {2, 3, 2});
  rows.push_back({"bmm",
                  [](const Inputs& in) { return Inputs{rill::bmm(in[0], in[1])}; },
                  {input({2, 3, 2}, 120), input({2, 2, 4}, 121)}});
  rows.push_back({"matmul",
                  [](const Inputs& in) { return Inputs{rill::addmm(in[0], in[1], in[2], 0.5, 2)}; },
                  {input({4}, 122), input({3, 2}, 123), input({2, 4}, 124)}});
  for (const rill::Shape& shape :
       {rill::Shape{3}, rill::Shape{4, 3}, rill::Shape{2, 2, 3}, rill::Shape{0, 3}}) {
    rows.push_back({"linear",
                    [](const Inputs& in) { return Inputs{rill::linear(in[0], in[1], in[2])}; },
                    {input(shape, 125), input({2, 3}, 126), input({2}, 127)}});
  }
  rows.push_back({"linear",
                  [](const Inputs& in) { return Inputs{rill::linear(in[0], in[1])}; },
                  {input({4, 3}, 128), input({2, 3}, 129)}});
  return rows;
}

}  // namespace test
